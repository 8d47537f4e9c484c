package endpoint_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/store"
)

// flaps makes a URL refuse one event forever, and everything while *down.
func (g hooks) flaps(down *bool, refused string) {
	g.Receivers.Answer(func(r *http.Request, _ int) (*http.Response, error) {
		list := g.received(r.URL.String())
		switch {
		case *down:
			return nil, errors.New("connection refused")
		case list[len(list)-1] == "payin.canceled "+refused:
			return coretest.Respond(http.StatusBadRequest)
		}
		return coretest.Respond(http.StatusOK)
	})
}

// outage lets the endpoint fail for some minutes, and then answer for some hours.
func (g hooks) outage(down *bool, name string, hours int) {
	g.T.Helper()
	*down = true
	for i := range 6 {
		g.cancel(fmt.Sprint(name, "-", i), "")
		g.work()
		g.Jump(time.Minute)
	}
	*down = false
	g.fail(10, time.Minute)
	g.fail(2*hours, 30*time.Minute)
}

// states are the states of the deliveries to endpoints, by the number of their event.
func (g hooks) states() map[int]string {
	g.T.Helper()
	all := map[int]string{}
	g.Query("SELECT event_number, state FROM deliveries WHERE merchant_id > '' AND length(endpoint_id) > 0", func(rows *sql.Rows) error {
		var number int
		var state string
		err := rows.Scan(&number, &state)
		all[number] = state
		return err
	})
	return all
}

// An event that the receiver refuses alone is given up after the schedule, however often the endpoint
// fails and recovers meanwhile, and then keeps no later delivery from being removed.
func TestRefusedEventOfFlappingEndpoint(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		const keep = 24 * time.Hour
		g.Restart(func(o *app.CoreOptions) { o.Retention = keep })
		g.add(url, "payin.canceled")
		down := false
		g.flaps(&down, "refused")
		g.cancel("refused", "")
		g.work()
		for day := range 8 {
			g.outage(&down, fmt.Sprint("day-", day), 23)
		}
		if state := g.states()[1]; state != string(store.DeliveryExhausted) {
			t.Errorf("after eight days the event is %s", state)
		}
		tried := len(g.received(url))
		g.outage(&down, "after", 23)
		if i := slices.Index(g.received(url)[tried:], "payin.canceled refused"); i >= 0 {
			t.Errorf("the event that was given up is sent again")
		}
		g.Jump(keep + 24*time.Hour)
		for range 40 {
			g.Must(g.Store.Transact(t.Context(), func(tx *store.Tx) error {
				_, err := tx.AllowRemoval(t.Context(), g.Clock.Now().Add(-keep), keep)
				return err
			}))
		}
		g.Run(g.Deliveries.RemoveOld)
		if left := g.states(); len(left) > 0 {
			t.Errorf("deliveries are kept: %v", left)
		}
		for _, v := range g.received(url) {
			if n := strings.Count(strings.Join(g.received(url), "\n")+"\n", v+"\n"); n > 1 && strings.HasSuffix(v, "-5") {
				t.Errorf("%s was sent %d times", v, n)
			}
		}
		g.WantProven()
	})
}

// An event that is refused alone delays no other for long, although events are so rare that its attempts
// are most of all.
func TestRefusedEventDelaysNoRareEvent(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		down := false
		g.flaps(&down, "refused")
		g.cancel("refused", "")
		g.work()
		for i := range 30 {
			g.fail(24, 15*time.Minute)
			g.cancel(fmt.Sprintf("rare-%02d", i), "")
			g.work()
			if got := g.received(url); i > 10 && !slices.Contains(got, fmt.Sprintf("payin.canceled rare-%02d", i)) {
				t.Errorf("event %d waits", i)
			}
		}
		if state := g.states()[1]; state != string(store.DeliveryExhausted) {
			t.Errorf("after a week the event is %s", state)
		}
		if e := g.read(e); !e.Enabled || e.Failures != 0 {
			t.Errorf("%+v", e)
		}
		g.WantProven()
	})
}
