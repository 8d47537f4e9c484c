package httpapi

import (
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// Page sizes of lists, in entries.
const (
	limitDefault = 50
	limitMax     = 200
)

// query takes the parameters of a request apart, and collects what is faulty.
type query struct {
	values url.Values
	taken  map[string]bool
	errs   payment.Errors
}

func (c *call) query() *query {
	q := &query{taken: map[string]bool{}}
	if c.r.URL.RawQuery == "" {
		return q
	}
	var err error
	if q.values, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		q.fault("query", payment.CodeInvalidFormat, "must be parameters as RFC 3986 and WHATWG URL write them")
	}
	return q
}

func (q *query) fault(name, code, detail string) { q.errs.Add(payment.At("", name), code, detail) }

// get returns a parameter; ok is false where it was not sent once.
func (q *query) get(name string) (value string, ok bool) {
	q.taken[name] = true
	values := q.values[name]
	if len(values) > 1 {
		q.fault(name, payment.CodeNotAllowed, "must not be sent twice")
	}
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

// done tells of every faulty parameter, and of those that nobody asked for.
func (q *query) done() error {
	var unknown []string
	for name := range q.values {
		if !q.taken[name] {
			unknown = append(unknown, name)
		}
	}
	sort.Strings(unknown)
	for _, name := range unknown {
		q.fault(name, payment.CodeUnknownField, "is not a parameter of this route")
	}
	if list := q.errs.List(); len(list) > 0 {
		return problem.New(problem.ValidationFailed, "The query has faulty parameters.").WithFields(list...)
	}
	return nil
}

func (q *query) limit() int {
	text, ok := q.get("limit")
	if !ok {
		return limitDefault
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		q.fault("limit", payment.CodeInvalidFormat, "must be an integer")
	case n < 1 || n > limitMax:
		q.fault("limit", payment.CodeOutOfRange, "must be from 1 to "+strconv.Itoa(limitMax))
	}
	return min(max(n, 1), limitMax)
}

func (q *query) oneOf(name string, allowed []string) string {
	value, ok := q.get(name)
	if ok && !slices.Contains(allowed, value) {
		q.fault(name, payment.CodeNotAllowed, "must be one of "+strings.Join(allowed, ", "))
	}
	return value
}

// timeForm is what time.Parse is too kind about: hours have two digits, a
// fraction comes after a dot, and an offset is less than a day (RFC 3339,
// section 5.6).
var timeForm = regexp.MustCompile(`T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// time reads a time (RFC 3339). What lies before 1970 is 1970, as no order is older.
func (q *query) time(name string) time.Time {
	text, ok := q.get(name)
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !timeForm.MatchString(text) {
		q.fault(name, payment.CodeInvalidFormat, "must be a time as RFC 3339 writes it, such as 2026-03-01T00:00:00Z")
		return time.Time{}
	}
	if epoch := time.Unix(0, 0); t.Before(epoch) {
		t = epoch
	}
	return t.UTC()
}

// expand reads which personal data is asked for.
func (q *query) expand(allowed ...string) map[string]bool {
	text, ok := q.get("expand")
	if !ok {
		return nil
	}
	chosen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		if !slices.Contains(allowed, part) || chosen[part] {
			q.fault("expand", payment.CodeNotAllowed, "must list "+strings.Join(allowed, ", ")+", each at most once")
		}
		chosen[part] = true
	}
	return chosen
}
