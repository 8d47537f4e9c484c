package outgoing_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// foreignTexts are texts that PostgreSQL rejects in part: half a character, and NUL.
var foreignTexts = []string{"x" + strings.Repeat("é", 600), "\xff\xfe", "a\x00b"}

// A bank may answer anything, of any length, and the outcome is still recorded.
func TestCauseOfAnyTextIsRecorded(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		for i, text := range foreignTexts {
			g.Bank.AnswerTransfer = always(processor.TransferAnswer{Cause: errors.New(text)})
			p := g.Payout(string(rune('a'+i)), 100)
			g.Send()
			g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		}
	})
}

// So is its evidence.
func TestEvidenceOfAnyTextIsRecorded(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for i, text := range foreignTexts {
			g.Bank.AnswerTransfer = always(processor.TransferAnswer{Outcome: processor.Refused, Evidence: text})
			p := g.Payout(string(rune('a'+i)), 100)
			g.Send()
			g.WantPayout(p, payment.PayoutFailed, payment.StepDone)
			sends, err := g.Store.Sends(t.Context(), p.Merchant, p.ID)
			g.Must(err)
			if e := sends[0].Evidence; len(e) > 500 || strings.ContainsRune(e, 0) {
				t.Errorf("evidence %q", e)
			}
		}
	})
}
