package httpapi

import (
	"encoding/binary"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

func (a *API) listEvents(c *call) error {
	q := c.query()
	limit, after := q.limit(), a.cursorNumber(c, q)
	if err := q.done(); err != nil {
		return err
	}
	list, err := a.reader.Events(c.r.Context(), c.merchant.ID, after, limit)
	if err != nil {
		return readError(err)
	}
	body := []byte(`{"data":[`)
	for i := range list {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, list[i].Body...)
		after = list[i].Number
	}
	next := a.cursor(c, binary.BigEndian.AppendUint64(nil, uint64(after)))
	return c.json(http.StatusOK, append(body, `],"nextCursor":"`+next+`"}`...))
}

// event reads the event that the path names.
func (a *API) event(c *call) (payment.Event, error) {
	id, err := payment.ParseEventID(c.r.PathValue("id"))
	if err != nil {
		return payment.Event{}, problem.New(problem.NotFound, "There is no such resource.")
	}
	e, err := a.reader.Event(c.r.Context(), c.merchant.ID, id)
	return e, readError(err)
}

func (a *API) getEvent(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	e, err := a.event(c)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, e.Body)
}

type attemptView struct {
	URL       string        `json:"url"`
	Number    int           `json:"number"`
	Status    int           `json:"status,omitzero"`
	LatencyMs *int64        `json:"latencyMs,omitempty"`
	Error     string        `json:"error,omitempty"`
	Response  string        `json:"response,omitempty"`
	CreatedAt payment.Stamp `json:"createdAt"`
	EndedAt   payment.Stamp `json:"endedAt,omitempty"`
}

func viewAttempt(t *store.Attempt) attemptView {
	v := attemptView{
		URL: t.URL, Number: t.Number, Status: t.Status, Error: strings.ToValidUTF8(t.Error, "\ufffd"),
		Response:  strings.ToValidUTF8(t.Response, "\ufffd"), // receivers answer what they like
		CreatedAt: payment.StampOf(t.CreatedAt), EndedAt: payment.StampOf(t.EndedAt),
	}
	if !t.EndedAt.IsZero() {
		latency := t.Latency.Milliseconds()
		v.LatencyMs = &latency
	}
	return v
}

func (a *API) listAttempts(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	e, err := a.event(c)
	if err != nil {
		return err
	}
	list, err := a.reader.Attempts(c.r.Context(), c.merchant.ID, e.Number)
	if err != nil {
		return readError(err)
	}
	views := make([]attemptView, len(list))
	for i := range list {
		views[i] = viewAttempt(&list[i])
	}
	return c.marshal(views)
}

// marshal answers with {data: list}.
func (c *call) marshal(list any) error {
	body, err := json.Marshal(struct {
		Data any `json:"data"`
	}{list})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}

func (a *API) redeliverEvent(c *call) error {
	e, err := a.event(c)
	if err != nil {
		return err
	}
	if err := a.flow.Redeliver(c.r.Context(), c.merchant.ID, e.ID); err != nil {
		return err
	}
	return c.empty(http.StatusAccepted)
}

func (a *API) getWebhookSecret(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	secret, err := a.reader.WebhookSecret(c.r.Context(), c.merchant.ID)
	if err != nil {
		return readError(err)
	}
	body, err := json.Marshal(struct {
		Secret string `json:"secret"`
	}{secret})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}
