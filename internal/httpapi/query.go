package httpapi

import (
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/wire"
)

// Page sizes of lists, in entries.
const (
	limitDefault = 50
	limitMax     = 200
)

// query parses the parameters of a request, and collects errors.
type query struct {
	values url.Values
	known  map[string]bool // the parameters of the route
	errs   wire.Errors
}

func (c *call) query() *query {
	q := &query{known: map[string]bool{}}
	if c.r.URL.RawQuery == "" {
		return q
	}
	var err error
	if q.values, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		q.fail("query", problem.CodeInvalidFormat, "must be a valid query string")
	}
	return q
}

func (q *query) fail(name, code, detail string) { q.errs.Add(wire.At("", name), code, detail) }

// get returns a parameter; ok is false if it was not sent exactly once.
func (q *query) get(name string) (value string, ok bool) {
	q.known[name] = true
	values := q.values[name]
	if len(values) > 1 {
		q.fail(name, problem.CodeNotAllowed, "must appear only once")
	}
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

// done returns an error of all invalid parameters, including unknown ones. Every
// other parameter must have been read before.
func (q *query) done() error {
	var unknown []string
	for name := range q.values {
		if !q.known[name] {
			unknown = append(unknown, name)
		}
	}
	sort.Strings(unknown)
	for _, name := range unknown {
		q.fail(name, problem.CodeUnknownField, "is not a parameter of this route"+q.hint(name))
	}
	if list := q.errs.List(); len(list) > 0 {
		return problem.New(problem.ValidationFailed, "Invalid query parameters.").WithFields(list...)
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
		q.fail("limit", problem.CodeInvalidFormat, "must be an integer")
	case n < 1 || n > limitMax:
		q.fail("limit", problem.CodeOutOfRange, "must be between 1 and "+strconv.Itoa(limitMax))
	}
	return min(max(n, 1), limitMax)
}

func (q *query) oneOf(name string, allowed []string) string {
	value, ok := q.get(name)
	if ok && !slices.Contains(allowed, value) {
		q.fail(name, problem.CodeNotAllowed, "must be one of "+strings.Join(allowed, ", "))
	}
	return value
}

// several parses a list of different values: one, or the list if there are more.
func (q *query) several(name string, allowed []string) (one string, list []string) {
	if list = q.list(name, allowed); len(list) == 1 {
		return list[0], nil
	}
	return "", list
}

// list parses a list of different values.
func (q *query) list(name string, allowed []string) (list []string) {
	text, ok := q.get(name)
	if !ok {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		if !slices.Contains(allowed, part) || slices.Contains(list, part) {
			q.fail(name, problem.CodeNotAllowed, "must be one of "+strings.Join(allowed, ", ")+", or several of them separated by commas, each at most once")
			break
		}
		list = append(list, part)
	}
	return list
}

// timeForm is stricter than time.Parse: hours have two digits, a fraction follows a dot,
// and an offset is less than a day (RFC 3339, section 5.6).
var timeForm = regexp.MustCompile(`T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// time parses a time (RFC 3339). A time before 1970 becomes 1970, because no order is
// older.
func (q *query) time(name string) time.Time {
	text, ok := q.get(name)
	if !ok {
		return time.Time{}
	}
	text = plusOfOffset(text)
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !timeForm.MatchString(text) {
		q.fail(name, problem.CodeInvalidFormat, "must be an RFC 3339 time, such as 2026-03-01T00:00:00Z")
		return time.Time{}
	}
	if epoch := time.Unix(0, 0); t.Before(epoch) {
		t = epoch
	}
	return t.UTC()
}

// blankOffset is a time whose + became a blank: a query is decoded as a form.
var blankOffset = regexp.MustCompile(`^(.+) (\d\d:\d\d)$`)

// plusOfOffset restores the + of an offset, as in 2026-01-01T00:00:00+00:00, which many programs do
// not encode. No time has a blank there.
func plusOfOffset(text string) string { return blankOffset.ReplaceAllString(text, "$1+$2") }

// expand parses the personal data to show.
func (q *query) expand(allowed ...string) map[string]bool {
	text, ok := q.get("expand")
	if !ok {
		return nil
	}
	chosen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		if !slices.Contains(allowed, part) || chosen[part] {
			q.fail("expand", problem.CodeNotAllowed, "must be a list of "+strings.Join(allowed, ", ")+", each at most once")
		}
		chosen[part] = true
	}
	return chosen
}
