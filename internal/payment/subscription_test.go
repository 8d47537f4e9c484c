package payment

import "testing"

func TestEventFilters(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		filter  string
		valid   bool
		matches []EventType
		others  []EventType
	}{
		{"*", true, EventTypes, nil},
		{"payin.paid", true, []EventType{EventPayinPaid}, []EventType{EventPayinCreated, EventPayoutCompleted}},
		{"payout.*", true, []EventType{EventPayoutCreated, EventPayoutReturned}, []EventType{EventPayinPaid, "payout_batch.completed"}},
		{"payout_batch.*", true, []EventType{"payout_batch.completed"}, []EventType{EventPayoutCompleted}},
		{"webhook_endpoint.disabled", true, []EventType{EventEndpointDisabled}, []EventType{EventPayinPaid}},
		{"", false, nil, EventTypes}, {"payin", false, nil, EventTypes}, {"payin.", false, nil, EventTypes}, {".*", false, nil, EventTypes},
		{"*.*", false, nil, EventTypes}, {"payin.*.*", false, nil, EventTypes}, {"order.*", false, nil, EventTypes}, {"PAYIN.PAID", false, nil, EventTypes},
		{"webhook.test", false, nil, EventTypes}, {"payin.paid ", false, nil, EventTypes},
	} {
		if got := IsEventFilter(v.filter); got != v.valid {
			t.Errorf("%q is a filter: %v", v.filter, got)
		}
		for _, m := range v.matches {
			if !m.MatchedBy([]string{"refund.failed", v.filter}) {
				t.Errorf("%q does not select %s", v.filter, m)
			}
		}
		for _, m := range v.others {
			if m.MatchedBy([]string{v.filter}) {
				t.Errorf("%q selects %s", v.filter, m)
			}
		}
	}
	if EventPayinPaid.MatchedBy(nil) {
		t.Error("no filter selects an event")
	}
}

func TestIsCreation(t *testing.T) {
	t.Parallel()
	for _, e := range EventTypes {
		if want := e == "payin.created" || e == "payout.created"; e.IsCreation() != want {
			t.Errorf("%s announces a creation: %v", e, !want)
		}
	}
}
