package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
)

// ConsentState is the result of a processor's question about a payout.
type ConsentState string

// The states of a consent.
const (
	ConsentGiven    ConsentState = "given"     // to one transfer; to any other one it is refused
	ConsentNotAsked ConsentState = "not_asked" // the payout was paid without a question
)

// Consent is our answer to a processor that asks before it executes a transfer. There is at most
// one per external id at an account, so that at most one of its transfers is executed.
type Consent struct {
	Account    string
	ExternalID string
	Transfer   string // the processor's id of the transfer; "" if it did not ask
	State      ConsentState
	CreatedAt  time.Time
}

var consentTable = newTable("consents", []string{"account", "external_id"},
	textColumn("account", func(v *Consent) *string { return &v.Account }),
	textColumn("external_id", func(v *Consent) *string { return &v.ExternalID }),
	textColumn("transfer_id", func(v *Consent) *string { return &v.Transfer }),
	textColumn("state", func(v *Consent) *ConsentState { return &v.State }),
	timeColumn("created_at", func(v *Consent) *time.Time { return &v.CreatedAt }),
)

// Rows are never changed, and a row is added under the lock of its payout.
var consentByKey = consentTable.selectBy("t.account, t.external_id", "account", "external_id").ReadOnly()

func scanConsent(r db.Scanner) (Consent, error) {
	var v Consent
	return v, consentTable.scan(r, &v)
}

// consentKey names a consent.
type consentKey struct{ account, externalID string }

func (k consentKey) key() []any { return []any{k.account, k.externalID} }

// Consent reads the consent of an external id at an account, and the account's newest one.
// The operation must lock the payout.
func (n *Needs) Consent(account, externalID string) {
	if k := (consentKey{account, externalID}); !slices.Contains(n.consents, k) {
		n.consents = append(n.consents, k)
	}
}

type loadedConsents struct {
	rows   map[consentKey]Consent
	newest map[string]Consent // by account
}

func newLoadedConsents() loadedConsents {
	return loadedConsents{map[consentKey]Consent{}, map[string]Consent{}}
}

func (l *loadedConsents) add(v Consent) { l.rows[consentKey{v.Account, v.ExternalID}] = v }

// note keeps a consent if it is the newest of its account.
func (l *loadedConsents) note(v Consent) {
	if v.CreatedAt.After(l.newest[v.Account].CreatedAt) {
		l.newest[v.Account] = v
	}
}

// loadConsents runs after the lock of the payouts, so it sees rows that were committed meanwhile.
func (l *Loaded) loadConsents(ctx context.Context, tx *db.Tx, n *Needs) error {
	if len(n.consents) == 0 {
		return nil
	}
	l.consents = newLoadedConsents()
	list, err := db.Select(ctx, tx, consentByKey, keysOf(n.consents), scanConsent)
	if err != nil {
		return err
	}
	for i := range list {
		l.consents.add(list[i])
	}
	read := map[string]bool{}
	for _, k := range n.consents {
		if read[k.account] {
			continue
		}
		read[k.account] = true
		rows, err := tx.Query(ctx, newestConsent, k.account)
		newest, err := db.Collect(rows, err, scanConsent)
		if err != nil {
			return err
		}
		for i := range newest {
			l.consents.note(newest[i])
		}
	}
	return nil
}

var newestConsent = "SELECT " + consentTable.selected + ` FROM consents t WHERE t.account = $1
	ORDER BY t.created_at DESC, t.external_id DESC LIMIT 1`

// Consent is a loaded consent; false if there is none.
func (l *Loaded) Consent(account, externalID string) (Consent, bool) {
	v, ok := l.consents.rows[consentKey{account, externalID}]
	return v, ok
}

// AsksConsent reports whether the processor of an account, of which a consent was loaded, is proved
// to ask before it executes a transfer: the newest payout with a recorded answer had our consent.
func (l *Loaded) AsksConsent(account string) bool {
	return l.consents.newest[account].State == ConsentGiven
}

// AddConsent records a consent that was looked for and did not exist. It is the newest of its
// account, even if a clock was ahead when the one before it was recorded.
func (c *Changes) AddConsent(v Consent) {
	v.CreatedAt = c.l.now
	if newest := c.l.consents.newest[v.Account].CreatedAt; !v.CreatedAt.After(newest) {
		v.CreatedAt = newest.Add(time.Microsecond)
	}
	c.l.consents.add(v)
	c.l.consents.note(v)
	c.newConsents = append(c.newConsents, v)
	c.count++
}

func (c *Changes) saveConsents(ctx context.Context, tx *db.Tx) error {
	rows := make([][]any, len(c.newConsents))
	for i := range c.newConsents {
		rows[i] = consentTable.row(&c.newConsents[i])
	}
	if err := tx.InsertNew(ctx, consentTable.insert, rows...); err != nil {
		return fmt.Errorf("consents: %w", err)
	}
	return nil
}

var newestConsentBefore = "SELECT " + consentTable.selected + ` FROM consents t WHERE t.account = $1 AND t.created_at < $2
	ORDER BY t.created_at DESC, t.external_id DESC LIMIT 1`

// AskedConsent reports whether the processor of an account was proved to ask before it executes a
// transfer, just before a time, UTC. Rows are never changed, so the result stays true.
func (s *Store) AskedConsent(ctx context.Context, account string, before time.Time) (bool, error) {
	rows, err := s.db.Query(ctx, newestConsentBefore, account, before.UnixMicro())
	list, err := db.Collect(rows, err, scanConsent)
	return len(list) == 1 && list[0].State == ConsentGiven, s.db.ReadError("consents", err)
}

// AsksConsent is [Loaded.AsksConsent], read without a commit.
func (s *Store) AsksConsent(ctx context.Context, account string) (bool, error) {
	rows, err := s.db.Query(ctx, newestConsent, account)
	list, err := db.Collect(rows, err, scanConsent)
	return len(list) == 1 && list[0].State == ConsentGiven, s.db.ReadError("consents", err)
}
