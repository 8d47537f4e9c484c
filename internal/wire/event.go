package wire

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Attempt is one attempt to deliver an event. A zero time means not yet.
type Attempt struct {
	URL       string
	Number    int           // from 1
	Status    int           // HTTP status; 0 without an answer
	Latency   time.Duration // until the end of the answer
	Error     string
	Response  string // the receiver's answer, in any encoding
	CreatedAt time.Time
	EndedAt   time.Time
}

type attemptView struct {
	URL       string    `json:"url"`
	Number    int       `json:"number"`
	Status    int       `json:"status,omitzero"`
	LatencyMs *int64    `json:"latencyMs,omitempty"`
	Error     string    `json:"error,omitempty"`
	Response  string    `json:"response,omitempty"`
	CreatedAt Timestamp `json:"createdAt"`
	EndedAt   Timestamp `json:"endedAt,omitempty"`
}

// Attempts is the answer of GET /events/{id}/attempts.
func Attempts(list []Attempt) ([]byte, error) {
	views := make([]attemptView, len(list))
	for i := range list {
		views[i] = list[i].view()
	}
	return marshalList(views)
}

// OneAttempt is the answer of POST /webhook-endpoints/{id}/test.
func OneAttempt(a *Attempt) ([]byte, error) {
	view := a.view()
	return json.Marshal(&view)
}

func (a *Attempt) view() attemptView {
	v := attemptView{
		URL: a.URL, Number: a.Number, Status: a.Status, Error: strings.ToValidUTF8(a.Error, "\ufffd"),
		Response:  strings.ToValidUTF8(a.Response, "\ufffd"),
		CreatedAt: TimestampOf(a.CreatedAt), EndedAt: TimestampOf(a.EndedAt),
	}
	if !a.EndedAt.IsZero() {
		latency := a.Latency.Milliseconds()
		v.LatencyMs = &latency
	}
	return v
}

// WebhookSecret is the answer of GET /webhook-secret.
func WebhookSecret(secret string) ([]byte, error) {
	return json.Marshal(struct {
		Secret string `json:"secret"`
	}{secret})
}
