package wire

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// filtersMax is the maximum number of event filters of a webhook endpoint.
const filtersMax = 50

// EndpointRequest is the body of POST /webhook-endpoints and PATCH /webhook-endpoints/{id}.
type EndpointRequest struct {
	URL         Field[string]
	Events      Field[[]string]
	Description Field[string]
	Enabled     Field[bool] // of PATCH only
}

// DecodeEndpoint decodes and validates the body of POST /webhook-endpoints.
func DecodeEndpoint(body []byte, rules Rules) (*EndpointRequest, *problem.Error) {
	q := &EndpointRequest{}
	return q, decode(body, func(v value) {
		q.read(v, false)
		errs := &v.r.errs
		errs.require(At("", "url"), q.URL.Set)
		errs.require(At("", "events"), q.Events.Set)
		q.check(errs, rules)
	})
}

// DecodeEndpointChange decodes and validates the body of PATCH /webhook-endpoints/{id}. An
// empty description removes it.
func DecodeEndpointChange(body []byte, rules Rules) (*EndpointRequest, *problem.Error) {
	q := &EndpointRequest{}
	return q, decode(body, func(v value) {
		q.read(v, true)
		q.check(&v.r.errs, rules)
	})
}

func (q *EndpointRequest) read(body value, change bool) {
	for v := range body.children() {
		switch name := v.name(); {
		case name == "url":
			q.URL = v.text()
		case name == "events":
			q.Events = v.filters()
		case name == "description":
			if q.Description = v.textOrEmpty(); change && q.Description.Set && q.Description.V == "" {
				continue
			}
			if q.Description.Set = q.Description.V != ""; q.Description.Set {
				v.r.errs.text(At("", name), q.Description.V, textMax)
			}
		case name == "enabled" && change:
			q.Enabled = v.boolean()
		default:
			v.failUnknown()
		}
	}
}

func (q *EndpointRequest) check(errs *Errors, rules Rules) {
	if q.URL.Set {
		errs.receiver(At("", "url"), q.URL.V, rules)
	}
}

// filters reads a list of filters of events, each once.
func (v value) filters() (list Field[[]string]) {
	if !v.isArray() {
		return list
	}
	seen := map[string]bool{}
	for entry := range v.children() {
		f := entry.textOrEmpty()
		switch {
		case !f.Set:
			if entry.node().kind == kindNull {
				entry.failType("a string")
			}
		case !payment.IsEventFilter(f.V):
			entry.fail(problem.CodeNotAllowed, `must be a type of events, such as payin.paid, or all of a noun, such as payout.*, or *`)
		case seen[f.V]:
			entry.fail(problem.CodeNotAllowed, "must appear only once")
		default:
			seen[f.V] = true
			list.V = append(list.V, f.V)
		}
		if len(list.V) > filtersMax {
			v.fail(problem.CodeTooLong, "must have at most "+strconv.Itoa(filtersMax)+" entries")
			break
		}
	}
	if v.node().child == 0 {
		v.fail(problem.CodeTooShort, "must have at least one entry")
	}
	list.Set = true
	return list
}

// EndpointFields are the fields of an endpoint that the API shows.
type EndpointFields struct {
	ID                           payment.ID
	URL                          string
	Events                       []string
	Description                  string
	Enabled                      bool
	Secret                       string // "" hides it
	State                        string // ok, failing or disabled
	Failures                     int
	LastSuccessAt, LastFailureAt time.Time
	CreatedAt, UpdatedAt         time.Time
}

type endpointView struct {
	ID          string     `json:"id"`
	URL         string     `json:"url"`
	Events      []string   `json:"events"`
	Description string     `json:"description,omitempty"`
	Enabled     bool       `json:"enabled"`
	Secret      string     `json:"secret,omitempty"`
	Health      healthView `json:"health"`
	CreatedAt   Timestamp  `json:"createdAt"`
	UpdatedAt   Timestamp  `json:"updatedAt"`
}

type healthView struct {
	State               string    `json:"state"`
	LastSuccessAt       Timestamp `json:"lastSuccessAt,omitempty"`
	LastFailureAt       Timestamp `json:"lastFailureAt,omitempty"`
	ConsecutiveFailures int       `json:"consecutiveFailures"`
}

// Endpoint is a webhook endpoint as the API and its events show it.
func Endpoint(f *EndpointFields) ([]byte, error) {
	return json.Marshal(&endpointView{
		ID: f.ID.String(), URL: f.URL, Events: f.Events, Description: f.Description, Enabled: f.Enabled, Secret: f.Secret,
		Health: healthView{
			State: f.State, LastSuccessAt: TimestampOf(f.LastSuccessAt), LastFailureAt: TimestampOf(f.LastFailureAt), ConsecutiveFailures: f.Failures,
		},
		CreatedAt: TimestampOf(f.CreatedAt), UpdatedAt: TimestampOf(f.UpdatedAt),
	})
}
