package store

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// Account is one contract with one processor.
type Account struct {
	ID       string     // chosen by the operator; kept forever in orders and ledger accounts
	Driver   string     // kind of the driver
	Merchant payment.ID // zero if all merchants share it
	Settings map[string]string
	Secrets  AccountSecrets
	State    payment.AccountState
	// SuspendedFrom is the state before the gateway suspended the account, at SuspendedAt, because
	// its processor refuses the credentials; "" if the gateway did not suspend it. At CheckAt the
	// credentials are tried again.
	SuspendedFrom        payment.AccountState
	SuspendedAt, CheckAt time.Time
	Version              int64 // increases by each change
	CreatedAt            time.Time
	UpdatedAt            time.Time
	Damaged              error // why Secrets does not open, and is then empty; or ErrChangedOutside

	sealed []byte // Secrets
	mac    []byte
}

// Refused reports whether the gateway has suspended the account because its processor
// refuses the credentials.
func (a *Account) Refused() bool {
	return a.State == payment.AccountSuspended && a.SuspendedFrom != ""
}

// AccountSecrets are the sealed values of an account. A previous value is valid beside the current
// one from a rotation until it is dropped or the next rotation.
type AccountSecrets struct {
	Current       map[string]string `json:"current,omitempty"`
	Previous      map[string]string `json:"previous,omitempty"`
	NoticeToken   string            `json:"noticeToken"` // in the path for notices
	PreviousToken string            `json:"previousToken,omitempty"`
}

var accountTable = newTable("accounts", []string{"id"},
	textColumn("id", func(a *Account) *string { return &a.ID }),
	textColumn("driver", func(a *Account) *string { return &a.Driver }),
	optionalIDColumn("merchant_id", func(a *Account) *payment.ID { return &a.Merchant }),
	jsonColumn("settings", func(a *Account) *map[string]string { return &a.Settings }).as(mutable),
	bytesColumn("secrets", func(a *Account) *[]byte { return &a.sealed }).as(mutable),
	textColumn("state", func(a *Account) *payment.AccountState { return &a.State }).as(mutable),
	textColumn("suspended_from", func(a *Account) *payment.AccountState { return &a.SuspendedFrom }).as(mutable),
	timeColumn("suspended_at", func(a *Account) *time.Time { return &a.SuspendedAt }).as(mutable),
	timeColumn("check_at", func(a *Account) *time.Time { return &a.CheckAt }).as(mutable),
	intColumn("version", func(a *Account) *int64 { return &a.Version }).as(mutable),
	timeColumn("created_at", func(a *Account) *time.Time { return &a.CreatedAt }),
	timeColumn("updated_at", func(a *Account) *time.Time { return &a.UpdatedAt }).as(mutable),
	bytesColumn("mac", func(a *Account) *[]byte { return &a.mac }).as(mutable),
)

var accountHash = accountTable.hashOf("id", "driver", "merchant_id", "settings", "state", "suspended_from", "created_at")

var (
	accountUpdate = accountTable.updateBy("", "id", "version")
	allAccounts   = "SELECT " + accountTable.selected + " FROM accounts t ORDER BY t.id"
	accountByID   = "SELECT " + accountTable.selected + " FROM accounts t WHERE t.id = $1"
)

func accountSecrets(id string) db.AssociatedData {
	return db.AssociatedData{Table: "accounts", Column: "secrets\x00" + id}
}

func (a *Account) seal(keys *db.Keyring) error {
	plain, err := json.Marshal(&a.Secrets, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("store: secrets of account %s: %w", a.ID, err)
	}
	a.sealed = keys.Seal(accountSecrets(a.ID), plain)
	a.mac = accountHash.mac(keys, a)
	return nil
}

// scanAccount reads an account. If its secrets do not open, it is damaged: it must not stop the
// others.
func scanAccount(keys *db.Keyring) func(r db.Scanner) (Account, error) {
	return func(r db.Scanner) (Account, error) {
		a := Account{Settings: map[string]string{}}
		if err := accountTable.scan(r, &a); err != nil {
			return a, err
		}
		plain, err := keys.Open(accountSecrets(a.ID), a.sealed)
		if err == nil && json.Unmarshal(plain, &a.Secrets) != nil {
			err = fmt.Errorf("%w: accounts.secrets is not JSON", db.ErrSealed)
		}
		if err == nil && !accountHash.authentic(keys, &a, a.mac) {
			err = fmt.Errorf("%w: account %q", ErrChangedOutside, a.ID)
		}
		a.Damaged = err
		return a, nil
	}
}

// CreateAccount adds an account, in its first version. A taken id is ErrConflict.
func (tx *AdminTx) CreateAccount(ctx context.Context, a Account) (Account, error) {
	a.Version, a.CreatedAt, a.UpdatedAt = 1, tx.Now, tx.Now
	if a.Settings == nil {
		a.Settings = map[string]string{}
	}
	if err := a.seal(tx.Keys()); err != nil {
		return a, err
	}
	tx.record(NounAccount, "add", a.Merchant, a.ID, nil, a.auditFields(&Account{}))
	return a, tx.InsertNew(ctx, accountTable.insert, accountTable.row(&a))
}

// Accounts lists all accounts by id. Until the transaction ends, other transactions that call it
// wait, so accounts are compared and added one at a time.
func (tx *Tx) Accounts(ctx context.Context) ([]Account, error) {
	if err := tx.lockMerchants(ctx); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, allAccounts)
	return db.Collect(rows, err, scanAccount(tx.Keys()))
}

// ChangeAccount changes settings, secrets or state of an account, whose next version it
// becomes. Errors: ErrNotFound, ErrSealed if its secrets do not open, and that of change.
func (tx *AdminTx) ChangeAccount(ctx context.Context, id string, change func(a *Account) error) (Account, error) {
	a, err := scanAccount(tx.Keys())(tx.QueryRow(ctx, accountByID+tx.ForUpdate(), id))
	if err != nil {
		return a, db.NotFound(err)
	}
	if a.Damaged != nil {
		return a, a.Damaged
	}
	before := a
	a.Settings = maps.Clone(a.Settings)
	if err := change(&a); err != nil {
		return a, err
	}
	if err := a.seal(tx.Keys()); err != nil {
		return a, err
	}
	tx.record(NounAccount, "change", a.Merchant, a.ID, before.auditFields(&before), a.auditFields(&before))
	last := a.Version
	a.Version, a.UpdatedAt = last+1, tx.Now
	missed, err := tx.Update(ctx, accountUpdate.RowUpdate, accountUpdate.row(&a, last))
	if err == nil && len(missed) > 0 {
		err = fmt.Errorf("%w: account", ErrConflict)
	}
	return a, err
}

// ClaimAccountCheck claims the next try of refused credentials: it moves CheckAt to next, which is
// no change of the account. claimed is false if the account has another version by now, is not
// refused, or is not due. A CheckAt after next counts as due: a clock that was ahead set it.
func (tx *Tx) ClaimAccountCheck(ctx context.Context, id string, version int64, next time.Time) (claimed bool, err error) {
	n, err := tx.ExecCount(ctx, "UPDATE accounts SET check_at = $1 WHERE id = $2 AND version = $3 AND (check_at <= $4 OR check_at > $1) AND suspended_from <> ''",
		next.UnixMicro(), id, version, tx.Now.UnixMicro())
	return n == 1, err
}

// Account reads an account; else ErrNotFound.
func (s *Store) Account(ctx context.Context, id string) (Account, error) {
	a, err := scanAccount(s.Keys())(s.db.QueryRow(ctx, accountByID, id))
	return a, s.db.ReadError("account", err)
}

// Accounts lists all accounts by id.
func (s *Store) Accounts(ctx context.Context) ([]Account, error) {
	rows, err := s.db.Query(ctx, allAccounts)
	list, err := db.Collect(rows, err, scanAccount(s.Keys()))
	return list, s.db.ReadError("accounts", err)
}

// AccountVersions reads the version of each account, by id: nodes poll it.
func (s *Store) AccountVersions(ctx context.Context) (map[string]int64, error) {
	rows, err := s.db.Query(ctx, "SELECT id, version FROM accounts ORDER BY id")
	list, err := db.Collect(rows, err, func(r db.Scanner) (a Account, err error) {
		err = r.Scan(textDest[string]{&a.ID}, intDest[int64]{&a.Version})
		return a, err
	})
	versions := make(map[string]int64, len(list))
	for i := range list {
		versions[list[i].ID] = list[i].Version
	}
	return versions, s.db.ReadError("accounts", err)
}
