package store

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// Endpoint is a merchant's receiver of events, chosen by their types.
type Endpoint struct {
	Merchant    payment.ID
	ID          payment.ID
	URL         string
	Events      []string // see [payment.IsEventFilter]
	Description string
	Enabled     bool
	// Position is the number of the last event whose delivery exists. Events up to
	// CatchUpTo are sent in order, one at a time.
	Position, CatchUpTo int64
	// ReadTo is the highest Position so far. It is set back if a delivery on which the endpoint
	// relied went to another endpoint or URL. An event up to it without a delivery was not for this
	// endpoint, or its delivery was removed for its age.
	ReadTo                     int64
	Failures                   int       // since the last success
	FailingSince               time.Time // the first of them; zero if there is none
	FailedHours                int       // counted since then
	CountedAt                  time.Time // when the last of these hours was counted; at first, FailingSince
	LastSuccessAt, LastFailure time.Time
	RetryAt                    time.Time // until then the receiver asked for no attempts, by the latest Retry-After of its failures; zero if it named no time
	Version                    int64     // increases by each change but those of its health
	CreatedAt                  time.Time
	UpdatedAt                  time.Time

	// The secrets, sealed. Until PreviousUntil the previous one signs too.
	secret, previous []byte
	PreviousUntil    time.Time

	Damaged error // ErrChangedOutside if the row was changed outside the gateway: it gets no event
	mac     []byte
}

// Ref names the endpoint.
func (e *Endpoint) Ref() Ref { return Ref{e.Merchant, e.ID} }

var endpointTable = newTable("webhook_endpoints", []string{"id"},
	idColumn("merchant_id", func(e *Endpoint) *payment.ID { return &e.Merchant }),
	idColumn("id", func(e *Endpoint) *payment.ID { return &e.ID }),
	textColumn("url", func(e *Endpoint) *string { return &e.URL }).as(mutable),
	wordsColumn("events", func(e *Endpoint) *[]string { return &e.Events }).as(mutable),
	textColumn("description", func(e *Endpoint) *string { return &e.Description }).as(mutable),
	flagColumn("enabled", func(e *Endpoint) *bool { return &e.Enabled }).as(mutable),
	bytesColumn("secret", func(e *Endpoint) *[]byte { return &e.secret }).as(mutable),
	bytesColumn("previous_secret", func(e *Endpoint) *[]byte { return &e.previous }).as(mutable),
	timeColumn("previous_until", func(e *Endpoint) *time.Time { return &e.PreviousUntil }).as(mutable),
	intColumn("position", func(e *Endpoint) *int64 { return &e.Position }).as(mutable),
	intColumn("catch_up_to", func(e *Endpoint) *int64 { return &e.CatchUpTo }).as(mutable),
	intColumn("read_to", func(e *Endpoint) *int64 { return &e.ReadTo }).as(mutable),
	intColumn("failures", func(e *Endpoint) *int { return &e.Failures }).as(mutable),
	timeColumn("failing_since", func(e *Endpoint) *time.Time { return &e.FailingSince }).as(mutable),
	intColumn("failed_hours", func(e *Endpoint) *int { return &e.FailedHours }).as(mutable),
	timeColumn("counted_at", func(e *Endpoint) *time.Time { return &e.CountedAt }).as(mutable),
	timeColumn("last_success_at", func(e *Endpoint) *time.Time { return &e.LastSuccessAt }).as(mutable),
	timeColumn("last_failure_at", func(e *Endpoint) *time.Time { return &e.LastFailure }).as(mutable),
	timeColumn("retry_at", func(e *Endpoint) *time.Time { return &e.RetryAt }).as(mutable),
	intColumn("version", func(e *Endpoint) *int64 { return &e.Version }).as(mutable),
	timeColumn("created_at", func(e *Endpoint) *time.Time { return &e.CreatedAt }),
	timeColumn("updated_at", func(e *Endpoint) *time.Time { return &e.UpdatedAt }).as(mutable),
	bytesColumn("mac", func(e *Endpoint) *[]byte { return &e.mac }).as(mutable),
)

// The secrets are sealed.
var endpointHash = endpointTable.hashOf("merchant_id", "id", "url", "events", "enabled", "previous_until", "created_at")

var (
	endpointUpdate     = endpointTable.updateBy("", "merchant_id", "id")
	endpointByMerchant = endpointTable.selectBy("t.merchant_id, t.id", "merchant_id")
)

// endpointSecret is the cell of both secrets: the current one becomes the previous one in its
// sealed form.
func endpointSecret(merchant, id payment.ID) db.AssociatedData {
	return db.AssociatedData{Table: "webhook_endpoints", Merchant: merchant, ID: id, Column: "secret"}
}

// SealEndpointSecret seals a secret for an endpoint.
func (s *Store) SealEndpointSecret(merchant, id payment.ID, secret string) []byte {
	return s.Keys().Seal(endpointSecret(merchant, id), []byte(secret))
}

// Rotate gives an endpoint a new sealed secret. The previous one stays valid until a time; zero
// drops it. Rotate reports false if the endpoint has that secret already.
func (e *Endpoint) Rotate(sealed []byte, until time.Time) bool {
	if subtle.ConstantTimeCompare(e.secret, sealed) == 1 {
		return false
	}
	e.previous, e.PreviousUntil = nil, time.Time{}
	if !until.IsZero() {
		e.previous, e.PreviousUntil = e.secret, until
	}
	e.secret = sealed
	return true
}

// EndpointSecrets opens the secrets of an endpoint: the current one, and the previous one,
// which signs until PreviousUntil, "" if there is none. Errors: [db.ErrSealed], ErrChangedOutside.
func (s *Store) EndpointSecrets(e *Endpoint) (current, previous string, err error) {
	current, previous, err = e.secrets(s.Keys())
	if err == nil {
		err = e.Damaged
	}
	if err != nil {
		return "", "", err
	}
	return current, previous, nil
}

func (e *Endpoint) secrets(keys *db.Keyring) (current, previous string, err error) {
	cell := endpointSecret(e.Merchant, e.ID)
	plain, err := keys.Open(cell, e.secret)
	if err != nil || len(e.previous) == 0 {
		return string(plain), "", err
	}
	before, err := keys.Open(cell, e.previous)
	return string(plain), string(before), err
}

func scanEndpoint(keys *db.Keyring) func(db.Scanner) (Endpoint, error) {
	return func(r db.Scanner) (Endpoint, error) {
		var e Endpoint
		err := endpointTable.scan(r, &e)
		if err == nil && !endpointHash.authentic(keys, &e, e.mac) {
			e.Damaged = fmt.Errorf("%w: webhook endpoint %s", ErrChangedOutside, e.ID)
		}
		return e, err
	}
}

// merchantKey names all rows of a merchant.
type merchantKey payment.ID

func (k merchantKey) key() []any { return []any{k[:]} }

// Endpoints locks all endpoints of a merchant.
func (n *Needs) Endpoints(merchant payment.ID) {
	if k := merchantKey(merchant); !slices.Contains(n.endpoints.merchants, k) {
		n.endpoints.merchants = append(n.endpoints.merchants, k)
	}
}

// NewEndpoint is Endpoints for an operation that adds one. Of two concurrent operations, the second
// one waits and reads the endpoint of the first one.
func (n *Needs) NewEndpoint(merchant payment.ID) {
	n.Endpoints(merchant)
	n.endpoints.fresh = append(n.endpoints.fresh, merchant)
}

// Undelivered locks all endpoints of a merchant, and reads the numbers that [Loaded.Undelivered]
// returns for one of them.
func (n *Needs) Undelivered(merchant, endpoint payment.ID) {
	n.Endpoints(merchant)
	if ref := (Ref{merchant, endpoint}); !slices.Contains(n.endpoints.undelivered, ref) {
		n.endpoints.undelivered = append(n.endpoints.undelivered, ref)
	}
}

type endpointNeeds struct {
	fresh       []payment.ID
	merchants   []merchantKey
	undelivered []Ref
	dispatches  []dispatchNeed
	shared      []sharedNeed
}

type loadedEndpoints struct {
	rows        map[Ref]Endpoint
	of          map[payment.ID][]payment.ID // the ids of a merchant's, oldest first
	undelivered map[Ref]int64               // 0 for none
	last        map[payment.ID]int64        // numbers of the last events
	dispatches  map[Ref]Dispatch
	shared      map[Ref][]payment.Event
}

func newLoadedEndpoints() loadedEndpoints {
	return loadedEndpoints{
		rows: map[Ref]Endpoint{}, of: map[payment.ID][]payment.ID{}, undelivered: map[Ref]int64{}, last: map[payment.ID]int64{},
		dispatches: map[Ref]Dispatch{}, shared: map[Ref][]payment.Event{},
	}
}

func (l *loadedEndpoints) add(e Endpoint) {
	if _, known := l.rows[e.Ref()]; !known {
		l.of[e.Merchant] = append(l.of[e.Merchant], e.ID)
	}
	l.rows[e.Ref()] = e
}

// downAfter is the number of failures after which an endpoint is down: it catches up in order once
// it answers again.
const downAfter = 5

// IsDown reports whether so many attempts failed in a row that the endpoint must catch up in order
// once it answers again.
func (e *Endpoint) IsDown() bool { return e.Failures >= downAfter }

func (l *Loaded) loadEndpoints(ctx context.Context, tx *db.Tx, n *Needs) error {
	if len(n.endpoints.merchants) == 0 {
		return nil
	}
	l.endpoints = newLoadedEndpoints()
	for _, m := range n.endpoints.fresh {
		rows, err := tx.Query(ctx, "SELECT id FROM merchants WHERE id = $1"+tx.ForUpdate(), m[:])
		if _, err := db.Collect(rows, err, scanID); err != nil {
			return fmt.Errorf("endpoints: %w", err)
		}
	}
	list, err := db.Select(ctx, tx, endpointByMerchant, keysOf(n.endpoints.merchants), scanEndpoint(tx.Keys()))
	if err != nil {
		return fmt.Errorf("endpoints: %w", err)
	}
	for i := range list {
		e := &list[i]
		l.endpoints.add(*e)
		if e.IsDown() || slices.Contains(n.endpoints.undelivered, e.Ref()) {
			if err := l.loadUndelivered(ctx, tx, e); err != nil {
				return fmt.Errorf("undelivered events: %w", err)
			}
		}
	}
	return nil
}

// loadUndelivered reads the number of the oldest event that an endpoint has not accepted, and of
// the merchant's last one. Deliveries that were given up before it began to fail do not count. Nor
// do deliveries that it refuses alone, unless they wait for it to be enabled.
func (l *Loaded) loadUndelivered(ctx context.Context, tx *db.Tx, e *Endpoint) error {
	since := e.FailingSince
	if since.IsZero() {
		since = l.now
	}
	oldest, err := collectNumber(tx.Query(ctx, `SELECT t.event_number FROM deliveries t WHERE t.merchant_id = $1 AND t.endpoint_id = $2
		AND length(t.endpoint_id) > 0 AND t.state <> 'delivered' AND (t.state = 'paused' OR t.`+fewRestarts+` AND (t.state = 'pending' OR t.state = 'exhausted' AND t.updated_at >= $3))
		ORDER BY t.event_number LIMIT 1`, e.Merchant[:], e.ID[:], micros(since)))
	if err != nil {
		return err
	}
	if !e.FailingSince.IsZero() {
		ofOrder, err := oldestGivenUp(ctx, tx, e)
		if err != nil {
			return err
		}
		if ofOrder > 0 && (oldest == 0 || ofOrder < oldest) {
			oldest = ofOrder
		}
	}
	l.endpoints.undelivered[e.Ref()] = oldest
	last, err := collectNumber(tx.Query(ctx, "SELECT last_number FROM event_counters WHERE merchant_id = $1", e.Merchant[:]))
	if last > 0 {
		l.endpoints.last[e.Merchant] = last
	}
	return err
}

// oldestGivenUp reads the number of the oldest event whose delivery for its order, to the URL of an
// endpoint, was given up while the endpoint failed; 0 if there is none. The endpoint relied on that
// delivery.
func oldestGivenUp(ctx context.Context, tx *db.Tx, e *Endpoint) (number int64, err error) {
	return collectNumber(tx.Query(ctx, `SELECT t.event_number FROM deliveries t WHERE t.merchant_id = $1 AND t.event_number <= $2
		AND length(t.endpoint_id) = 0 AND t.state = 'exhausted' AND t.url = $3 AND t.updated_at >= $4
		ORDER BY t.event_number LIMIT 1`, e.Merchant[:], e.Position, e.URL, micros(e.FailingSince)))
}

// collectNumber is the one number that a query finds, 0 if it finds none.
func collectNumber(rows *sql.Rows, err error) (int64, error) {
	list, err := db.Collect(rows, err, func(r db.Scanner) (number int64, err error) { return number, r.Scan(&number) })
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0], nil
}

// Endpoint is a loaded endpoint; false if there is none.
func (l *Loaded) Endpoint(merchant, id payment.ID) (Endpoint, bool) {
	e, ok := l.endpoints.rows[Ref{merchant, id}]
	return e, ok
}

// Endpoints are the loaded endpoints of a merchant, oldest first.
func (l *Loaded) Endpoints(merchant payment.ID) []Endpoint {
	var list []Endpoint
	for _, id := range l.endpoints.of[merchant] {
		if e, ok := l.Endpoint(merchant, id); ok {
			list = append(list, e)
		}
	}
	return list
}

// Undelivered returns the number of the oldest event that an endpoint has not accepted, 0 if there
// is none, and the number of the merchant's last event. They are loaded for an endpoint that is
// down, or by [Needs.Undelivered]; ok is false if they were not.
func (l *Loaded) Undelivered(e *Endpoint) (oldest, last int64, ok bool) {
	oldest, ok = l.endpoints.undelivered[e.Ref()]
	return oldest, l.endpoints.last[e.Merchant], ok
}

type endpointChanges struct {
	added, changed []Endpoint
	deleted        []Ref
	stopped        []stop
}

// stop changes the state of the pending deliveries of an endpoint.
type stop struct {
	Ref

	state DeliveryState
	but   bool // those that it refuses alone
}

// AddEndpoint adds an endpoint in its first version, which gets the events from now on.
func (c *Changes) AddEndpoint(e Endpoint) {
	e.Version, e.CreatedAt, e.UpdatedAt = 1, c.l.now, c.l.now
	c.l.endpoints.add(e)
	c.endpoints.added = append(c.endpoints.added, e)
	c.count++
}

// SetEndpoint changes a loaded endpoint.
func (c *Changes) SetEndpoint(e Endpoint) {
	c.l.endpoints.rows[e.Ref()] = e
	c.endpoints.changed = append(c.endpoints.changed, e)
	c.count++
}

// DeleteEndpoint removes a loaded endpoint.
func (c *Changes) DeleteEndpoint(e Endpoint) {
	delete(c.l.endpoints.rows, e.Ref())
	c.endpoints.deleted = append(c.endpoints.deleted, e.Ref())
	c.count++
}

// StopDeliveries gives the deliveries of an endpoint that are pending, and not claimed,
// another state.
func (c *Changes) StopDeliveries(e *Endpoint, state DeliveryState) {
	c.stopDeliveries(stop{e.Ref(), state, false})
}

// PauseForCatchUp pauses the deliveries of an endpoint that are pending and not claimed, except
// those that it refuses alone.
func (c *Changes) PauseForCatchUp(e *Endpoint) {
	c.stopDeliveries(stop{e.Ref(), DeliveryPaused, true})
}

func (c *Changes) stopDeliveries(v stop) {
	for _, d := range c.l.deliveries.rows {
		if d.Endpoint == v.ID && d.Merchant == v.Merchant && d.ClaimedBy.IsZero() && d.State == DeliveryPending && !(v.but && d.RefusedAlone()) {
			d.State, d.NextAt = v.state, time.Time{}
		}
	}
	c.endpoints.stopped = append(c.endpoints.stopped, v)
	c.count++
}

// saveEndpoints writes the endpoints. Each row is locked, so its last change counts.
func (c *Changes) saveEndpoints(ctx context.Context, tx *db.Tx) error {
	v := &c.endpoints
	for i := range v.added {
		e := v.added[i]
		if err := lastEvent(ctx, tx, &e); err != nil {
			return fmt.Errorf("endpoint: %w", err)
		}
		e.mac = endpointHash.mac(tx.Keys(), &e)
		if err := tx.InsertNew(ctx, endpointTable.insert, endpointTable.row(&e)); err != nil {
			return fmt.Errorf("endpoint: %w", err)
		}
	}
	var rows [][]any
	for i := range v.changed {
		later := func(e Endpoint) bool { return e.Ref() == v.changed[i].Ref() }
		if !slices.ContainsFunc(v.changed[i+1:], later) && !slices.Contains(v.deleted, v.changed[i].Ref()) {
			if v.changed[i].Damaged == nil { // a forged row stays so
				v.changed[i].mac = endpointHash.mac(tx.Keys(), &v.changed[i])
			}
			rows = append(rows, endpointUpdate.row(&v.changed[i]))
		}
	}
	missed, err := tx.Update(ctx, endpointUpdate.RowUpdate, rows...)
	if err == nil && len(missed) > 0 {
		err = fmt.Errorf("%w: endpoint", ErrConflict)
	}
	if err != nil {
		return err
	}
	for _, ref := range v.deleted {
		if err := tx.ExecOne(ctx, "DELETE FROM webhook_endpoints WHERE merchant_id = $1 AND id = $2", ref.Merchant[:], ref.ID[:]); err != nil {
			return fmt.Errorf("endpoint: %w", err)
		}
	}
	return nil
}

// lastEvent makes a new endpoint begin after the merchant's last event. The counter is
// locked: events that get their numbers later are the endpoint's.
func lastEvent(ctx context.Context, tx *db.Tx, e *Endpoint) (err error) {
	e.Position, err = lockEvents(ctx, tx, e.Merchant)
	e.ReadTo = e.Position
	return err
}

// lockEvents locks the counter of a merchant's events, and returns it.
func lockEvents(ctx context.Context, tx *db.Tx, merchant payment.ID) (last int64, err error) {
	err = tx.QueryRow(ctx, `INSERT INTO event_counters (merchant_id, last_number) VALUES ($1, 0)
		ON CONFLICT (merchant_id) DO UPDATE SET last_number = event_counters.last_number RETURNING last_number`, merchant[:]).Scan(&last)
	return last, err
}

// StopsDeliveries reports whether this commit changes the pending deliveries of an endpoint: then none
// can be made due in it.
func (c *Changes) StopsDeliveries(e *Endpoint) bool {
	return slices.ContainsFunc(c.endpoints.stopped, func(h stop) bool { return h.Ref == e.Ref() })
}

// saveStopped follows saveDeliveries, which writes the loaded deliveries as they were decided.
func (c *Changes) saveStopped(ctx context.Context, tx *db.Tx) error {
	for _, h := range c.endpoints.stopped {
		text := `UPDATE deliveries SET state = $1, next_at = 0 WHERE merchant_id = $2 AND endpoint_id = $3
			AND length(endpoint_id) > 0 AND state <> 'delivered' AND state IN ('pending', 'paused') AND length(claimed_by) = 0 AND state <> $1`
		if h.but {
			text += " AND " + fewRestarts
		}
		if _, err := tx.ExecCount(ctx, text, string(h.state), h.Merchant[:], h.ID[:]); err != nil {
			return fmt.Errorf("deliveries of endpoints: %w", err)
		}
	}
	return nil
}
