package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// payoutRow is a payout with its other stored values.
type payoutRow struct {
	payment.Payout

	Fingerprint []byte // of the request

	beneficiary    []byte // sealed
	idempotencyKey string
	damaged        bool   // see scanDuePayout
	mac            []byte // keyed hash of approval and amount
	compared       bool   // mac is from this process, or was compared with the row
	forged         bool   // mac does not fit: the row was changed outside the gateway
	signs          bool   // approval changes, and mac with it
}

var payoutTable = newTable("payouts", []string{"id"},
	idColumn("merchant_id", func(p *payoutRow) *payment.ID { return &p.Merchant }),
	idColumn("id", func(p *payoutRow) *payment.ID { return &p.ID }),
	textColumn("external_id", func(p *payoutRow) *string { return &p.ExternalID }),
	textColumn("reference_id", func(p *payoutRow) *string { return &p.ReferenceID }),
	intColumn("amount", func(p *payoutRow) *cents { return &p.Amount }),
	intColumn("fee", func(p *payoutRow) *cents { return &p.Fee }),
	textColumn("status", func(p *payoutRow) *payment.PayoutStatus { return &p.Status }).as(mutable),
	textColumn("step", func(p *payoutRow) *payment.PayoutStep { return &p.Step }).as(mutable),
	intColumn("version", func(p *payoutRow) *int64 { return &p.Version }).as(mutable),
	textColumn("processor", func(p *payoutRow) *string { return &p.Processor }),
	textColumn("processor_id", func(p *payoutRow) *string { return &p.ProcessorID }).as(mutable),
	textColumn("pix_key_type", func(p *payoutRow) *string { return &p.PIXKeyType }),
	textColumn("webhook_url", func(p *payoutRow) *string { return &p.WebhookURL }),
	flagColumn("webhook_disabled", func(p *payoutRow) *bool { return &p.WebhookDisabled }).as(mutable),
	textColumn("approval", func(p *payoutRow) *payment.Approval { return &p.Approval }).as(mutable),
	bytesColumn("approval_mac", func(p *payoutRow) *[]byte { return &p.mac }).as(mutable),
	optionalIDColumn("batch_id", func(p *payoutRow) *payment.ID { return &p.Batch }),
	intColumn("counters", func(p *payoutRow) *payment.Counters { return &p.Counters }).as(mutable),
	timeColumn("counted_at", func(p *payoutRow) *time.Time { return &p.CountedAt }).as(mutable),
	optionalIDColumn("key_hash", func(p *payoutRow) *payment.ID { return &p.KeyHash }),
	bytesColumn("beneficiary", func(p *payoutRow) *[]byte { return &p.beneficiary }),
	bytesColumn("fingerprint", func(p *payoutRow) *[]byte { return &p.Fingerprint }),
	textColumn("idempotency_key", func(p *payoutRow) *string { return &p.idempotencyKey }).as(hidden),
	intColumn("returned_amount", func(p *payoutRow) *cents { return &p.ReturnedAmount }).as(mutable),
	textColumn("end_to_end_id", func(p *payoutRow) *string { return &p.EndToEndID }).as(mutable),
	failureColumn("failure", func(p *payoutRow) **payment.Failure { return &p.Failure }).as(mutable),
	intColumn("lookups", func(p *payoutRow) *int { return &p.Lookups }).as(mutable),
	timeColumn("next_at", func(p *payoutRow) *time.Time { return &p.NextAt }).as(mutable),
	optionalIDColumn("claimed_by", func(p *payoutRow) *payment.ID { return &p.ClaimedBy }).as(mutable),
	timeColumn("sent_at", func(p *payoutRow) *time.Time { return &p.SentAt }).as(mutable),
	timeColumn("completed_at", func(p *payoutRow) *time.Time { return &p.CompletedAt }).as(mutable),
	timeColumn("created_at", func(p *payoutRow) *time.Time { return &p.CreatedAt }),
	timeColumn("updated_at", func(p *payoutRow) *time.Time { return &p.UpdatedAt }).as(mutable),
)

var payoutHash = payoutTable.hashOf("merchant_id", "id", "external_id", "amount", "fee", "processor", "pix_key_type", "approval", "created_at")

var (
	payoutUpdate     = payoutTable.updateBy("", "merchant_id", "id", "version")
	payoutByID       = payoutTable.selectBy("t.merchant_id, t.id", "merchant_id", "id")
	payoutByExternal = payoutTable.selectBy("t.merchant_id, t.external_id", "merchant_id", "external_id")
	payoutDelete     = db.NewRowDelete("payouts", payoutTable.named("merchant_id", "id"))
)

// scanPayout reads a payout and opens its beneficiary.
func scanPayout(keys *db.Keyring) func(db.Scanner) (*payoutRow, error) {
	return func(r db.Scanner) (*payoutRow, error) {
		p := &payoutRow{}
		if err := payoutTable.scan(r, p); err != nil {
			return nil, err
		}
		return p, p.open(keys)
	}
}

func (p *payoutRow) open(keys *db.Keyring) error {
	plain, err := keys.Open(beneficiary(p.Merchant, p.ID), p.beneficiary)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, (*beneficiaryDocument)(&p.Beneficiary))
}

func beneficiary(merchant, id payment.ID) db.AssociatedData {
	return db.AssociatedData{Table: "payouts", Merchant: merchant, ID: id, Column: "beneficiary"}
}

// NewPayout is a payout to be stored.
type NewPayout struct {
	payoutRow

	values []any // of its columns
}

func (n *NewPayout) external() ExternalRef {
	return ExternalRef{n.Payout.Merchant, n.Payout.ExternalID}
}

// NewPayout encodes a payout and seals its beneficiary, before any lock.
func (s *Store) NewPayout(p payment.Payout, fingerprint []byte, idempotencyKey string) (*NewPayout, error) {
	plain, err := json.Marshal((*beneficiaryDocument)(&p.Beneficiary))
	if err != nil {
		return nil, fmt.Errorf("beneficiary of a payout: %w", err)
	}
	n := &NewPayout{payoutRow: payoutRow{
		Payout: p, Fingerprint: fingerprint, idempotencyKey: idempotencyKey, beneficiary: s.Keys().Seal(beneficiary(p.Merchant, p.ID), plain),
	}}
	n.mac, n.compared = payoutHash.mac(s.Keys(), &n.payoutRow), true
	n.values = payoutTable.row(&n.payoutRow)
	return n, nil
}

type payoutNeeds struct {
	fresh      []*NewPayout
	ids        []Ref
	damaged    []Ref
	byExternal []ExternalRef
	due        []DuePayouts
}

// InsertPayout inserts a new payout, if its reference is unused. Else the payout with the
// reference can be read by the external id. An operation that refuses the payout must
// release the reference: see [Changes.ReleaseReference].
func (n *Needs) InsertPayout(p *NewPayout) { n.payouts.fresh = append(n.payouts.fresh, p) }

// Payout reads a payout by its id.
func (n *Needs) Payout(merchant, id payment.ID) {
	n.payouts.ids = append(n.payouts.ids, Ref{merchant, id})
}

// PayoutByExternalID reads a payout by its external id.
func (n *Needs) PayoutByExternalID(merchant payment.ID, externalID string) {
	n.payouts.byExternal = append(n.payouts.byExternal, ExternalRef{merchant, externalID})
}

// DuePayouts are payouts of a merchant at a processor that are due in a queue.
type DuePayouts struct {
	Merchant  payment.ID
	Processor string
	Queue     PayoutQueue
	Limit     int
}

// DuePayouts reads due payouts, oldest first, that no other process is claiming,
// and their sends.
func (n *Needs) DuePayouts(d DuePayouts) {
	if !slices.Contains(n.payouts.due, d) {
		n.payouts.due = append(n.payouts.due, d)
	}
}

type loadedPayouts struct {
	rows       map[Ref]*payoutRow
	byExternal map[ExternalRef]Ref
	due        map[DuePayouts][]Ref
}

func (l *loadedPayouts) add(p *payoutRow) {
	if l.rows == nil {
		l.rows, l.byExternal, l.due = map[Ref]*payoutRow{}, map[ExternalRef]Ref{}, map[DuePayouts][]Ref{}
	}
	ref := Ref{p.Merchant, p.ID}
	if l.rows[ref] == nil { // two keys may name one row
		l.rows[ref] = p
	}
	l.byExternal[ExternalRef{p.Merchant, p.ExternalID}] = ref
}

// insertPayouts inserts new payouts. The ones whose references are taken are read
// with the others.
func (l *Loaded) insertPayouts(ctx context.Context, tx *db.Tx, n *Needs) error {
	list := slices.Clone(n.payouts.fresh)
	slices.SortStableFunc(list, func(a, b *NewPayout) int { return a.external().compare(b.external()) })
	rows := make([][]any, len(list))
	for i, p := range list {
		rows[i] = p.values
	}
	added, err := tx.Insert(ctx, payoutTable.insert, rows...)
	for i := range added {
		if added[i] {
			l.addNewPayout(list[i])
		}
	}
	return err
}

// addNewPayout adds a payout that was inserted.
func (l *Loaded) addNewPayout(p *NewPayout) {
	l.inserted[p.Payout.ID] = true
	l.orders = append(l.orders, NewOrder{Ref{p.Payout.Merchant, p.Payout.ID}, payment.OperationPayout})
	l.payouts.add(&p.payoutRow)
}

func (l *Loaded) loadPayouts(ctx context.Context, tx *db.Tx, n *Needs) error {
	scan := scanPayout(tx.Keys())
	list, err := db.Select(ctx, tx, payoutByID, keysOf(n.payouts.ids), scan)
	if err != nil {
		return err
	}
	external := slices.Clip(n.payouts.byExternal)
	for _, p := range n.payouts.fresh {
		if !l.inserted[p.Payout.ID] {
			external = append(external, p.external())
		}
	}
	more, err := db.Select(ctx, tx, payoutByExternal, keysOf(external), scan)
	if err != nil {
		return err
	}
	damaged, err := db.Select(ctx, tx, payoutByID, keysOf(n.payouts.damaged), scanDuePayout(tx.Keys()))
	if err != nil {
		return err
	}
	for _, p := range slices.Concat(list, more, damaged) {
		l.payouts.add(p)
	}
	for _, d := range n.payouts.due {
		rows, err := tx.Query(ctx, "SELECT "+payoutTable.selected+` FROM payouts t WHERE t.merchant_id = $1 AND t.next_at > 0 AND t.next_at <= $2
			AND t.processor = $3 AND t.`+d.Queue.sql()+d.Queue.unless("$1", "$3")+" ORDER BY t.next_at LIMIT $4"+tx.SkipLocked(), d.Merchant[:], micros(tx.Now), d.Processor, d.Limit)
		list, err := db.Collect(rows, err, scanDuePayout(tx.Keys()))
		if err != nil {
			return err
		}
		slices.SortFunc(list, func(a, b *payoutRow) int { // many are due at once after a cold start
			return cmp.Or(a.NextAt.Compare(b.NextAt), payment.CompareIDs(a.ID, b.ID))
		})
		for _, p := range list {
			if l.inserted[p.ID] { // its own operation has not decided yet, and may refuse it
				continue
			}
			l.payouts.add(p)
			l.payouts.due[d] = append(l.payouts.due[d], Ref{p.Merchant, p.ID})
		}
	}
	return nil
}

// Payout is a loaded payout; false if there is none.
func (l *Loaded) Payout(merchant, id payment.ID) (payment.Payout, bool) {
	if p := l.payouts.rows[Ref{merchant, id}]; p != nil {
		return p.Payout, true
	}
	return payment.Payout{}, false
}

// PayoutByExternalID is a loaded payout, with the fingerprint of its request;
// false if there is none.
func (l *Loaded) PayoutByExternalID(merchant payment.ID, externalID string) (payment.Payout, []byte, bool) {
	ref, ok := l.payouts.byExternal[ExternalRef{merchant, externalID}]
	if !ok {
		return payment.Payout{}, nil, false
	}
	p := l.payouts.rows[ref]
	return p.Payout, p.Fingerprint, true
}

// DuePayouts are the loaded due payouts that no decision of this commit has
// claimed or changed, oldest first. A payout that this commit creates is due for
// the next one.
func (l *Loaded) DuePayouts(d DuePayouts) []payment.Payout {
	if d.Queue == ToSend && (l.cases.stoppedMerchants[d.Merchant] || l.cases.stoppedAccounts[d.Processor]) {
		return nil
	}
	var list []payment.Payout
	for _, ref := range l.payouts.due[d] {
		if p := l.payouts.rows[ref]; l.due(p.ClaimedBy, p.NextAt) && d.Queue.includes(p.Step) {
			list = append(list, p.Payout)
		}
	}
	return list
}

type payoutChange struct {
	row *payoutRow
	was int64 // the version that it replaces
}

// SetPayout changes a loaded payout, and returns it as it will be stored. p has its new version,
// which is the old one if merchants see no change. UpdatedAt is always set: after a restore it
// shows that a payout was looked up since (outgoing.LookUpFirst).
func (c *Changes) SetPayout(p payment.Payout) payment.Payout {
	ref := Ref{p.Merchant, p.ID}
	row := *c.l.payouts.rows[ref] // a copy: the row may be an operation's, which may run again
	was := row.Version
	p.UpdatedAt = c.l.now
	if p.Approval != row.Approval {
		row.signs = true
		row.isForged(c.l.keys) // as it was loaded
	}
	row.Payout = p
	c.l.payouts.rows[ref] = &row
	c.payouts = append(c.payouts, payoutChange{&row, was})
	c.count++
	return p
}

// ReleaseReference releases the reference of a new payout that the operation refuses, and records
// why. The payout was inserted before the decision, so it must be deleted. This is an exception to
// the rule that a refusal adds nothing, and [Changes.Len] does not count it.
func (c *Changes) ReleaseReference(p *NewPayout, why error) {
	ref, external := Ref{p.Payout.Merchant, p.Payout.ID}, ExternalRef{p.Payout.Merchant, p.Payout.ExternalID}
	delete(c.l.payouts.rows, ref)
	delete(c.l.payouts.byExternal, external)
	delete(c.l.inserted, p.Payout.ID)
	c.released = append(c.released, ref)
	if c.refusals == nil {
		c.refusals = map[ExternalRef]error{}
	}
	c.refusals[external] = why
}

// Refusal is why an earlier operation of the batch refused the payout of an external id; nil if
// none did.
func (c *Changes) Refusal(merchant payment.ID, externalID string) error {
	return c.refusals[ExternalRef{merchant, externalID}]
}

func (c *Changes) savePayouts(ctx context.Context, tx *db.Tx) error {
	if err := tx.Delete(ctx, payoutDelete, keysOf(c.released)...); err != nil {
		return err
	}
	ref := func(v *payoutChange) Ref { return Ref{v.row.Merchant, v.row.ID} }
	return inWaves(c.payouts, ref, func(wave []payoutChange) error {
		rows := make([][]any, len(wave))
		for i := range wave {
			row := wave[i].row
			if row.signs && !row.isForged(tx.Keys()) { // a forged row stays so
				row.mac = payoutHash.mac(tx.Keys(), row)
			}
			rows[i] = payoutUpdate.row(row, wave[i].was)
		}
		missed, err := tx.Update(ctx, payoutUpdate.RowUpdate, rows...)
		if err == nil && len(missed) > 0 {
			err = fmt.Errorf("%w: payout", ErrConflict)
		}
		return err
	})
}

// Payout reads a payout; ErrNotFound if the merchant has none with that id. The error
// [db.ErrSealed] comes with the payout, without its beneficiary, which cannot be decrypted.
func (s *Store) Payout(ctx context.Context, merchant, id payment.ID) (payment.Payout, error) {
	p, err := scanPayout(s.Keys())(s.db.QueryRow(ctx, "SELECT "+payoutTable.selected+" FROM payouts t WHERE t.merchant_id = $1 AND t.id = $2", merchant[:], id[:]))
	return payoutOf(p), s.db.ReadError("payout", err)
}

// payoutOf is the payout of a row; zero if the row could not be read.
func payoutOf(p *payoutRow) payment.Payout {
	if p == nil {
		return payment.Payout{}
	}
	return p.Payout
}

// FindPayout reads a payout by id alone, as FindPayin does.
func (s *Store) FindPayout(ctx context.Context, id payment.ID) (payment.Payout, error) {
	p, err := scanPayout(s.Keys())(s.db.QueryRow(ctx, "SELECT "+payoutTable.selected+` FROM merchants m
		JOIN payouts t ON t.merchant_id = m.id AND t.id = $1`, id[:]))
	return payoutOf(p), s.db.ReadError("payout", err)
}

// PayoutByExternalID reads a payout and its fingerprint; else ErrNotFound.
func (s *Store) PayoutByExternalID(ctx context.Context, merchant payment.ID, externalID string) (payment.Payout, []byte, error) {
	p, err := scanPayout(s.Keys())(s.db.QueryRow(ctx, "SELECT "+payoutTable.selected+` FROM payouts t
		WHERE t.merchant_id = $1 AND t.external_id = $2`, merchant[:], externalID))
	if err != nil {
		return payment.Payout{}, nil, s.db.ReadError("payout", err)
	}
	return p.Payout, p.Fingerprint, nil
}

// PayoutsTaken reports which of the external ids payouts have.
func (s *Store) PayoutsTaken(ctx context.Context, ids []ExternalRef) (map[ExternalRef]bool, error) {
	list, err := db.Select(ctx, s.db, payoutsTaken, keysOf(ids), scanExternal)
	taken := make(map[ExternalRef]bool, len(list))
	for _, k := range list {
		taken[k] = true
	}
	return taken, s.db.ReadError("payouts", err)
}

// Payouts lists a merchant's payouts, newest first. One with a value that cannot be decoded or
// decrypted is listed without it: it must not hide the others.
func (s *Store) Payouts(ctx context.Context, merchant payment.ID, f Filter) ([]payment.Payout, error) {
	text, args := f.where(payoutTable.selected, "payouts", merchant, true)
	rows, err := s.db.Query(ctx, text, args...)
	scan := scanDuePayout(s.Keys())
	list, err := db.Collect(rows, err, func(r db.Scanner) (payment.Payout, error) {
		p, err := scan(r)
		return payoutOf(p), err
	})
	return list, s.db.ReadError("payouts", err)
}

// Due is a merchant whose payouts at one processor are due.
type Due struct {
	Merchant  payment.ID
	Processor string
	Since     time.Time // when the oldest became due
}

// DueAt is a merchant and one of its processors.
type DueAt struct {
	Merchant  payment.ID
	Processor string
}

// At is the merchant and the processor of d.
func (d Due) At() DueAt { return DueAt{d.Merchant, d.Processor} }

// CompareDue orders as PayoutsDue does.
func CompareDue(a, b DueAt) int {
	return cmp.Or(payment.CompareIDs(a.Merchant, b.Merchant), strings.Compare(a.Processor, b.Processor))
}

// PayoutsDue lists the pairs of merchant and processor that have payouts due in a queue, in the
// order of both. It skips from one pair to the next in the index of the queue. So a merchant or
// processor with many payouts hides no other, and costs no more than one with a single payout.
func (s *Store) PayoutsDue(ctx context.Context, now time.Time, queue PayoutQueue) ([]Due, error) {
	due := " WHERE next_at > 0 AND " + queue.sql()
	// Not (merchant_id, processor) > (...): for that SQLite reads all payouts of the pair.
	next := func(column string) string {
		return "COALESCE((SELECT t." + column + " FROM payouts t" + due +
			" AND t.merchant_id = queue.merchant_id AND t.processor > queue.processor ORDER BY t.processor LIMIT 1), (SELECT t." + column +
			" FROM payouts t" + due + " AND t.merchant_id > queue.merchant_id ORDER BY t.merchant_id, t.processor LIMIT 1))"
	}
	rows, err := s.db.Query(ctx, `WITH RECURSIVE queue (merchant_id, processor) AS (
			SELECT * FROM (SELECT merchant_id, processor FROM payouts`+due+` ORDER BY merchant_id, processor LIMIT 1) AS first
			UNION ALL
			SELECT `+next("merchant_id")+", "+next("processor")+` FROM queue WHERE queue.merchant_id IS NOT NULL)
		SELECT * FROM (SELECT queue.merchant_id, queue.processor, (SELECT t.next_at FROM payouts t`+due+`
				AND t.merchant_id = queue.merchant_id AND t.processor = queue.processor ORDER BY t.next_at LIMIT 1) AS since
			FROM queue WHERE queue.merchant_id IS NOT NULL`+queue.unless("queue.merchant_id", "queue.processor")+`) AS pair
		WHERE since <= $1 ORDER BY merchant_id, processor`, micros(now))
	list, err := db.Collect(rows, err, func(r db.Scanner) (Due, error) {
		var d Due
		var since int64
		err := r.Scan((*idDest)(&d.Merchant), &d.Processor, &since)
		d.Since = atMicros(since)
		return d, err
	})
	return list, s.db.ReadError("due payouts", err)
}

// PayoutQueue is a queue of payouts: the steps at which they are due.
type PayoutQueue int

// The two queues of payouts.
const (
	ToSend PayoutQueue = iota
	ToLookUp
)

// payoutQueues are the queues, in SQL and as values.
var payoutQueues = [...]struct {
	sql   string // also the condition of a partial index
	steps []payment.PayoutStep
}{
	ToSend:   {"step = 'queued'", []payment.PayoutStep{payment.StepQueued}},
	ToLookUp: {"step IN ('accepted', 'unknown')", []payment.PayoutStep{payment.StepAccepted, payment.StepUnknown}},
}

func (q PayoutQueue) sql() string { return payoutQueues[q].sql }

// unless is a further condition in SQL: payouts are not sent while a case stops those of
// their merchant or account.
func (q PayoutQueue) unless(merchant, account string) string {
	if q != ToSend {
		return ""
	}
	return " AND NOT " + payoutsStopped(merchant) + " AND NOT " + accountStopped(account)
}

// includes reports whether a payout at a step is in the queue.
func (q PayoutQueue) includes(step payment.PayoutStep) bool {
	return slices.Contains(payoutQueues[q].steps, step)
}
