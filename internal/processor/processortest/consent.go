package processortest

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/processor"
)

// question reads a question.
func (h Harness) question(q Notice) (processor.Question, error) {
	return h.Processor.(processor.Authorizer).Question(processor.RawNotice{Header: q.Header, Body: q.Body, At: h.Clock.Now()})
}

// onQuestion answers the test server's questions by decide, which returns false for no answer,
// and returns the questions that it asks.
func (h Harness) onQuestion(t *testing.T, decide func(q processor.Question) (approve, answers bool)) *[]processor.Question {
	t.Helper()
	var asked []processor.Question
	h.OnQuestion(func(n Notice) (status int, contentType string, body []byte) {
		q, err := h.question(n)
		if err != nil {
			t.Errorf("a genuine question: %v", err)
			return 0, "", nil
		}
		asked = append(asked, q)
		approve, answers := decide(q)
		if !answers {
			return 0, "", nil
		}
		return h.Processor.(processor.Authorizer).Reply(approve, "a reason")
	})
	return &asked
}

// testConsent: a transfer is paid after our consent only. Of two with one id, one is paid: the
// one with our consent, and reports name it.
func testConsent(t *testing.T, h Harness) {
	if effect := h.Processor.Profile().Transfer; !effect.Consent || effect.Repeat.Safe() {
		t.Errorf("the test server asks about each request of a transfer, but the profile is %+v", effect)
	}
	r := h.transferRequest()
	consented := ""
	asked := h.onQuestion(t, func(q processor.Question) (approve, answers bool) {
		if consented == "" {
			consented = q.Transfer
		}
		return q.Transfer == consented, true
	})
	ids := map[string]bool{}
	for range 2 {
		answer := h.transfer(t, r, willing)
		if answer.Outcome != processor.Done || answer.Report.State != processor.TransferProcessing || answer.Report.ProcessorID == "" {
			t.Fatalf("transfer: %+v", answer)
		}
		ids[answer.Report.ProcessorID] = true
	}
	if report := h.queryTransfer(t, r.ExternalID); report.Lookup != processor.Found || report.State != processor.TransferProcessing || !ids[report.ProcessorID] {
		t.Errorf("before the question: %+v", report)
	}
	h.Elapse(t)
	if len(*asked) != 2 || len(ids) != 2 {
		t.Fatalf("the test server asked %+v about the transfers %v", *asked, ids)
	}
	for _, q := range *asked {
		if !ids[q.Transfer] || q.ExternalID != r.ExternalID || q.Amount != r.Amount || q.Key != r.Key {
			t.Errorf("question %+v about %+v", q, r)
		}
	}
	report := h.queryTransfer(t, r.ExternalID)
	if report.State != processor.TransferPaid || report.ProcessorID != consented || report.EndToEndID == "" {
		t.Errorf("with consent to %s: %+v", consented, report)
	}
}

// testConsentRefused: a transfer that is refused, or about which nobody answers, fails, with
// the reason.
func testConsentRefused(t *testing.T, h Harness) {
	for name, answers := range map[string]bool{"refused": true, "not answered": false} {
		t.Run(name, func(t *testing.T) {
			asked := h.onQuestion(t, func(processor.Question) (bool, bool) { return false, answers })
			r := h.transferRequest()
			answer := h.transfer(t, r, willing)
			if answer.Outcome != processor.Done {
				t.Fatalf("transfer: %+v", answer)
			}
			var report processor.TransferReport
			for range 100 {
				h.Elapse(t)
				if report = h.queryTransfer(t, r.ExternalID); report.State != processor.TransferProcessing {
					break
				}
			}
			if report.State != processor.TransferFailed || report.Failure == nil || report.ProcessorID != answer.Report.ProcessorID || len(*asked) == 0 {
				t.Errorf("asked %d times: %+v", len(*asked), report)
			}
			if answers && len(*asked) > 1 {
				t.Errorf("asked %d times, although it was refused at once", len(*asked))
			}
		})
	}
}

// testQuestionForged: only a question of the test server is read. It is no notice, and a notice is
// no question.
func testQuestionForged(t *testing.T, h Harness) {
	var question Notice
	h.OnQuestion(func(q Notice) (status int, contentType string, body []byte) {
		question = q
		return 0, "", nil
	})
	if answer := h.transfer(t, h.transferRequest(), willing); answer.Outcome != processor.Done {
		t.Fatalf("transfer: %+v", answer)
	}
	h.Elapse(t)
	h.testForged(t, question, func(n Notice, at time.Time) (string, error) {
		q, err := h.Processor.(processor.Authorizer).Question(processor.RawNotice{Header: n.Header, Body: n.Body, At: at})
		return q.Transfer, err
	})
	if !has[processor.Notifier](h) || h.Notices == nil || h.Pay == nil {
		return
	}
	if id, err := h.verify(h.Forge(t, question.Body, h.Clock.Now(), false), h.Clock.Now()); err == nil {
		t.Errorf("a question is read as notice %q", id)
	}
	notice, _ := h.genuine(t)
	if q, err := h.question(h.Forge(t, notice.Body, h.Clock.Now(), false)); err == nil {
		t.Errorf("a notice is read as question %+v", q)
	}
}
