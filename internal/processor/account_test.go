package processor_test

import (
	"testing"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
)

// charger is a processor of some methods.
type charger struct {
	processor.Charger

	methods []payment.Method
}

func (c charger) Profile() processor.Profile { return processor.Profile{Methods: c.methods} }

// suspended is accounts of which some may not be used.
type suspended struct {
	processor.Registry

	ids map[string]bool
}

func (s suspended) Allows(id string, use payment.AccountUse) error {
	if s.ids[id] {
		return processor.NotAllowed(id, payment.AccountSuspended, use)
	}
	return nil
}

// The first eligible route takes the order; else the answer says whether another time or
// another amount may help.
func TestChoose(t *testing.T) {
	t.Parallel()
	pix := charger{methods: []payment.Method{payment.PIX}}
	accounts := suspended{processor.Registry{"a": pix, "b": pix, "stopped": pix, "boleto": charger{methods: []payment.Method{payment.Boleto}}}, map[string]bool{"stopped": true}}
	route := func(id string, maximum int64) payment.Route {
		r := payment.AllRoutes(id)[0]
		if maximum > 0 {
			r.Maximum = 100
		}
		return r
	}
	for name, row := range map[string]struct {
		routes []payment.Route
		want   string
		kind   problem.Kind
	}{
		"the first":            {[]payment.Route{route("a", 0), route("b", 0)}, "a", ""},
		"one that is stopped":  {[]payment.Route{route("stopped", 0), route("b", 0)}, "b", ""},
		"too large":            {[]payment.Route{route("a", 100), route("b", 0)}, "b", ""},
		"another method":       {[]payment.Route{route("boleto", 0), route("b", 0)}, "b", ""},
		"not open":             {[]payment.Route{route("gone", 0), route("b", 0)}, "b", ""},
		"no route":             {nil, "", problem.MethodNotEnabled},
		"routes of payouts":    {payment.AllRoutes("a")[1:], "", problem.MethodNotEnabled},
		"only another method":  {[]payment.Route{route("boleto", 0)}, "", problem.MethodNotEnabled},
		"only too large":       {[]payment.Route{route("a", 100)}, "", problem.LimitExceeded},
		"only stopped":         {[]payment.Route{route("stopped", 0)}, "", problem.Unavailable},
		"later, or never":      {[]payment.Route{route("boleto", 0), route("stopped", 0)}, "", problem.Unavailable},
		"only one that is not": {[]payment.Route{route("gone", 0)}, "", problem.Unavailable},
	} {
		id, p, err := processor.Choose(accounts, row.routes, processor.NewOrder{Operation: payment.OperationPayin, Method: payment.PIX, Amount: 101})
		if id != row.want || (p == nil) != (row.want == "") || row.kind != "" && !problem.Is(err, row.kind) || row.kind == "" && err != nil {
			t.Errorf("%s: account %q, %v; want %q %s", name, id, err, row.want, row.kind)
		}
	}
}
