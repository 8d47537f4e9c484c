package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// Dispatch is the next part of the feed for an endpoint.
type Dispatch struct {
	// Events follow the endpoint's position, without their bodies; none if as many deliveries
	// as asked for are pending.
	Events []payment.Event
	// Known are the deliveries of these events to the endpoint, or to its URL.
	Known []Delivery
	// Pending is the number of its pending deliveries, up to a limit. Untried is the number of
	// those that it must get in order and that were not attempted yet.
	Pending, Untried int
}

type dispatchNeed struct {
	Ref

	events, pending int
}

// Dispatch locks all endpoints of a merchant, and reads the next part of the feed for one of them:
// up to so many events, and up to so many pending deliveries.
func (n *Needs) Dispatch(merchant, endpoint payment.ID, events, pending int) {
	n.Endpoints(merchant)
	n.endpoints.dispatches = append(n.endpoints.dispatches, dispatchNeed{Ref{merchant, endpoint}, events, pending})
}

func (l *Loaded) loadDispatches(ctx context.Context, tx *db.Tx, n *Needs) error {
	for _, v := range n.endpoints.dispatches {
		e, ok := l.Endpoint(v.Merchant, v.ID)
		if !ok {
			continue
		}
		d, err := l.loadDispatch(ctx, tx, &e, v)
		if err != nil {
			return fmt.Errorf("dispatch: %w", err)
		}
		l.endpoints.dispatches[v.Ref] = d
	}
	return nil
}

func (l *Loaded) loadDispatch(ctx context.Context, tx *db.Tx, e *Endpoint, v dispatchNeed) (d Dispatch, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*), coalesce(SUM(CASE WHEN p.schedule_step = 0 AND p.event_number <= $4 THEN 1 ELSE 0 END), 0) FROM (
		SELECT t.event_number, t.schedule_step FROM deliveries t WHERE t.merchant_id = $1 AND t.endpoint_id = $2
		AND length(t.endpoint_id) > 0 AND t.state <> 'delivered' AND t.state = 'pending' ORDER BY t.event_number LIMIT $3) AS p`,
		e.Merchant[:], e.ID[:], v.pending, e.CatchUpTo).Scan(&d.Pending, &d.Untried)
	if err != nil || d.Pending >= v.pending {
		return d, err
	}
	rows, err := tx.Query(ctx, "SELECT "+eventHead+" FROM events e WHERE e.merchant_id = $1 AND e.number > $2 ORDER BY e.number LIMIT $3",
		e.Merchant[:], e.Position, v.events)
	if d.Events, err = db.Collect(rows, err, scanEventHead); err != nil || len(d.Events) == 0 {
		return d, err
	}
	rows, err = tx.Query(ctx, "SELECT "+deliveryTable.selected+` FROM deliveries t WHERE t.merchant_id = $1 AND t.event_number > $2 AND t.event_number <= $3
		AND (t.endpoint_id = $4 OR t.url = $5) ORDER BY t.id`+tx.ForUpdate(), e.Merchant[:], e.Position, d.Events[len(d.Events)-1].Number, e.ID[:], e.URL)
	known, err := db.Collect(rows, err, scanDelivery)
	for i := range known {
		l.deliveries.add(known[i])
		d.Known = append(d.Known, *known[i])
	}
	return d, err
}

// eventHead is the columns that scanEventHead scans: an event without its body.
const eventHead = "e.number, e.id, e.type, e.subject_id"

func scanEventHead(r db.Scanner) (e payment.Event, err error) {
	return e, r.Scan(&e.Number, (*idDest)(&e.ID), textDest[payment.EventType]{&e.Type}, (*idDest)(&e.Subject))
}

// Dispatch is the next part of the feed for an endpoint, as loaded.
func (l *Loaded) Dispatch(e *Endpoint) Dispatch { return l.endpoints.dispatches[e.Ref()] }

// dueBefore is how long before the commit the first of its deliveries is due: the last one
// is not due later than the commit.
const dueBefore = 50 * time.Millisecond

// Deliver makes an event due at an endpoint: its known delivery there, or else a new one.
// Later calls make later events due later, so that they are claimed in order.
func (c *Changes) Deliver(e *Endpoint, event *payment.Event, known *Delivery) {
	c.due++
	at := c.l.now.Add(time.Duration(c.due)*time.Microsecond - dueBefore)
	if known == nil {
		c.newDeliveries = append(c.newDeliveries, Delivery{
			Merchant: e.Merchant, ID: c.l.newID(), EventNumber: event.Number, Subject: event.Subject, Endpoint: e.ID, URL: e.URL,
			State: DeliveryPending, NextAt: at, CreatedAt: c.l.now, UpdatedAt: c.l.now,
		})
		c.count++
		return
	}
	d := *known
	switch {
	case d.Endpoint != e.ID || d.URL != e.URL:
		d.Endpoint, d.URL, d.Restarts = e.ID, e.URL, 0
		c.MoveDelivery(d)
	case d.ScheduleStep > 0:
		d.Restarts++
	}
	d.State, d.ScheduleStep, d.NextAt, d.UpdatedAt = DeliveryPending, 0, at, c.l.now
	c.SetDelivery(d)
}

// MoveDelivery changes the endpoint and the URL of a delivery.
func (c *Changes) MoveDelivery(d Delivery) {
	c.moved = append(c.moved, d)
	c.count++
}

func (c *Changes) saveMoved(ctx context.Context, tx *db.Tx) error {
	for i := range c.moved {
		d := &c.moved[i]
		if err := tx.ExecOne(ctx, "UPDATE deliveries SET endpoint_id = $1, url = $2 WHERE merchant_id = $3 AND id = $4",
			optionalID(d.Endpoint), d.URL, d.Merchant[:], d.ID[:]); err != nil {
			return fmt.Errorf("deliveries: %w", err)
		}
	}
	return nil
}

// saveNewDeliveries adds the deliveries of events that exist.
func (c *Changes) saveNewDeliveries(ctx context.Context, tx *db.Tx) error {
	rows := make([][]any, len(c.newDeliveries))
	for i := range c.newDeliveries {
		rows[i] = deliveryTable.row(&c.newDeliveries[i])
	}
	if err := tx.InsertNew(ctx, deliveryTable.insert, rows...); err != nil {
		return fmt.Errorf("deliveries: %w", err)
	}
	return nil
}

// loadDueEndpoints reads where due deliveries to endpoints go now. It locks nothing: the deliveries
// are locked already, and the end of an attempt sees changes made meanwhile.
func (l *Loaded) loadDueEndpoints(ctx context.Context, tx *db.Tx, due dueDeliveries, nodes []payment.ID) error {
	to, list := map[payment.ID]Endpoint{}, []Endpoint(nil)
	for _, ref := range l.deliveries.due[due.merchant] {
		d := l.deliveries.rows[ref]
		if d.Endpoint.IsZero() {
			continue
		}
		if len(to) == 0 {
			rows, err := tx.Query(ctx, "SELECT "+endpointTable.selected+" FROM webhook_endpoints t WHERE t.merchant_id = $1 ORDER BY t.id", due.merchant[:])
			if list, err = db.Collect(rows, err, scanEndpoint(tx.Keys())); err != nil {
				return fmt.Errorf("endpoints: %w", err)
			}
			to[payment.ID{}] = Endpoint{} // it was read
			for i := range list {
				to[list[i].ID] = list[i]
			}
		}
		d.direct(to)
	}
	for i := range list {
		e := &list[i]
		waiting := l.dueAt(e)
		if !e.Enabled || len(waiting) == 0 {
			continue
		}
		load := l.loadInOrder
		if e.IsDown() {
			load = l.loadOldest
		}
		if err := load(ctx, tx, e, waiting, nodes); err != nil {
			return fmt.Errorf("deliveries of an endpoint: %w", err)
		}
	}
	return nil
}

// dueAt are the loaded due deliveries to an endpoint.
func (l *Loaded) dueAt(e *Endpoint) (list []*Delivery) {
	for _, ref := range l.deliveries.due[e.Merchant] {
		if d := l.deliveries.rows[ref]; d.Endpoint == e.ID {
			list = append(list, d)
		}
	}
	return list
}

// inOrderPause is the time after which the events of an endpoint that catches up are considered
// again while another process sends it one of them.
const inOrderPause = time.Second

// loadInOrder postpones the deliveries that an endpoint must get in order. It does so while another
// process has one of them in flight, or while an earlier one that was not attempted is not due.
func (l *Loaded) loadInOrder(ctx context.Context, tx *db.Tx, e *Endpoint, waiting []*Delivery, nodes []payment.ID) error {
	if !slices.ContainsFunc(waiting, func(d *Delivery) bool { return d.InOrder }) {
		return nil
	}
	// One that is due later than in a minute was postponed by a clock that was ahead.
	rows, err := tx.Query(ctx, `SELECT t.claimed_by, t.event_number, t.next_at FROM deliveries t WHERE t.merchant_id = $1 AND t.endpoint_id = $2
		AND length(t.endpoint_id) > 0 AND t.state <> 'delivered' AND t.state = 'pending' AND t.event_number <= $3
		AND (length(t.claimed_by) > 0 OR t.schedule_step = 0 AND t.next_at > $4 AND t.next_at <= $5)`,
		e.Merchant[:], e.ID[:], min(e.Position, e.CatchUpTo), micros(l.now), micros(l.now.Add(pauseLong)))
	var until time.Time // if another process has one in flight
	earlier, err := db.Collect(rows, err, func(r db.Scanner) (d Delivery, err error) {
		err = r.Scan((*idDest)(&d.ClaimedBy), &d.EventNumber, (*timeDest)(&d.NextAt))
		if !d.ClaimedBy.IsZero() && !slices.Contains(nodes, d.ClaimedBy) {
			until = l.now.Add(inOrderPause)
		}
		return d, err
	})
	for i, d := range waiting {
		at := until
		for j := range earlier {
			if o := &earlier[j]; o.ClaimedBy.IsZero() && o.EventNumber < d.EventNumber && o.NextAt.After(at) {
				at = o.NextAt
			}
		}
		if d.InOrder && !at.IsZero() {
			d.Postponed = at.Add(time.Duration(i+1) * time.Microsecond) // so that they are claimed in order
		}
	}
	return err
}

// An endpoint that is down is tried with its oldest event only, so that it gets missed events in
// order once it answers. After an event that was tried for about triedLong the next one is tried
// too, at once: the receiver may refuse the first one alone, and if it does not, that one still
// comes first.
//
// The pause before they are tried again grows with the time that the endpoint has failed: as long
// as that time up to a minute, then a minute for each hour in which the gateway ran. So an endpoint
// waits little once it answers, and five days cost some 370 attempts, or twice as many. A time that
// the receiver names is honoured.
const (
	triedLong  = 100 * time.Minute
	pauseLeast = time.Second
	pauseLong  = time.Minute
	// restWait is how long the deliveries wait that are not tried while the endpoint is down. Its
	// next success makes all of them due.
	restWait = time.Hour
)

// pause is how long an endpoint that is down is not tried after its last failure.
func (e *Endpoint) pause() time.Duration {
	failing := max(e.LastFailure.Sub(e.FailingSince), pauseLeast)
	return max(min(failing, pauseLong), time.Duration(e.FailedHours)*pauseLong)
}

// attemptsBeforeNext is the number of attempts of an event after which the next one is tried too.
func (e *Endpoint) attemptsBeforeNext() int64 { return int64(triedLong / max(e.pause(), pauseLong)) }

// wait is how long from now on an endpoint that is down is not tried; 0 or less if it is now. If the
// clock was set back it is tried.
func (e *Endpoint) wait(now time.Time) time.Duration {
	if now.Before(e.LastFailure) {
		return 0
	}
	return max(e.LastFailure.Add(e.pause()).Sub(now), min(e.RetryAt.Sub(now), retryMost))
}

// retryMost bounds RetryAt, which a clock that was ahead may have set.
const retryMost = 24 * time.Hour

// loadOldest orders the pending deliveries of an endpoint that is down. The oldest one, and the one
// that is tried after it, come before those that are due; the others are postponed, so that none
// overtakes it. If the oldest one is in flight or the endpoint pauses, all are postponed. One of
// those that wait becomes due after the pause, so that the endpoint is tried again.
func (l *Loaded) loadOldest(ctx context.Context, tx *db.Tx, e *Endpoint, waiting []*Delivery, _ []payment.ID) error {
	wait, tried := e.wait(l.now), []*Delivery(nil)
	if wait <= 0 {
		var err error
		if tried, err = l.putOldestFirst(ctx, tx, e); err != nil {
			return err
		}
		wait = e.pause()
	}
	next, rest := l.now.Add(wait), l.now.Add(max(wait, restWait))
	at := next
	for _, d := range waiting {
		if !d.RefusedAlone() && !slices.Contains(tried, d) {
			d.Postponed, at = at, rest
		}
	}
	if len(tried) == 0 || at == rest {
		return nil
	}
	newest, err := l.pendingAt(ctx, tx, e, "p.event_number > $3 ORDER BY p.event_number DESC", tried[len(tried)-1].EventNumber)
	if newest == nil {
		return err
	}
	newest.Planned, newest.Postponed = newest.NextAt, next
	ref := Ref{newest.Merchant, newest.ID}
	l.deliveries.rows[ref] = newest
	l.deliveries.due[e.Merchant] = append(l.deliveries.due[e.Merchant], ref)
	return nil
}

// pendingAt reads and locks one pending delivery of an endpoint, except deliveries that it refuses
// alone. It returns nil if there is none, or if it is in flight or locked.
func (l *Loaded) pendingAt(ctx context.Context, tx *db.Tx, e *Endpoint, which string, args ...any) (*Delivery, error) {
	rows, err := tx.Query(ctx, "SELECT "+deliveryTable.selected+` FROM deliveries t WHERE t.merchant_id = $1 AND t.id = (
		SELECT p.id FROM deliveries p WHERE p.merchant_id = $1 AND p.endpoint_id = $2 AND length(p.endpoint_id) > 0 AND p.state <> 'delivered'
		AND p.state = 'pending' AND p.`+fewRestarts+` AND `+which+" LIMIT 1)"+tx.SkipLocked(), append([]any{e.Merchant[:], e.ID[:]}, args...)...)
	list, err := db.Collect(rows, err, scanDelivery)
	if err != nil || len(list) == 0 || list[0].State != DeliveryPending || !list[0].ClaimedBy.IsZero() {
		return nil, err
	}
	return list[0], nil
}

// putOldestFirst returns the deliveries that are to be tried, in order; none if the oldest one is in
// flight, or locked.
func (l *Loaded) putOldestFirst(ctx context.Context, tx *db.Tx, e *Endpoint) (tried []*Delivery, err error) {
	oldest, err := l.pendingAt(ctx, tx, e, "p.event_number > 0 ORDER BY p.event_number")
	if oldest == nil {
		return nil, err
	}
	if int64(oldest.Attempts) >= e.attemptsBeforeNext() {
		second, err := l.pendingAt(ctx, tx, e, `p.event_number > $3 AND (p.attempts < $4 OR length(p.claimed_by) > 0 OR p.next_at <= $5)
			ORDER BY p.event_number`, oldest.EventNumber, e.attemptsBeforeNext(), micros(l.now))
		if err != nil {
			return nil, err
		}
		if second != nil {
			if second, err = l.putFirst(ctx, tx, e, second); err != nil || second == nil {
				return nil, err
			}
			tried = append(tried, second)
		}
	}
	if oldest, err = l.putFirst(ctx, tx, e, oldest); err != nil || oldest == nil {
		return nil, err
	}
	return slices.Insert(tried, 0, oldest), nil
}

// putFirst puts a pending delivery before those that are due, and returns it as it was loaded.
func (l *Loaded) putFirst(ctx context.Context, tx *db.Tx, e *Endpoint, d *Delivery) (*Delivery, error) {
	ref, due := Ref{d.Merchant, d.ID}, l.deliveries.due[e.Merchant]
	if at := slices.Index(due, ref); at >= 0 {
		l.deliveries.due[e.Merchant] = slices.Concat([]Ref{ref}, due[:at], due[at+1:])
		return l.deliveries.rows[ref], nil
	}
	damaged := map[int64]bool{}
	events, err := db.Select(ctx, tx, eventByNumber, [][]any{{d.Merchant[:], d.EventNumber}}, scanDueEvent(tx.Keys(), damaged))
	if err != nil || len(events) == 0 {
		return nil, err
	}
	d.Event, d.Damaged, d.Planned = events[0], damaged[d.EventNumber], d.NextAt
	d.direct(map[payment.ID]Endpoint{e.ID: *e})
	l.deliveries.rows[ref] = d
	l.deliveries.due[e.Merchant] = slices.Concat([]Ref{ref}, due)
	return d, nil
}

// direct sets where a due delivery to an endpoint goes: if that is deleted or disabled,
// nowhere.
func (d *Delivery) direct(to map[payment.ID]Endpoint) {
	e, ok := to[d.Endpoint]
	switch {
	case !ok:
		d.Stopped = DeliveryDisabled
	case !e.Enabled:
		d.Stopped = DeliveryPaused
	default:
		d.Moved = d.URL != e.URL
		d.URL, d.InOrder, d.Down = e.URL, d.EventNumber <= e.CatchUpTo, e.IsDown()
	}
}
