package sandboxbank

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// newConsentHarness opens a bank on disk that asks for consent to transfers.
func newConsentHarness(t *testing.T) *harness {
	t.Helper()
	disk := onDisk(t)
	return newHarness(t, func(o *Options) {
		disk(o)
		o.Repeat = bankapi.RepeatAsksConsent
	})
}

// noAnswer answers no question.
func noAnswer(bankapi.Question) (int, string) { return http.StatusServiceUnavailable, "" }

// states are the states of the transfers under an id, in the order of their acceptance.
func (h *harness) states(externalID string) (list []string) {
	h.t.Helper()
	for _, entry := range h.transfers(externalID) {
		list = append(list, entry.Status)
	}
	return list
}

func (h *harness) wantStates(externalID string, want ...string) {
	h.t.Helper()
	if got := h.states(externalID); !slices.Equal(got, want) {
		h.t.Errorf("the transfers are %v, want %v", got, want)
	}
}

// advance lets d pass, in steps of a second.
func (h *harness) advance(d time.Duration) {
	h.t.Helper()
	for range d / time.Second {
		h.clock.Advance(time.Second)
		h.step()
	}
}

// TestQuestionPauses: the bank asks three times, and fails a transfer about which nobody has
// answered. Only a decision is an answer.
func TestQuestionPauses(t *testing.T) {
	for name, answer := range map[string]func(bankapi.Question) (int, string){
		"no answer":           noAnswer,
		"no decision":         func(bankapi.Question) (int, string) { return http.StatusOK, "{}" },
		"another decision":    func(bankapi.Question) (int, string) { return http.StatusOK, `{"status":"yes"}` },
		"not JSON":            func(bankapi.Question) (int, string) { return http.StatusOK, `<html>` },
		"approved with a 202": func(bankapi.Question) (int, string) { return http.StatusAccepted, `{"status":"approved"}` },
	} {
		t.Run(name, func(t *testing.T) {
			h := newConsentHarness(t)
			h.gateway.consent = answer
			r := h.transferRequest()
			h.transfer(r)
			h.advance(35 * time.Second)
			h.wantStates(r.ExternalID, "processing")
			h.advance(30 * time.Second)
			h.wantStates(r.ExternalID, "failed")
			var at []time.Duration
			for _, q := range h.gateway.asked {
				at = append(at, q.at.Sub(start))
			}
			if !slices.Equal(at, []time.Duration{time.Second, 6 * time.Second, 36 * time.Second}) {
				t.Errorf("asked at %v", at)
			}
			if report := h.driver.QueryTransfer(t.Context(), r.ExternalID); report.Failure == nil || report.Failure.Code != string(bankapi.CodeConsentMissing) {
				t.Errorf("failed as %+v", report)
			}
			if n := len(h.gateway.received()); n != 1 {
				t.Errorf("%d notices of one failure", n)
			}
		})
	}
}

// TestQuestionIsAboutTheTransfer: the question has the transfer's own id and contents.
func TestQuestionIsAboutTheTransfer(t *testing.T) {
	h := newConsentHarness(t)
	r := h.transferRequest()
	made := h.transfer(r)
	h.advance(time.Second)
	want := bankapi.QuestionedTransfer{ID: made.Report.ProcessorID, ExternalID: r.ExternalID, Amount: r.Amount, PIXKey: r.Key}
	if len(h.gateway.asked) != 1 || h.gateway.asked[0].Transfer != want || want.ID == "" {
		t.Errorf("asked %+v, want %+v", h.gateway.asked, want)
	}
}

// TestConsentSurvivesACrash: an approved transfer is paid after a crash without another
// question; about one that is not approved the bank asks again.
func TestConsentSurvivesACrash(t *testing.T) {
	h := newConsentHarness(t)
	r := h.transferRequest()
	h.transfer(r)
	h.reopen()
	h.gateway.consent = noAnswer
	h.advance(20 * time.Second) // 1 s, 6 s
	h.reopen()
	h.gateway.consent = nil
	h.step()
	if n := len(h.gateway.asked); n != 3 {
		t.Fatalf("asked %d times", n)
	}
	h.wantStates(r.ExternalID, "processing")
	h.reopen()
	h.gateway.consent = noAnswer
	h.advance(time.Second)
	h.wantStates(r.ExternalID, "paid")
	h.advance(time.Minute)
	if n := len(h.gateway.asked); n != 3 {
		t.Errorf("asked %d times after the approval", n-3)
	}
	if n := len(h.gateway.received()); n != 1 {
		t.Errorf("%d notices of one payment", n)
	}
}

// TestDelayedCopies: a delayed request has its own number among the copies, so each request
// becomes a transfer of its own, about which the bank asks. The id shows the paid one.
func TestDelayedCopies(t *testing.T) {
	h := newConsentHarness(t)
	r := h.transferRequest()
	request := bankapi.TransferRequest{
		ExternalID: r.ExternalID, Amount: r.Amount, KeyType: r.KeyType, Key: r.Key, Name: r.Name, Document: r.Document,
	}
	created, err := transferOrder(&request)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{10 * time.Second, time.Minute} {
		if err := h.bank.delay(created, by); err != nil {
			t.Fatal(err)
		}
	}
	if report := h.driver.QueryTransfer(t.Context(), r.ExternalID); report.Lookup != processor.NotFound {
		t.Errorf("a look-up before the delayed requests arrive: %+v", report)
	}
	sent := h.transfer(r)
	h.gateway.consent = func(q bankapi.Question) (int, string) {
		if q.Transfer.ID == sent.Report.ProcessorID {
			return http.StatusOK, `{"status":"approved"}`
		}
		return http.StatusOK, `{"status":"refused","reason":"another one was approved"}`
	}
	h.reopen() // which keeps the delayed ones
	h.advance(5 * time.Second)
	h.wantStates(r.ExternalID, "paid")
	h.advance(10 * time.Second)
	h.wantStates(r.ExternalID, "paid", "failed")
	h.advance(time.Minute)
	h.wantStates(r.ExternalID, "paid", "failed", "failed")
	report := h.driver.QueryTransfer(t.Context(), r.ExternalID)
	if report.State != processor.TransferPaid || report.ProcessorID != sent.Report.ProcessorID {
		t.Errorf("the id shows %+v, want the paid %s", report, sent.Report.ProcessorID)
	}
	balance, err := h.driver.Balance(t.Context())
	if err != nil || balance.Amount != -r.Amount {
		t.Errorf("balance %+v, %v", balance, err)
	}
}

// TestShownCopy: an id shows a transfer in process before a failed one.
func TestShownCopy(t *testing.T) {
	h := newConsentHarness(t)
	r := h.transferRequest()
	first := h.transfer(r)
	if err := h.control.Transfer(t.Context(), r.ExternalID, "fail", 0); err != nil {
		t.Fatal(err)
	}
	second := h.transfer(r)
	report := h.driver.QueryTransfer(t.Context(), r.ExternalID)
	if report.State != processor.TransferProcessing || report.ProcessorID != second.Report.ProcessorID || report.ProcessorID == first.Report.ProcessorID {
		t.Errorf("the id shows %+v", report)
	}
	h.advance(5 * time.Second)
	if n := len(h.gateway.asked); n != 1 {
		t.Errorf("asked %d times, want about the second transfer only", n)
	}
	h.wantStates(r.ExternalID, "failed", "paid")
}

// TestShownFailedCopy: if all transfers under an id have failed, it shows one that the gateway did
// not refuse, whose end the gateway does not know.
func TestShownFailedCopy(t *testing.T) {
	h := newConsentHarness(t)
	r := h.transferRequest()
	first := h.transfer(r).Report.ProcessorID
	h.gateway.consent = func(q bankapi.Question) (int, string) {
		if q.Transfer.ID == first {
			return http.StatusOK, `{"status":"refused","reason":"another transfer of the payout is known"}`
		}
		return noAnswer(q)
	}
	second := h.transfer(r).Report.ProcessorID
	h.advance(time.Minute)
	h.wantStates(r.ExternalID, "failed", "failed")
	if report := h.driver.QueryTransfer(t.Context(), r.ExternalID); report.ProcessorID != second || report.Failure.Code != string(bankapi.CodeConsentMissing) {
		t.Errorf("the id shows %+v, want the transfer %s", report, second)
	}
}

// TestForcedWithoutConsent: a transfer cannot be forced to be paid without consent.
func TestForcedWithoutConsent(t *testing.T) {
	h := newConsentHarness(t)
	h.gateway.consent = noAnswer
	r := h.transferRequest()
	h.transfer(r)
	for _, action := range []string{"complete", "return"} {
		if err := h.control.Transfer(t.Context(), r.ExternalID, action, 0); err == nil {
			t.Errorf("%s before the consent", action)
		}
	}
	h.wantStates(r.ExternalID, "processing")
	h.gateway.consent = nil
	h.advance(6 * time.Second)
	if err := h.control.Transfer(t.Context(), r.ExternalID, "complete", 0); err != nil {
		t.Errorf("complete with consent: %v", err)
	}
	h.wantStates(r.ExternalID, "paid")
}

// TestRefusedIDIsRefusedAgain: as at any contract, a refused id is refused again.
func TestRefusedIDIsRefusedAgain(t *testing.T) {
	h := newConsentHarness(t)
	r := h.transferRequest()
	h.arm(bankapi.OpTransfer, bankapi.Refuse)
	for range 3 {
		if answer := h.transfer(r); answer.Outcome != processor.Refused {
			t.Errorf("outcome %v", answer.Outcome)
		}
	}
	h.wantStates(r.ExternalID)
	h.advance(time.Minute)
	if n := len(h.gateway.asked); n != 0 {
		t.Errorf("asked %d times about a refused transfer", n)
	}
}

// TestAskedInParallel: with several workers each transfer is asked about once.
func TestAskedInParallel(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.Repeat, o.NoticeWorkers = bankapi.RepeatAsksConsent, 4 })
	asked := map[string]int{}
	var ids []string
	for range 9 {
		r := h.transferRequest()
		ids = append(ids, r.ExternalID)
		h.transfer(r)
	}
	h.advance(3 * time.Second)
	for _, q := range h.gateway.asked {
		asked[q.Transfer.ExternalID]++
	}
	for _, id := range ids {
		if asked[id] != 1 {
			t.Errorf("asked %d times about %s", asked[id], id)
		}
		h.wantStates(id, "paid")
	}
}
