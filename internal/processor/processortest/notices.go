package processortest

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/processor"
)

func (h Harness) verify(n Notice, at time.Time) (string, error) {
	return h.Processor.(processor.Notifier).VerifyNotice(n.Header, n.Body, at)
}

// genuine pays a charge and returns its notice.
func (h Harness) genuine(t *testing.T) (Notice, processor.Payment) {
	t.Helper()
	paid := h.payment(t)
	h.Elapse(t)
	notices := h.Notices(t)
	if len(notices) == 0 {
		t.Fatal("the test server sent no notice of a payment")
	}
	return notices[len(notices)-1], paid
}

func testNoticeGenuine(t *testing.T, h Harness) {
	ids := make(map[string]bool)
	for range 3 {
		notice, paid := h.genuine(t)
		id, err := h.verify(notice, h.Clock.Now())
		if err != nil || id == "" || ids[id] {
			t.Fatalf("genuine notice: id %q, error %v", id, err)
		}
		ids[id] = true
		if again, err := h.verify(notice, h.Clock.Now()); err != nil || again != id {
			t.Errorf("read again: id %q, error %v, want %q", again, err, id)
		}
		hints, err := h.Processor.(processor.Notifier).ParseNotice(notice.Body)
		if err != nil || len(hints) == 0 {
			t.Fatalf("parse: %+v, %v", hints, err)
		}
		about := slices.IndexFunc(hints, func(hint processor.Hint) bool {
			return hint.Subject == processor.SubjectCharge && hint.ExternalID == paid.ExternalID
		})
		if about < 0 {
			t.Fatalf("hints %+v do not name %s", hints, paid.ExternalID)
		}
		if p := hints[about].Payment; p != nil && (p.ID != paid.ID || p.Amount != paid.Amount) {
			t.Errorf("notice reports %+v, query %+v", p, paid)
		}
	}
}

func testNoticeForged(t *testing.T, h Harness) {
	notice, _ := h.genuine(t)
	h.testForged(t, notice, h.verify)
}

// testForged damages what the test server sent, which verify accepts, in every way.
func (h Harness) testForged(t *testing.T, notice Notice, verify func(n Notice, at time.Time) (id string, err error)) {
	t.Helper()
	now := h.Clock.Now()
	refused := func(name string, n Notice, at time.Time) {
		t.Helper()
		if id, err := verify(n, at); err == nil {
			t.Errorf("%s: accepted as %q", name, id)
		}
	}
	if _, err := verify(h.Forge(t, notice.Body, now, false), now); err != nil {
		t.Fatalf("Forge does not sign like the test server: %v", err)
	}

	refused("no headers", Notice{http.Header{}, notice.Body}, now)
	refused("wrong secret", h.Forge(t, notice.Body, now, true), now)
	refused("no body", Notice{notice.Header, nil}, now)
	refused("signed, but no notice", h.Forge(t, []byte(`{"hello":"world"}`), now, false), now)
	refused("signed, but half", h.Forge(t, notice.Body[:len(notice.Body)/2], now, false), now)
	for _, off := range []time.Duration{-h.Tolerance - 2*time.Second, h.Tolerance + 2*time.Second, 24 * time.Hour} {
		refused("old or ahead by "+off.String(), h.Forge(t, notice.Body, now.Add(off), false), now)
		refused("replayed", notice, now.Add(2*off))
	}
	for _, name := range h.SignatureHeaders {
		h.testHeader(t, notice, name, refused)
	}
	for i := range notice.Body {
		for bit := range 8 {
			body := slices.Clone(notice.Body)
			body[i] ^= 1 << bit
			refused("flipped bit of the body", Notice{notice.Header, body}, now)
		}
	}
	refused("longer body", Notice{notice.Header, append(slices.Clone(notice.Body), ' ')}, now)
}

// testHeader damages one header in every way.
func (h Harness) testHeader(t *testing.T, notice Notice, name string, refused func(string, Notice, time.Time)) {
	t.Helper()
	now := h.Clock.Now()
	genuine := notice.Header.Get(name)
	if genuine == "" {
		t.Fatalf("the test server sends no %s", name)
	}
	with := func(values ...string) Notice {
		header := notice.Header.Clone()
		header.Del(name)
		for _, value := range values {
			header.Add(name, value)
		}
		return Notice{header, notice.Body}
	}
	refused(name+" missing", with(), now)
	refused(name+" empty", with(""), now)
	refused(name+" twice", with(genuine, genuine), now)
	refused(name+" with another before it", with("0", genuine), now)
	refused(name+" padded", with(" "+genuine), now)
	for i := range len(genuine) {
		for bit := range 8 {
			value := []byte(genuine)
			value[i] ^= 1 << bit
			refused("flipped bit of "+name, with(string(value)), now)
		}
	}
}
