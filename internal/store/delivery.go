package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// DeliveryState is the state of a delivery.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending   DeliveryState = "pending"
	DeliveryDone      DeliveryState = "delivered"
	DeliveryExhausted DeliveryState = "exhausted" // every attempt of the schedule failed
	DeliveryDisabled  DeliveryState = "disabled"  // the receiver answered 410, or its endpoint was deleted
	// DeliveryPaused is to an endpoint that is disabled, or that catches up: it becomes pending
	// when the feed is read up to its event.
	DeliveryPaused DeliveryState = "paused"
)

// DeliveryStates lists every state of a delivery.
var DeliveryStates = []DeliveryState{DeliveryPending, DeliveryDone, DeliveryExhausted, DeliveryDisabled, DeliveryPaused}

// Delivery is one event on its way to one address. A claimed delivery is the record of the current
// attempt: Attempts is its number, UpdatedAt its beginning.
type Delivery struct {
	Merchant     payment.ID
	ID           payment.ID
	EventNumber  int64
	Subject      payment.ID
	Endpoint     payment.ID // zero if it goes to the URL of the order
	URL          string
	State        DeliveryState
	Attempts     int        // started, including the current one
	ScheduleStep int        // completed attempts since the event was last requested
	NextAt       time.Time  // when it is due; zero if it is claimed or final
	ClaimedBy    payment.ID // the process that sends it
	Case         payment.ID // opened when it was last given up
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Restarts     int // of its schedule, after failed attempts, as the endpoint recovered

	Event   payment.Event // read with due deliveries
	Damaged bool          // the body of this due delivery's event cannot be decrypted
	InOrder bool          // due at an endpoint that catches up: one at a time
	Down    bool          // due at an endpoint that is down
	Planned time.Time     // when this delivery would be due, which is sent before others of an endpoint that is down
	Moved   bool          // due at an endpoint whose URL is another one than when it was made
	Stopped DeliveryState // of this due delivery, whose endpoint is disabled or deleted
	// Postponed is the time at which this due delivery is due instead, because its endpoint is down
	// and must get an older event first.
	Postponed time.Time
}

var deliveryTable = newTable("deliveries", []string{"id"},
	idColumn("merchant_id", func(d *Delivery) *payment.ID { return &d.Merchant }),
	idColumn("id", func(d *Delivery) *payment.ID { return &d.ID }),
	intColumn("event_number", func(d *Delivery) *int64 { return &d.EventNumber }),
	idColumn("subject_id", func(d *Delivery) *payment.ID { return &d.Subject }),
	optionalIDColumn("endpoint_id", func(d *Delivery) *payment.ID { return &d.Endpoint }),
	textColumn("url", func(d *Delivery) *string { return &d.URL }),
	textColumn("state", func(d *Delivery) *DeliveryState { return &d.State }).as(mutable),
	intColumn("attempts", func(d *Delivery) *int { return &d.Attempts }).as(mutable),
	intColumn("schedule_step", func(d *Delivery) *int { return &d.ScheduleStep }).as(mutable),
	timeColumn("next_at", func(d *Delivery) *time.Time { return &d.NextAt }).as(mutable),
	optionalIDColumn("claimed_by", func(d *Delivery) *payment.ID { return &d.ClaimedBy }).as(mutable),
	optionalIDColumn("case_id", func(d *Delivery) *payment.ID { return &d.Case }).as(mutable),
	timeColumn("created_at", func(d *Delivery) *time.Time { return &d.CreatedAt }),
	timeColumn("updated_at", func(d *Delivery) *time.Time { return &d.UpdatedAt }).as(mutable),
	intColumn("restarts", func(d *Delivery) *int { return &d.Restarts }).as(mutable),
)

// restartsMost is the number of restarts after which an event counts as one that the receiver
// refuses alone. fewRestarts are the deliveries with fewer.
const (
	restartsMost = 3
	fewRestarts  = "restarts < 3"
)

// RefusedAlone reports whether the endpoint has recovered so often without accepting this event
// that it refuses this one alone. Then the event follows its schedule independently of the
// endpoint, and its failures do not count for the endpoint's health.
func (d *Delivery) RefusedAlone() bool { return d.Restarts >= restartsMost }

var (
	deliveryUpdate = deliveryTable.updateBy("", "merchant_id", "id")
	deliveryByID   = deliveryTable.selectBy("t.merchant_id, t.id", "merchant_id", "id")
)

func scanDelivery(r db.Scanner) (*Delivery, error) {
	d := &Delivery{}
	return d, deliveryTable.scan(r, d)
}

type deliveryNeeds struct {
	ids     []Ref
	cases   []Ref // deliveries whose case is read
	due     []dueDeliveries
	pending []pendingDeliveries
}

type dueDeliveries struct {
	merchant payment.ID
	limit    int
}

type pendingDeliveries struct {
	merchant, subject payment.ID
	url               string
}

// Delivery reads a delivery.
func (n *Needs) Delivery(merchant, id payment.ID) {
	n.deliveries.ids = append(n.deliveries.ids, Ref{merchant, id})
}

// DeliveryCase reads whether the case of a delivery, which is read too, is open.
func (n *Needs) DeliveryCase(merchant, id payment.ID) {
	n.deliveries.cases = append(n.deliveries.cases, Ref{merchant, id})
}

// DueDeliveries reads up to limit due deliveries of a merchant, with their events,
// that no other process is claiming. Of several limits the largest counts.
func (n *Needs) DueDeliveries(merchant payment.ID, limit int) {
	for i := range n.deliveries.due {
		if due := &n.deliveries.due[i]; due.merchant == merchant {
			due.limit = max(due.limit, limit)
			return
		}
	}
	n.deliveries.due = append(n.deliveries.due, dueDeliveries{merchant, limit})
}

// PendingDeliveries reads the order, which is locked first, and all its pending
// deliveries to a URL: it waits for a commit that is changing the order, and its
// events are included.
func (n *Needs) PendingDeliveries(merchant, subject payment.ID, url string) {
	n.Payin(merchant, subject)
	n.Payout(merchant, subject)
	n.Refund(merchant, subject)
	n.deliveries.pending = append(n.deliveries.pending, pendingDeliveries{merchant, subject, url})
}

type loadedDeliveries struct {
	rows      map[Ref]*Delivery
	due       map[payment.ID][]Ref
	pending   map[pendingDeliveries][]Ref
	openCases map[Ref]Case
}

func (l *loadedDeliveries) add(d *Delivery) Ref {
	if l.rows == nil {
		l.rows, l.due, l.pending = map[Ref]*Delivery{}, map[payment.ID][]Ref{}, map[pendingDeliveries][]Ref{}
	}
	ref := Ref{d.Merchant, d.ID}
	if l.rows[ref] == nil {
		l.rows[ref] = d
	}
	return ref
}

func (l *Loaded) loadDeliveries(ctx context.Context, tx *db.Tx, n *Needs) error {
	list, err := db.Select(ctx, tx, deliveryByID, keysOf(n.deliveries.ids), scanDelivery)
	if err != nil {
		return err
	}
	for _, d := range list {
		l.deliveries.add(d)
	}
	for _, p := range n.deliveries.pending {
		rows, err := tx.Query(ctx, "SELECT "+deliveryTable.selected+` FROM deliveries t WHERE t.merchant_id = $1 AND t.subject_id = $2 AND t.url = $3
			AND t.state = 'pending' ORDER BY t.id`+tx.ForUpdate(), p.merchant[:], p.subject[:], p.url)
		list, err := db.Collect(rows, err, scanDelivery)
		if err != nil {
			return err
		}
		for _, d := range list {
			ref := l.deliveries.add(d)
			l.deliveries.pending[p] = append(l.deliveries.pending[p], ref)
		}
	}
	for _, due := range n.deliveries.due {
		if err := l.loadDueDeliveries(ctx, tx, due, n.nodes.claiming); err != nil {
			return err
		}
	}
	return l.loadDeliveryCases(ctx, tx, n)
}

// loadDueDeliveries reads due deliveries, and then their events together.
func (l *Loaded) loadDueDeliveries(ctx context.Context, tx *db.Tx, due dueDeliveries, nodes []payment.ID) error {
	rows, err := tx.Query(ctx, "SELECT "+deliveryTable.selected+` FROM deliveries t WHERE t.merchant_id = $1 AND t.next_at > 0 AND t.next_at <= $2
		ORDER BY t.next_at LIMIT $3`+tx.SkipLocked(), due.merchant[:], micros(tx.Now), due.limit)
	list, err := db.Collect(rows, err, scanDelivery)
	if err != nil || len(list) == 0 {
		return err
	}
	var numbers [][]any
	seen := map[int64]bool{}
	for _, d := range list {
		if !seen[d.EventNumber] {
			seen[d.EventNumber] = true
			numbers = append(numbers, []any{due.merchant[:], d.EventNumber})
		}
	}
	damaged := map[int64]bool{}
	events, err := db.Select(ctx, tx, eventByNumber, numbers, scanDueEvent(tx.Keys(), damaged))
	if err != nil {
		return fmt.Errorf("events of deliveries: %w", err)
	}
	byNumber := make(map[int64]payment.Event, len(events))
	for i := range events {
		byNumber[events[i].Number] = events[i]
	}
	for _, d := range list {
		d.Event = byNumber[d.EventNumber]
		ref := l.deliveries.add(d)
		l.deliveries.rows[ref].Event, l.deliveries.rows[ref].Damaged = d.Event, damaged[d.EventNumber]
		l.deliveries.due[due.merchant] = append(l.deliveries.due[due.merchant], ref)
	}
	return l.loadDueEndpoints(ctx, tx, due, nodes)
}

// loadDeliveryCases reads which cases of deliveries are open.
func (l *Loaded) loadDeliveryCases(ctx context.Context, tx *db.Tx, n *Needs) error {
	var keys [][]any
	for _, ref := range n.deliveries.cases {
		if d := l.deliveries.rows[ref]; d != nil && !d.Case.IsZero() {
			keys = append(keys, Ref{d.Merchant, d.Case}.key())
		}
	}
	open, err := db.Select(ctx, tx, openCaseByID, keys, scanCase)
	l.deliveries.openCases = make(map[Ref]Case, len(open))
	for _, v := range open {
		l.deliveries.openCases[Ref{v.Merchant, v.ID}] = v
	}
	return err
}

// Delivery is a delivery that was loaded; false if there is none.
func (l *Loaded) Delivery(merchant, id payment.ID) (Delivery, bool) {
	if d := l.deliveries.rows[Ref{merchant, id}]; d != nil {
		return *d, true
	}
	return Delivery{}, false
}

// HasOpenCase reports whether the case of a delivery is open; see
// [Needs.DeliveryCase].
func (l *Loaded) HasOpenCase(d Delivery) bool {
	_, open := l.deliveries.openCases[Ref{d.Merchant, d.Case}]
	return open
}

// DueDeliveries are the loaded due deliveries of a merchant that no decision of this commit has
// claimed or changed, oldest first. At an endpoint that is down, the delivery of its oldest event
// comes first, even if it is not due, and the others are postponed.
func (l *Loaded) DueDeliveries(merchant payment.ID) []Delivery {
	var list []Delivery
	for _, ref := range l.deliveries.due[merchant] {
		d := l.deliveries.rows[ref]
		early := !d.Planned.IsZero() && d.ClaimedBy.IsZero() && d.State == DeliveryPending
		if early || l.due(d.ClaimedBy, d.NextAt) {
			list = append(list, *d)
		}
	}
	return list
}

// PendingDeliveries are the loaded deliveries of an order to a URL that are still
// pending.
func (l *Loaded) PendingDeliveries(merchant, subject payment.ID, url string) []Delivery {
	var list []Delivery
	for _, ref := range l.deliveries.pending[pendingDeliveries{merchant, subject, url}] {
		if d := l.deliveries.rows[ref]; d.State == DeliveryPending {
			list = append(list, *d)
		}
	}
	return list
}

// SetDelivery changes a loaded delivery.
func (c *Changes) SetDelivery(d Delivery) {
	*c.l.deliveries.rows[Ref{d.Merchant, d.ID}] = d
	c.deliveries = append(c.deliveries, d)
	c.count++
}

// RetryDeliveries makes the deliveries of an event due again that were given up with a
// case. Their schedule restarts; the numbers of attempts continue.
func (c *Changes) RetryDeliveries(merchant payment.ID, event int64, of payment.ID) {
	c.retries.deliveries = append(c.retries.deliveries, Delivery{Merchant: merchant, EventNumber: event, Case: of})
	c.count++
}

func (c *Changes) saveDeliveries(ctx context.Context, tx *db.Tx) error {
	ref := func(d *Delivery) Ref { return Ref{d.Merchant, d.ID} }
	if err := saveRows(ctx, tx, "deliveries", deliveryUpdate, c.deliveries, ref, deliveryTable, nil); err != nil {
		return err
	}
	for i := range c.retries.deliveries {
		d := &c.retries.deliveries[i]
		_, err := tx.ExecCount(ctx, `UPDATE deliveries SET state = 'pending', next_at = $1, schedule_step = 0, updated_at = $1
			WHERE merchant_id = $2 AND event_number = $3 AND case_id = $4 AND state = 'exhausted'`, micros(c.l.now), d.Merchant[:], d.EventNumber, d.Case[:])
		if err != nil {
			return fmt.Errorf("deliveries to retry: %w", err)
		}
	}
	return nil
}

// newDelivery makes the delivery of an event that has its number and body, claimed
// if the capacity allows.
func (c *Changes) newDelivery(e *payment.Event, url string) *Delivery {
	d := &Delivery{
		Merchant: e.Merchant, ID: c.l.newID(), EventNumber: e.Number, Subject: e.Subject, URL: url,
		State: DeliveryPending, NextAt: c.l.now, CreatedAt: c.l.now, UpdatedAt: c.l.now, Event: *e,
	}
	if c.l.capacity.takeDelivery(e.Merchant) {
		d.Claim(c.l.capacity.Node, c.l.now)
		c.l.capacity.claimed.Deliveries = append(c.l.capacity.claimed.Deliveries, *d)
	}
	return d
}

// Claim begins the next attempt of a delivery by a node.
func (d *Delivery) Claim(node payment.ID, now time.Time) {
	d.Attempts, d.NextAt, d.ClaimedBy, d.UpdatedAt = d.Attempts+1, time.Time{}, node, now
}

// DeliveriesDue lists the merchants that have deliveries due.
func (s *Store) DeliveriesDue(ctx context.Context, now time.Time) ([]payment.ID, error) {
	rows, err := s.db.Query(ctx, keysDue("deliveries", "merchant_id", "")+" ORDER BY merchant_id", micros(now))
	list, err := db.Collect(rows, err, scanID)
	return list, s.db.ReadError("due deliveries", err)
}

// Redeliver makes the deliveries of an event due again and restarts their schedule; the numbers of
// attempts continue. It returns how many there are. If they were removed for their age, the event
// gets a new one to the order's URL. It gets none if the receiver disabled the order's events, or
// if the event is one of creation, which goes to endpoints only.
func (tx *Tx) Redeliver(ctx context.Context, e *payment.Event) (int64, error) {
	n, err := tx.ExecCount(ctx, `UPDATE deliveries SET state = 'pending', next_at = $1, schedule_step = 0, restarts = 0, updated_at = $1
		WHERE merchant_id = $2 AND event_number = $3 AND length(claimed_by) = 0 AND (length(endpoint_id) = 0 OR EXISTS (SELECT 1 FROM webhook_endpoints w
			WHERE w.merchant_id = deliveries.merchant_id AND w.id = deliveries.endpoint_id AND w.enabled = 1))`, micros(tx.Now), e.Merchant[:], e.Number)
	if err != nil || n > 0 || e.Type.IsCreation() {
		return n, err
	}
	url, err := tx.webhookURL(ctx, e.Merchant, e.Subject) // locks the order: a concurrent request for the event waits
	if err != nil || url == "" {
		return 0, err
	}
	err = tx.QueryRow(ctx, "SELECT count(*) FROM deliveries WHERE merchant_id = $1 AND event_number = $2", e.Merchant[:], e.Number).Scan(&n)
	if err != nil || n > 0 {
		return 0, err // claimed now
	}
	d := &Delivery{
		Merchant: e.Merchant, ID: tx.NewID(), EventNumber: e.Number, Subject: e.Subject, URL: url,
		State: DeliveryPending, NextAt: tx.Now, CreatedAt: tx.Now, UpdatedAt: tx.Now,
	}
	return 1, tx.InsertNew(ctx, deliveryTable.insert, deliveryTable.row(d))
}

// webhookURL is the URL of an order's events, "" for none; it locks the order.
func (tx *Tx) webhookURL(ctx context.Context, merchant, order payment.ID) (url string, err error) {
	for _, table := range []string{"payins", "payouts", "refunds"} {
		var disabled int64
		err := tx.QueryRow(ctx, "SELECT webhook_url, webhook_disabled FROM "+table+" WHERE merchant_id = $1 AND id = $2"+tx.ForUpdate(),
			merchant[:], order[:]).Scan(&url, &disabled)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if disabled != 0 {
			url = ""
		}
		return url, err
	}
	return "", nil
}
