package jobs

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// questionTimeout bounds one question to a processor.
const questionTimeout = 10 * time.Second

// questionsPerMerchant is how many payouts of one merchant are asked about at once.
const questionsPerMerchant = 32

// ResolvePayouts asks processors about payouts whose outcome is unknown, and
// about accepted ones whose news does not come.
func (j *Jobs) ResolvePayouts(ctx context.Context) (int, error) {
	if !j.lease.Valid() || j.resolving.free() == 0 {
		return 0, nil
	}
	due, err := j.Store.PayoutsDue(ctx, j.Env.Clock.Now(), store.ToAsk)
	if err != nil {
		return 0, err
	}
	did := 0
	for _, d := range inTurn(j, dutyResolve, due, dueMerchant) {
		n := min(questionsPerMerchant, j.resolving.free())
		transferrer, ok := j.Processors[d.Processor].(processor.Transferrer)
		if n == 0 || !ok {
			continue
		}
		list, err := j.Flow.ClaimQuestions(ctx, d, n)
		if err != nil {
			return did, err
		}
		did += len(list)
		j.turns[dutyResolve] = d.Merchant
		for i := range list {
			j.resolving.run(func() { j.ask(ctx, list[i], transferrer) })
		}
	}
	return did, nil
}

func (j *Jobs) ask(ctx context.Context, p payment.Payout, transferrer processor.Transferrer) {
	limited, cancel := j.Env.Clock.WithTimeout(context.WithoutCancel(ctx), questionTimeout)
	report := guarded(func() processor.TransferReport {
		return transferrer.QueryTransfer(limited, p.ExternalID)
	}, func(cause error) processor.TransferReport {
		return processor.TransferReport{Lookup: processor.LookupUnknown, Cause: cause}
	})
	cancel()
	j.Env.Inject(env.AfterLookup)
	if report.Lookup == processor.LookupUnknown {
		j.Log.WarnContext(ctx, "payout's state not learned", "processor", p.Processor, "externalId", p.ExternalID, "cause", report.Cause)
	}
	j.record(ctx, "payout's state", func(ctx context.Context) error { return j.Flow.SettlePayout(ctx, p, report) })
}
