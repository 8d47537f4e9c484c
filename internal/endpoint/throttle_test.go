package endpoint_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// While requests queue for their commits, few events are dispatched every 100 ms, until one
// has waited for 5 s; else all are at once.
func TestDispatchIsThrottled(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		backlogged := true
		g.Endpoints.ThrottleWhile(func() bool { return backlogged })
		g.add(url, string(payment.EventPayinCanceled))
		cancel := func(name string, n int) {
			for i := range n {
				g.cancel(fmt.Sprint(name, i), "")
			}
		}
		dispatches := func(want int) {
			t.Helper()
			if read, err := g.Endpoints.Dispatch(t.Context()); err != nil || read != want {
				t.Fatalf("%d events were read, want %d: %v", read, want, err)
			}
		}
		cancel("a", 40)
		dispatches(32)
		ran := make(chan int)
		go func() {
			read, err := g.Endpoints.Dispatch(t.Context())
			g.Must(err)
			ran <- read
		}()
		for wait, waits := g.Clock.Next(); !waits || wait != 100*time.Millisecond; wait, waits = g.Clock.Next() {
			runtime.Gosched()
		}
		g.Clock.Advance(100 * time.Millisecond)
		if read := <-ran; read != 8 {
			t.Fatalf("%d events were read, want the other 8", read)
		}

		cancel("late", 80)
		g.Pass(5 * time.Second)
		dispatches(32) // and one of them was late
		dispatches(48)

		backlogged = false
		cancel("b", 40)
		dispatches(40)
	})
}
