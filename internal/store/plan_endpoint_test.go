package store_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// useEndpoints adds, changes and reads endpoints, one and several at once, and dispatches to
// them.
func (v *exercise) useEndpoints() {
	t, s, ctx := v.t, v.s, v.t.Context()
	var list []store.Endpoint
	for _, m := range v.merchants {
		e := store.Endpoint{Merchant: m.ID, ID: v.id(), URL: "https://a.example", Events: []string{"*"}, Enabled: true}
		e.Rotate(s.SealEndpointSecret(e.Merchant, e.ID, "whsec_endpoint"), time.Time{})
		list = append(list, e)
	}
	v.commit(store.Capacity{}, func(n *store.Needs) {
		for _, e := range list {
			n.NewEndpoint(e.Merchant)
		}
	}, func(_ *store.Loaded, c *store.Changes) {
		for _, e := range list {
			c.AddEndpoint(e)
		}
	})
	m := v.merchants[0].ID
	must(t, writeText(t, s, "UPDATE webhook_endpoints SET position = 0"))
	for range 2 { // the deliveries are new, and then known
		v.dispatch(m, list[0].ID)
		must(t, writeText(t, s, "UPDATE webhook_endpoints SET position = 0"))
		must(t, writeText(t, s, "UPDATE deliveries SET state = 'paused', next_at = 0 WHERE merchant_id > '' AND length(endpoint_id) > 0"))
	}
	v.dispatch(m, list[0].ID)
	due := func(n *store.Needs) { n.DueDeliveries(m, 5) }
	must(t, writeText(t, s, "UPDATE webhook_endpoints SET catch_up_to = 1000000"))
	v.commit(store.Capacity{}, due, func(*store.Loaded, *store.Changes) {})
	must(t, writeText(t, s, "UPDATE webhook_endpoints SET failures = 9, failing_since = 1"))
	v.commit(store.Capacity{}, due, func(*store.Loaded, *store.Changes) {})
	v.changeEndpoints(list)
	v.commit(store.Capacity{}, func(n *store.Needs) { n.Delivery(m, v.last.deliveries[0].ID) }, func(l *store.Loaded, c *store.Changes) {
		d, _ := l.Delivery(m, v.last.deliveries[0].ID)
		c.MoveDelivery(d)
	})
	_, err := s.EndpointOf(ctx, m, list[0].ID)
	must(t, err)
	_, err = s.EndpointsOf(ctx, m)
	must(t, err)
	all, err := s.AllEndpoints(ctx)
	must(t, err)
	if secret, _, err := s.EndpointSecrets(&all[0]); err != nil || secret != "whsec_endpoint" {
		t.Errorf("secret %q, %v", secret, err)
	}
	_, err = s.EndpointsVersion(ctx)
	must(t, err)
	versions, err := s.EndpointVersions(ctx)
	if must(t, err); versions[m][all[0].ID] != all[0].Version {
		t.Errorf("versions %v", versions)
	}
	_, err = s.EndpointsFailing(ctx, v.far)
	must(t, err)
	_, err = s.EndpointsBehind(ctx)
	must(t, err)
	v.commit(store.Capacity{}, func(n *store.Needs) { n.Endpoints(m) }, func(l *store.Loaded, c *store.Changes) {
		e, _ := l.Endpoint(m, list[0].ID)
		c.DeleteEndpoint(e)
	})
	must(t, writeText(t, s, "DELETE FROM deliveries WHERE merchant_id > '' AND length(endpoint_id) > 0"))
}

// changeEndpoints changes one endpoint, and both.
func (v *exercise) changeEndpoints(list []store.Endpoint) {
	for count := 1; count <= len(list); count++ {
		v.commit(store.Capacity{}, func(n *store.Needs) {
			for _, e := range list[:count] {
				n.Undelivered(e.Merchant, e.ID)
				n.Shared(e.Merchant, e.ID, "https://b.example")
			}
		}, func(l *store.Loaded, c *store.Changes) {
			for i := range list[:count] {
				e, _ := l.Endpoint(list[i].Merchant, list[i].ID)
				c.SetEndpoint(e)
				c.StopDeliveries(&e, store.DeliveryPaused)
				c.PauseForCatchUp(&e)
				if !c.StopsDeliveries(&e) {
					v.t.Error("the commit does not hold the deliveries")
				}
			}
		})
	}
}

// dispatch makes the merchant's first events due at an endpoint.
func (v *exercise) dispatch(merchant, endpoint payment.ID) {
	v.commit(store.Capacity{}, func(n *store.Needs) { n.Dispatch(merchant, endpoint, 2, 5) }, func(l *store.Loaded, c *store.Changes) {
		e, _ := l.Endpoint(merchant, endpoint)
		next := l.Dispatch(&e)
		if len(next.Events) != 2 {
			v.t.Fatalf("next %+v", next)
		}
		for i := range next.Events {
			var known *store.Delivery
			for j := range next.Known {
				if next.Known[j].EventNumber == next.Events[i].Number && next.Known[j].Endpoint == endpoint {
					known = &next.Known[j]
				}
			}
			c.Deliver(&e, &next.Events[i], known)
		}
	})
}

// writeText runs one statement.
func writeText(t *testing.T, s *store.Store, text string) error {
	t.Helper()
	return s.Administer(t.Context(), storetest.Operator, func(tx *store.AdminTx) error { _, err := tx.Exec(t.Context(), text); return err })
}

// redeliverRanges sends ranges again, in parts: to every URL, and to one endpoint.
func (v *exercise) redeliverRanges() {
	m, endpoint := v.merchants[0].ID, v.id()
	t, s, ctx := v.t, v.s, v.t.Context()
	v.commit(store.Capacity{}, func(n *store.Needs) { n.NewEndpoint(m) }, func(_ *store.Loaded, c *store.Changes) {
		c.AddEndpoint(store.Endpoint{Merchant: m, ID: endpoint, URL: "https://shop.example/again", Events: []string{"*"}, Enabled: true})
	})
	found, err := s.EventRange(ctx, m, time.Unix(0, 0), v.far, 100)
	if err != nil || found.Total == 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	write(t, s, func(tx *store.AdminTx) error {
		for _, to := range []payment.ID{{}, endpoint} {
			_, err := tx.AddRedelivery(ctx, store.Redelivery{Merchant: m, ID: tx.NewID(), Endpoint: to, End: found.End, Next: 1, Last: found.Last}, v.far, v.far)
			must(t, err)
		}
		return nil
	})
	list, err := s.Redeliveries(ctx, payment.ID{}, 5)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, limit := range []int{1, 100} {
		for i := range list {
			write(t, s, func(tx *store.AdminTx) error { _, err := tx.RedeliverPart(ctx, list[i], limit); return err })
		}
	}
	write(t, s, func(tx *store.AdminTx) error {
		return tx.RotateWebhookSecret(ctx, m, s.SealWebhookSecret(m, "whsec_2"), tx.Now)
	})
	if v, err := s.WebhookSecrets(ctx, m); err != nil || v.Current != "whsec_2" || v.Previous == "" {
		t.Errorf("%+v, %v", v, err)
	}
}
