package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// An operator reads from one line whether the processor has the merchant's answer.
func TestDisputeAnswersAreReadable(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 2, 11, 58, 0, time.UTC)
	v := disputeView{Kind: payment.KindMED, Status: payment.DisputeSubmitted, Answers: []answerView{
		{Action: payment.AnswerDefend, Step: payment.StepQueued, At: at},
		{Action: payment.AnswerDefend, Step: payment.StepDone, Outcome: "taken", Evidence: "bank has it\nsince noon", At: at},
	}}
	var out strings.Builder
	v.write(&out)
	for _, want := range []string{"\n  2026-11-27 02:11:58Z  defend: queued\n", "\n  2026-11-27 02:11:58Z  defend: done, taken (bank has it since noon)\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
