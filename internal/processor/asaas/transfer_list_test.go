package asaas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
)

// listServer is Asaas' list of transfers, of which it answers pages.
type listServer struct {
	mu          sync.Mutex
	rows        []string // the newest first
	oldestFirst bool
	uncounted   bool // it does not say how many there are
	page        int  // rows of a page; 0: pageSize
	asked       int
	fail        func(asked int) error
}

// add adds a transfer under a reference, behind a number of newer ones.
func (s *listServer) add(behind int, reference, day string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := transferJSON("t-1", fmt.Sprintf("t-%d", len(s.rows)), ref, reference, "2026-11-20", day)
	s.rows = slices.Insert(s.rows, min(behind, len(s.rows)), row)
}

// RoundTrip implements [http.RoundTripper].
func (s *listServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.fail != nil {
		if err := s.fail(s.asked); err != nil {
			return nil, err
		}
	}
	answer := func(body string) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {jsonType}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1}, nil
	}
	if id, ok := strings.CutPrefix(r.URL.Path, "/v3/transfers/"); ok {
		i := slices.IndexFunc(s.rows, func(row string) bool { return strings.Contains(row, `"`+id+`"`) })
		return answer(s.rows[i])
	}
	var list []string
	for _, row := range s.rows {
		_, day, _ := strings.Cut(row, `"dateCreated":"`)
		if day[:10] >= r.URL.Query().Get("dateCreated[ge]") {
			list = append(list, row)
		}
	}
	if s.oldestFirst {
		slices.Reverse(list)
	}
	offset, err := strconv.Atoi(r.URL.Query().Get("offset"))
	if err != nil {
		return nil, err
	}
	from := min(offset, len(list))
	to := min(from+cmp.Or(s.page, pageSize), len(list))
	total := ""
	if !s.uncounted {
		total = fmt.Sprintf(`"totalCount":%d,`, len(list))
	}
	return answer(fmt.Sprintf(`{"object":"list","hasMore":%v,%s"data":[%s]}`, to < len(list), total, strings.Join(list[from:to], ",")))
}

const today = "2026-11-20"

func (s *listServer) open(t testing.TB) (*Processor, *env.VirtualClock) {
	t.Helper()
	_, clock := env.Virtual(start, 1)
	return openDriver(t, s, clock, SettingBudget, "1000000"), clock
}

func numbered(n int) string { return fmt.Sprintf("%032d", n) }

// unsent is what is known of a payout before its first send.
func unsent(n int) processor.Ref {
	return processor.Ref{ExternalID: numbered(n), Since: start.Add(-24 * time.Hour), Unsent: true}
}

// Finding: with many payouts a day each look-up read all of them. The look-ups share what was
// read.
func TestLookUpsShareTheList(t *testing.T) {
	t.Parallel()
	for name, days := range map[string][]string{"of two days": {"2026-11-19", today}, "all of one day": {today, today}} {
		s := &listServer{}
		for n := range 400 {
			s.add(0, numbered(n), days[n/200])
		}
		p, clock := s.open(t)
		for n := 400; n < 600; n++ {
			if got := p.FindTransfer(t.Context(), unsent(n)); got.Lookup != processor.NotFound {
				t.Fatalf("%s: before it is sent: %+v", name, got)
			}
			s.add(0, numbered(n), today)
			if got := p.FindTransfer(t.Context(), unsent(n)); got.Lookup != processor.Found || got.State != processor.TransferProcessing {
				t.Fatalf("%s: after it was sent: %+v", name, got)
			}
			clock.Advance(time.Second)
		}
		if s.asked > 450 { // of 400 look-ups
			t.Errorf("%s: %d requests", name, s.asked)
		}
		asked := s.asked
		for n := range 50 {
			if got := p.FindTransfer(t.Context(), processor.Ref{ExternalID: numbered(n), Since: start.Add(-24 * time.Hour)}); got.Lookup != processor.Found {
				t.Fatalf("%s: one that was sent before: %+v", name, got)
			}
		}
		if n := s.asked - asked; n > 120 {
			t.Errorf("%s: %d requests of 50 look-ups of transfers that were sent", name, n)
		}
	}
}

// Look-ups at the same time share one pass.
func TestConcurrentLookUpsShareAPass(t *testing.T) {
	t.Parallel()
	s := &listServer{}
	for n := range 1000 {
		s.add(0, numbered(n), today)
	}
	p, _ := s.open(t)
	waiting := func() int64 {
		p.transfers.mu.Lock()
		defer p.transfers.mu.Unlock()
		return p.transfers.calls
	}
	s.fail = func(asked int) error {
		for asked == 1 && waiting() < 50 {
			runtime.Gosched()
		}
		return nil
	}
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			if got := p.FindTransfer(t.Context(), unsent(2000+n)); got.Lookup != processor.NotFound {
				t.Errorf("%+v", got)
			}
		})
	}
	wg.Wait()
	if s.asked > 24 {
		t.Errorf("%d requests", s.asked)
	}
}

// A pass that is cut by the time of a look-up is carried on by the next one. Entries found so far
// count, unless it failed.
func TestPassIsCarriedOn(t *testing.T) {
	t.Parallel()
	errCut := errors.New("cut")
	s := &listServer{fail: func(asked int) error {
		if asked%4 == 0 {
			return errCut
		}
		return nil
	}}
	for n := range 1000 {
		s.add(0, numbered(n), today)
	}
	p, _ := s.open(t)
	unknown := 0
	for p.FindTransfer(t.Context(), unsent(2000)).Lookup != processor.NotFound {
		if unknown++; unknown > 10 {
			t.Fatal("it is never read to its end")
		}
	}
	if unknown < 3 || s.asked > 24 {
		t.Errorf("%d look-ups without an answer, %d requests", unknown, s.asked)
	}

	s = &listServer{fail: func(asked int) error {
		if asked > 1 {
			return errCut
		}
		return nil
	}}
	for n := range 1000 {
		s.add(0, numbered(n), today)
	}
	s.rows[1] = strings.Replace(s.rows[1], "PENDING", "FAILED", 1)
	p, _ = s.open(t)
	if got := p.FindTransfer(t.Context(), unsent(999)); got.Lookup != processor.Found {
		t.Errorf("found on the first page: %+v", got)
	}
	s.asked = 0
	p, _ = s.open(t)
	if got := p.FindTransfer(t.Context(), unsent(998)); got.Lookup != processor.LookupUnknown || !errors.Is(got.Cause, errListing) {
		t.Errorf("found on the first page, failed: %+v", got)
	}
}

// A look-up whose time ends while another one reads has no answer.
func TestLookUpThatWaits(t *testing.T) {
	t.Parallel()
	p, _ := (&listServer{}).open(t)
	p.transfers.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := p.FindTransfer(ctx, unsent(1)); got.Lookup != processor.LookupUnknown || !errors.Is(got.Cause, context.Canceled) {
		t.Errorf("%+v", got)
	}
}

// A row that shows up late, behind many newer ones, is found by a pass over all rows: of a
// transfer that may have been requested within minutes.
func TestLateRow(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		unsent bool
		after  time.Duration
	}{"unsent": {true, listEvery}, "sent": {false, transferConfirm}} {
		s := &listServer{}
		for n := range 500 {
			s.add(0, numbered(n), []string{"2026-11-19", today}[n/250])
		}
		p, clock := s.open(t)
		look := unsent(2000)
		look.Unsent = want.unsent
		if got := p.FindTransfer(t.Context(), look); got.Lookup != processor.NotFound {
			t.Fatalf("%s: %+v", name, got)
		}
		s.add(200, numbered(2000), today)
		clock.Advance(want.after)
		if got := p.FindTransfer(t.Context(), look); got.Lookup != processor.Found {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// An older period than was read needs a pass of its own, and a list that is too long no answer.
func TestOlderPeriod(t *testing.T) {
	t.Parallel()
	s := &listServer{}
	s.add(0, numbered(1), "2026-10-01")
	s.add(0, numbered(2), today)
	p, _ := s.open(t)
	old := unsent(1)
	if got := p.FindTransfer(t.Context(), old); got.Lookup != processor.NotFound {
		t.Errorf("not in the period: %+v", got)
	}
	for _, since := range []time.Time{start.AddDate(0, -3, 0), {}} {
		if old.Since = since; p.FindTransfer(t.Context(), old).Lookup != processor.Found {
			t.Errorf("since %v: not found", since)
		}
	}
	s.page = 2 // of which one is new
	for n := range transferPages + 1 {
		s.rows = append(s.rows, transferJSON("t-1", fmt.Sprintf("u-%d", n), ref, "another"))
	}
	p, _ = s.open(t)
	if got := p.FindTransfer(t.Context(), unsent(3)); got.Lookup != processor.LookupUnknown || !errors.Is(got.Cause, errPages) || p.transfers.all != nil {
		t.Errorf("too long: %+v", got)
	}
}

// In any order of the list, and with a look-up cut at any point: "not found" is the result only for
// a transfer that was not there when the look-up began. A transfer that is there is found, in its
// present state.
func TestAnyHistoryOfLookUps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := &listServer{oldestFirst: rapid.Bool().Draw(r, "oldest first"), uncounted: rapid.Bool().Draw(r, "uncounted"), page: 20}
		p, clock := s.open(t)
		there, n := map[string]time.Time{}, 0
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			day := clock.Now().In(saoPaulo).Format(time.DateOnly)
			for range rapid.SampledFrom([]int{0, 1, 3, 70}).Draw(r, "new") {
				s.add(0, numbered(n), day)
				there[numbered(n)] = clock.Now()
				n++
			}
			cut, asked := rapid.IntRange(0, 6).Draw(r, "cut"), s.asked
			s.fail = func(now int) error {
				if cut > 0 && now-asked > cut {
					return io.ErrUnexpectedEOF
				}
				return nil
			}
			look := processor.Ref{ExternalID: numbered(rapid.IntRange(0, n+1).Draw(r, "reference")), Unsent: rapid.Bool().Draw(r, "unsent")}
			look.Since = clock.Now().Add(-time.Duration(rapid.IntRange(0, 60).Draw(r, "hours")) * time.Hour)
			made, ok := there[look.ExternalID]
			got := p.FindTransfer(t.Context(), look)
			if got.Lookup == processor.NotFound && ok && !made.Before(look.Since) || got.Lookup == processor.Found && !ok || got.Lookup == processor.LookupUnknown && cut == 0 {
				r.Fatalf("%+v: %+v, made %v, of %d", look, got, made, n)
			}
			clock.Advance(time.Duration(rapid.IntRange(0, 300).Draw(r, "minutes")) * time.Minute)
		}
	})
}
