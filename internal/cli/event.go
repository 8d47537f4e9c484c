package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/store"
)

type eventCommand struct {
	settings

	List eventList `cmd:"" help:"List events, newest first."`
	Show eventShow `cmd:"" help:"Show an event as it is delivered, its deliveries and their attempts."`
}

type deliveryCommand struct {
	settings

	List deliveryList `cmd:"" help:"List deliveries of events, newest first."`
	Show deliveryShow `cmd:"" help:"Show a delivery: its event, all deliveries of it, and their attempts."`
}

type eventList struct{ listFlags }

// eventView is an event as operators' commands show it.
type eventView struct {
	Merchant string          `json:"merchant"`
	Number   int64           `json:"number"`
	Subject  string          `json:"subjectId"`
	Event    json.RawMessage `json:"event"` // as it is delivered, but for a masked Pix key

	*deliveredView // if one event is shown
}

// deliveredView is what became of an event.
type deliveredView struct {
	Deliveries []deliveryView `json:"deliveries"`
	Attempts   []attemptView  `json:"attempts"`
}

// deliveryView is a delivery as operators' commands show it. The path of the URL is left out: it may
// have a token.
type deliveryView struct {
	ID        string     `json:"id"`
	Merchant  string     `json:"merchant,omitempty"` // in a list
	Event     int64      `json:"eventNumber"`
	Subject   string     `json:"subjectId"`
	Endpoint  string     `json:"endpointId,omitempty"` // "": the URL of the order
	Host      string     `json:"host"`
	State     string     `json:"state"`
	Attempts  int        `json:"attempts"`
	NextAt    *time.Time `json:"nextAt,omitempty"`
	ClaimedBy string     `json:"claimedBy,omitempty"`
	CaseID    string     `json:"caseId,omitempty"`
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
}

type attemptView struct {
	Delivery  string     `json:"deliveryId"`
	Number    int        `json:"number"`
	Status    int        `json:"status,omitempty"` // HTTP
	LatencyMs int64      `json:"latencyMs"`
	Error     string     `json:"error,omitempty"`
	CreatedAt time.Time  `json:"createdAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}

// hostOf is the host of a receiver.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return "(no host)"
}

func viewDelivery(d *store.Delivery, merchant string) deliveryView {
	return deliveryView{
		ID: d.ID.String(), Merchant: merchant, Event: d.EventNumber, Subject: d.Subject.String(), Endpoint: idIfAny(d.Endpoint), Host: hostOf(d.URL),
		State: string(d.State), Attempts: d.Attempts, NextAt: timeIfAny(d.NextAt), ClaimedBy: idIfAny(d.ClaimedBy), CaseID: idIfAny(d.Case),
		CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
	}
}

// Run lists events.
func (c *eventList) Run(r *runner, root *commands) error {
	return list(r, &root.Event.settings, &c.listFlags, lister[payment.Event, eventView]{
		read: query.Events, head: []string{"CREATED", "EVENT", "NUMBER", "TYPE", "MERCHANT"}, cut: [][]int{{4}}, none: "No events.",
		show: func(e *payment.Event, names map[payment.ID]string, now time.Time) (eventView, []string, error) {
			v := eventView{Merchant: names[e.Merchant], Number: e.Number, Subject: e.Subject.String(), Event: query.MaskEvent(e.Body)}
			return v, []string{tableTime(e.CreatedAt, now), payment.PublicEventID(e.ID), strconv.FormatInt(e.Number, 10), string(e.Type), v.Merchant}, nil
		},
	})
}

type eventShow struct {
	reveal

	ID string `arg:"" help:"The event's id, such as evt_…"`
}

// Run shows an event.
func (c *eventShow) Run(r *runner, root *commands) error {
	if err := c.check(); err != nil {
		return err
	}
	id, err := payment.ParseEventID(strings.TrimSpace(c.ID))
	if err != nil {
		return configError{fmt.Errorf("%q is not the id of an event: porteira event list shows ids", c.ID)}
	}
	return r.admin(&root.Event.settings, func(a *app.Admin) error { return showEvent(r, a, id, "event "+c.ID, &c.reveal) })
}

type deliveryList struct {
	listFlags

	Status store.DeliveryState `help:"Only those in this state: pending, delivered, exhausted, disabled or paused." placeholder:"STATE"`
}

// Run lists deliveries.
func (c *deliveryList) Run(r *runner, root *commands) error {
	state, err := checkStatus(c.Status, store.DeliveryStates)
	if err != nil {
		return err
	}
	return list(r, &root.Delivery.settings, &c.listFlags, lister[*store.Delivery, deliveryView]{
		Filter: query.Filter{Status: state}, read: query.Deliveries,
		head: []string{"CREATED", "ID", "STATE", "TRIES", "NEXT", "EVENT", "HOST"}, cut: [][]int{{6}}, none: "No deliveries.",
		show: func(o **store.Delivery, names map[payment.ID]string, now time.Time) (deliveryView, []string, error) {
			d, v, next := *o, viewDelivery(*o, names[(*o).Merchant]), within((*o).NextAt, now)
			if !d.ClaimedBy.IsZero() {
				next = "now"
			}
			return v, []string{tableTime(d.CreatedAt, now), d.ID.String(), string(d.State), strconv.Itoa(d.Attempts), next, strconv.FormatInt(d.EventNumber, 10), v.Host}, nil
		},
	})
}

type deliveryShow struct {
	ID string `arg:"" help:"The delivery's id: porteira delivery list shows it."`
}

// Run shows a delivery.
func (c *deliveryShow) Run(r *runner, root *commands) error {
	id, err := payment.ParseID(strings.TrimSpace(c.ID))
	if err != nil {
		return configError{fmt.Errorf("%q is not the id of a delivery: porteira delivery list shows ids", c.ID)}
	}
	return r.admin(&root.Delivery.settings, func(a *app.Admin) error { return showEvent(r, a, id, "delivery "+c.ID, &reveal{}) })
}

// showEvent shows an event and what became of it.
func showEvent(r *runner, a *app.Admin, id payment.ID, what string, c *reveal) error {
	d, err := query.ExplainEvent(r.ctx, a.Store, id)
	if isNotFound(err) {
		return fmt.Errorf("%s not found: porteira event list and porteira delivery list show ids", what)
	}
	if err != nil {
		return err
	}
	m, err := a.Store.Merchant(r.ctx, d.Event.Merchant)
	if err != nil {
		return err
	}
	more := deliveredView{[]deliveryView{}, []attemptView{}}
	for _, v := range d.Deliveries {
		more.Deliveries = append(more.Deliveries, viewDelivery(v, ""))
	}
	for i := range d.Attempts {
		v := &d.Attempts[i]
		more.Attempts = append(more.Attempts, attemptView{v.Delivery.String(), v.Number, v.Status, v.Latency.Milliseconds(), v.Error, v.CreatedAt, timeIfAny(v.EndedAt)})
	}
	view := eventView{Merchant: m.Name, Number: d.Event.Number, Subject: d.Event.Subject.String(), Event: query.MaskEvent(d.Event.Body), deliveredView: &more}
	if c.Reveal {
		if err := c.record(r, a, &query.Subject{Kind: query.KindEvent, Merchant: m.ID, ID: d.Event.ID}); err != nil {
			return err
		}
		view.Event = d.Event.Body
	}
	return r.out.show(view, func(w io.Writer) { printEvent(w, &d.Event, &view, a.Clock.Now()) })
}

func printEvent(w io.Writer, e *payment.Event, v *eventView, now time.Time) {
	pairs(w, [][]string{
		{"event", payment.PublicEventID(e.ID)}, {"merchant", v.Merchant}, {"number", strconv.FormatInt(e.Number, 10)}, {"type", string(e.Type)},
		{"subject", v.Subject}, {"version", strconv.FormatInt(e.Version, 10)}, {"created", stamp(e.CreatedAt)}, {"body", fmt.Sprintf("%d bytes: --json shows it", len(e.Body))},
	})
	var rows [][]string
	for i := range v.Deliveries {
		d := &v.Deliveries[i]
		next := ""
		if d.NextAt != nil {
			next = "next " + within(*d.NextAt, now)
		}
		if d.ClaimedBy != "" {
			next = "in flight"
		}
		rows = append(rows, []string{"  " + d.ID, d.State, plural(d.Attempts, "attempt", "attempts"), next, oneLine(d.Host)})
	}
	section(w, "Deliveries", rows)
	rows = nil
	for i := range v.Attempts {
		t := &v.Attempts[i]
		result := strings.TrimSpace(fmt.Sprintf("%s %s", strings.TrimPrefix(strconv.Itoa(t.Status), "0"), t.Error))
		if t.EndedAt == nil {
			result = "without an end"
		}
		rows = append(rows, []string{"  " + stamp(t.CreatedAt), t.Delivery, strconv.Itoa(t.Number), fmt.Sprintf("%d ms", t.LatencyMs), oneLine(result)})
	}
	section(w, "Attempts", rows)
	if len(v.Deliveries) == 0 {
		_, _ = fmt.Fprintln(w, "\nNo delivery: its order has no webhookUrl and no endpoint wanted it, or it was removed for its age.")
	}
}
