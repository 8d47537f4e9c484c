package jobs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// A bank may say anything, at any length, and the outcome is recorded all the
// same: PostgreSQL refuses half a character, and NUL.
func TestCauseOfAnyTextIsRecorded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x" + strings.Repeat("é", 600), "\xff\xfe", "a\x00b"} {
		each(t, func(t *testing.T, g *gateway) {
			g.bank.transfer = func(*bank, processor.TransferRequest) processor.TransferAnswer {
				return processor.TransferAnswer{Cause: errors.New(text)}
			}
			p := g.payout("r1", 100)
			g.submit()
			g.want(p, payment.PayoutProcessing, payment.StepUnknown)
		})
	}
}
