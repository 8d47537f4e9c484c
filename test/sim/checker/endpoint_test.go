package checker

import "testing"

func TestFilters(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		filter, kind string
		want         bool
	}{
		{"*", "payin.paid", true},
		{"payin.*", "payin.paid", true},
		{"payin.*", "payout.completed", false},
		{"payin.paid", "payin.paid", true},
		{"payin.paid", "payin.paid_late", false},
		{"payin", "payin.paid", false},
	} {
		v := ClientEndpoint{Events: []string{"refund.failed", row.filter}}
		if got := v.matches(row.kind); got != row.want {
			t.Errorf("%s matches %s: %t", row.filter, row.kind, got)
		}
	}
}

// The events that an endpoint received are compared with the events that it asks for.
func TestEndpointsAreCompared(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.populate()
		const url = "https://shop.example/endpoint"
		v := &ClientEndpoint{Merchant: s.merchant.ID.String(), ID: s.merchant.ID.String(), URL: url, Events: []string{"payin.paid"}}
		s.records.Endpoints = []*ClientEndpoint{v}
		compare := func(list ...ReceivedDelivery) []Violation {
			s.restartChecker()
			c := &comparison{Records: &s.records, Checker: s.checker}
			for i := range list {
				c.compareEndpointArrival(&list[i])
			}
			c.compareEndpoints()
			return s.checker.takeViolations()
		}
		var all []ReceivedDelivery
		var other *event
		for _, e := range s.checker.eventList {
			if e.kind == "payin.paid" {
				all = append(all, ReceivedDelivery{Merchant: v.Merchant, URL: url, EventID: publicEventID(e.key.id), Body: e.body, Answer: 204, Endpoint: true})
			} else {
				other = e
			}
		}
		if found := compare(all...); len(found) > 0 {
			t.Errorf("%+v", found)
		}
		s.want("not accepted", compare(), Events, "never reached endpoint")
		changed := func(change func(r *ReceivedDelivery)) []Violation {
			r := all[0]
			change(&r)
			return compare(append(all, r)...)
		}
		s.want("refused", compare(append(all[1:len(all):len(all)], ReceivedDelivery{Merchant: v.Merchant, URL: url, EventID: all[0].EventID, Body: all[0].Body, Answer: 500})...), Events, "never reached endpoint")
		s.want("another body", changed(func(r *ReceivedDelivery) { r.Body = []byte("{}") }), Events, "received {}")
		s.want("no event", changed(func(r *ReceivedDelivery) { r.EventID = "evt_0" }), Events, "does not exist")
		s.want("another merchant", changed(func(r *ReceivedDelivery) { r.Merchant = freshID }), Isolation, "was sent to endpoint")
		s.want("not asked for", changed(func(r *ReceivedDelivery) { r.EventID, r.Body = publicEventID(other.key.id), other.body }), Events, "which asks for")
		v.Gone = true
		if found := compare(); len(found) > 0 {
			t.Errorf("deleted: %+v", found)
		}
	})
}
