package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// ChargeState is the remaining work on the charge of a pay-in at its processor.
type ChargeState string

// The states.
const (
	ChargeWanted   ChargeState = "wanted"   // the processor is called, or asked, until the charge is known
	ChargeMade     ChargeState = "made"     // the order has its charge
	ChargeToCancel ChargeState = "cancel"   // the order ended: the charge is canceled at the processor
	ChargeEnded    ChargeState = "ended"    // nothing is left to do
	ChargeFollowed ChargeState = "followed" // the order is PROCESSING or disputed: the charge is looked up until that ends
	ChargeWithheld ChargeState = "withheld" // it differs from its order; the same request again continues
)

// Charge is the work on the charge of one pay-in at its processor. A charge that is generated
// offline has none, until its order is PROCESSING. Each account that a pay-in was tried at has one.
// All but the last have ended without a charge.
type Charge struct {
	Merchant payment.ID
	Payin    payment.ID
	Number   int64 // of the charge of the pay-in, from 1
	Account  string
	State    ChargeState
	// MayExist means that the processor may have the charge, now or later. It is set by the claim,
	// before the call, and again by its answer.
	MayExist    bool
	Attempts    int // calls in this state
	NextAt      time.Time
	ClaimedBy   payment.ID
	FirstSentAt time.Time // the first call that may have made the charge
	SentAt      time.Time // the last one
	Outcome     string    // of the last call
	Cause       string    // of that outcome; for the operator
	ProcessorID string
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Ref is the pay-in of the charge.
func (v *Charge) Ref() Ref { return Ref{v.Merchant, v.Payin} }

type chargeKey struct {
	Ref

	number int64
}

func (v *Charge) key() chargeKey { return chargeKey{v.Ref(), v.Number} }

var chargeTable = newTable("charges", []string{"payin_id", "number"},
	idColumn("merchant_id", func(v *Charge) *payment.ID { return &v.Merchant }),
	idColumn("payin_id", func(v *Charge) *payment.ID { return &v.Payin }),
	intColumn("number", func(v *Charge) *int64 { return &v.Number }),
	textColumn("account", func(v *Charge) *string { return &v.Account }),
	textColumn("state", func(v *Charge) *ChargeState { return &v.State }).as(mutable),
	flagColumn("may_exist", func(v *Charge) *bool { return &v.MayExist }).as(mutable),
	intColumn("attempts", func(v *Charge) *int { return &v.Attempts }).as(mutable),
	timeColumn("next_at", func(v *Charge) *time.Time { return &v.NextAt }).as(mutable),
	optionalIDColumn("claimed_by", func(v *Charge) *payment.ID { return &v.ClaimedBy }).as(mutable),
	timeColumn("first_sent_at", func(v *Charge) *time.Time { return &v.FirstSentAt }).as(mutable),
	timeColumn("sent_at", func(v *Charge) *time.Time { return &v.SentAt }).as(mutable),
	textColumn("outcome", func(v *Charge) *string { return &v.Outcome }).as(mutable),
	textColumn("cause", func(v *Charge) *string { return &v.Cause }).as(mutable),
	textColumn("processor_id", func(v *Charge) *string { return &v.ProcessorID }).as(mutable),
	timeColumn("created_at", func(v *Charge) *time.Time { return &v.CreatedAt }),
	timeColumn("updated_at", func(v *Charge) *time.Time { return &v.UpdatedAt }).as(mutable),
)

var (
	chargeUpdate  = chargeTable.updateBy("", "merchant_id", "payin_id", "number")
	chargeByPayin = chargeTable.selectBy("t.merchant_id, t.payin_id, t.number", "merchant_id", "payin_id")
)

func scanCharge(r db.Scanner) (Charge, error) {
	var v Charge
	return v, chargeTable.scan(r, &v)
}

type chargeNeeds struct {
	ids        []Ref              // pay-ins
	byExternal []ExternalRef      // pay-ins
	due        map[dueCharges]int // limits
}

// dueCharges names the charges of an account that are due: all, or those that are only looked up.
type dueCharges struct {
	account  string
	followed bool
}

func (k dueCharges) compare(o dueCharges) int {
	if order := strings.Compare(k.account, o.account); order != 0 || k.followed == o.followed {
		return order
	}
	return cmp.Compare(flag(k.followed), flag(o.followed))
}

// Charge reads the work on the charges of a pay-in.
func (n *Needs) Charge(merchant, payin payment.ID) {
	n.charges.ids = append(n.charges.ids, Ref{merchant, payin})
}

// ChargeByExternalID reads the work on the charges of a pay-in that [Needs.PayinByExternalID]
// reads too.
func (n *Needs) ChargeByExternalID(merchant payment.ID, externalID string) {
	n.charges.byExternal = append(n.charges.byExternal, ExternalRef{merchant, externalID})
}

// DueCharges reads up to limit charges of an account whose work is due, oldest first, that
// no other process is claiming.
func (n *Needs) DueCharges(account string, limit int) {
	n.dueCharges(dueCharges{account, false}, limit)
}

// FollowedCharges is DueCharges of those that are only looked up.
func (n *Needs) FollowedCharges(account string, limit int) {
	n.dueCharges(dueCharges{account, true}, limit)
}

func (n *Needs) dueCharges(k dueCharges, limit int) {
	if n.charges.due == nil {
		n.charges.due = map[dueCharges]int{}
	}
	n.charges.due[k] += limit
}

type loadedCharges struct {
	rows  map[Ref]Charge   // the last one of each pay-in
	tried map[Ref][]string // the accounts of all
	due   map[dueCharges][]Ref
}

func (l *loadedCharges) add(v Charge) {
	if l.rows == nil {
		l.rows, l.tried, l.due = map[Ref]Charge{}, map[Ref][]string{}, map[dueCharges][]Ref{}
	}
	if before, ok := l.rows[v.Ref()]; !ok || before.Number < v.Number { // two keys may name one row
		l.rows[v.Ref()] = v
	}
	if !slices.Contains(l.tried[v.Ref()], v.Account) {
		l.tried[v.Ref()] = append(l.tried[v.Ref()], v.Account)
	}
}

// chargesOf are the pay-ins whose charges are needed, once they are loaded.
func (l *Loaded) chargesOf(n *Needs) []Ref {
	ids := slices.Clone(n.charges.ids)
	for _, key := range n.charges.byExternal {
		if ref, ok := l.payins.byExternal[key]; ok && !slices.Contains(ids, ref) {
			ids = append(ids, ref)
		}
	}
	return ids
}

func (l *Loaded) loadCharges(ctx context.Context, tx *db.Tx, n *Needs) error {
	list, err := db.Select(ctx, tx, chargeByPayin, keysOf(l.chargesOf(n)), scanCharge)
	if err != nil {
		return err
	}
	for i := range list {
		l.charges.add(list[i])
	}
	for _, k := range slices.SortedFunc(maps.Keys(n.charges.due), dueCharges.compare) {
		state := ""
		if k.followed {
			state = " AND t.state = '" + string(ChargeFollowed) + "'"
		}
		rows, err := tx.Query(ctx, "SELECT "+chargeTable.selected+` FROM charges t WHERE t.account = $1 AND t.next_at > 0 AND t.next_at <= $2`+state+`
			ORDER BY t.next_at LIMIT $3`+tx.SkipLocked(), k.account, micros(tx.Now), n.charges.due[k])
		list, err := db.Collect(rows, err, scanCharge)
		if err != nil {
			return err
		}
		for i := range list {
			l.charges.add(list[i])
			l.charges.due[k] = append(l.charges.due[k], list[i].Ref())
		}
	}
	return nil
}

// ChargedAt reports whether a pay-in, whose charges are loaded, was tried at an account.
func (l *Loaded) ChargedAt(merchant, payin payment.ID, account string) bool {
	return slices.Contains(l.charges.tried[Ref{merchant, payin}], account)
}

// Charge is the loaded work on the last charge of a pay-in; false if there is none.
func (l *Loaded) Charge(merchant, payin payment.ID) (Charge, bool) {
	v, ok := l.charges.rows[Ref{merchant, payin}]
	return v, ok
}

// DueCharges are the loaded charges of an account whose work is due, and that no decision
// of this commit has claimed or changed, oldest first.
func (l *Loaded) DueCharges(account string) []Charge { return l.dueCharges(dueCharges{account, false}) }

// FollowedCharges is DueCharges of those that are only looked up.
func (l *Loaded) FollowedCharges(account string) []Charge {
	return l.dueCharges(dueCharges{account, true})
}

func (l *Loaded) dueCharges(k dueCharges) []Charge {
	var list []Charge
	for _, ref := range l.charges.due[k] {
		if v := l.charges.rows[ref]; l.due(v.ClaimedBy, v.NextAt) {
			list = append(list, v)
		}
	}
	return list
}

// AddCharge stores the work on the first charge of a pay-in, usually in the commit that
// inserts the pay-in, so that the intent is durable before the call; or on the next one, at
// another account.
func (c *Changes) AddCharge(v Charge) {
	v.CreatedAt, v.UpdatedAt = c.l.now, c.l.now
	if !v.ClaimedBy.IsZero() {
		c.l.capacity.claimed.Charges++
	}
	c.l.charges.add(v)
	c.newCharges = append(c.newCharges, v)
	c.count++
}

// SetCharge changes the work on a loaded charge.
func (c *Changes) SetCharge(v Charge) {
	v.UpdatedAt = c.l.now
	c.l.charges.rows[v.Ref()] = v
	if i := slices.IndexFunc(c.newCharges, func(n Charge) bool { return n.key() == v.key() }); i >= 0 {
		c.newCharges[i] = v
	} else {
		c.charges = append(c.charges, v)
	}
	c.count++
}

func (c *Changes) saveCharges(ctx context.Context, tx *db.Tx) error {
	return saveRows(ctx, tx, "charges", chargeUpdate, c.charges, (*Charge).key, chargeTable, c.newCharges)
}

// ChargeOf reads the work on the last charge of a pay-in; ErrNotFound if it has none, as its
// charge was generated offline.
func (s *Store) ChargeOf(ctx context.Context, merchant, payin payment.ID) (Charge, error) {
	list, err := s.Charges(ctx, merchant, payin)
	if err == nil && len(list) == 0 {
		return Charge{}, ErrNotFound
	}
	if err != nil {
		return Charge{}, err
	}
	return list[len(list)-1], nil
}

// Charges reads the work on all charges of a pay-in, in the order of the tries; none if its
// charge was generated offline.
func (s *Store) Charges(ctx context.Context, merchant, payin payment.ID) ([]Charge, error) {
	rows, err := s.db.Query(ctx, "SELECT "+chargeTable.selected+` FROM charges t
		WHERE t.merchant_id = $1 AND t.payin_id = $2 ORDER BY t.number`, merchant[:], payin[:])
	list, err := db.Collect(rows, err, scanCharge)
	return list, s.db.ReadError("charges", err)
}

// AccountsWithCharges lists the accounts that have work on charges due at a time.
func (s *Store) AccountsWithCharges(ctx context.Context, now time.Time) ([]string, error) {
	return s.accountsDue(ctx, "due charges", "charges", "account", "", now)
}
