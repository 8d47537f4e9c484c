package endpoint_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
)

// The answer of the previous URL to an attempt that was in flight as the URL changed says nothing about
// the new one: it gets the event at once, and is neither disabled nor counted as failing.
func TestAnswerOfThePreviousURL(t *testing.T) {
	for name, answer := range map[string]func() (*http.Response, error){
		"gone":   func() (*http.Response, error) { return coretest.Respond(http.StatusGone) },
		"failed": func() (*http.Response, error) { return coretest.Respond(http.StatusInternalServerError) },
		"Retry-After": func() (*http.Response, error) {
			return coretest.Respond(http.StatusServiceUnavailable, "Retry-After", "86400")
		},
	} {
		for _, before := range []int{0, 6} { // failures
			t.Run(fmt.Sprint(name, " after ", before), func(t *testing.T) {
				each(t, func(t *testing.T, g hooks) {
					e := g.add(url, "payin.canceled")
					g.Receivers.Answer(func(r *http.Request, n int) (*http.Response, error) {
						switch {
						case r.URL.String() == elsewhere:
							return coretest.Respond(http.StatusOK)
						case n <= before:
							return coretest.Respond(http.StatusInternalServerError)
						case n == before+1:
							g.move(e, elsewhere)
						}
						return answer()
					})
					g.cancel("a", "")
					g.work()
					for range 10 {
						if g.read(e).URL == elsewhere {
							break
						}
						g.Jump(2 * time.Hour)
						g.work()
					}
					g.Jump(time.Minute)
					g.work()
					if v := g.read(e); !v.Enabled || v.Failures != 0 || v.URL != elsewhere {
						t.Errorf("%+v", v)
					}
					g.wantReceived(elsewhere, "payin.canceled a")
					g.WantCases()
					g.WantProven()
				})
			})
		}
	}
}
