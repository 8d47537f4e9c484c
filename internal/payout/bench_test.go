package payout_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/wire"
)

// The largest batch, durable, without HTTP: alone, with counters of all limits, and refused
// because its last item exceeds one of them.
func BenchmarkBatch(b *testing.B) {
	for _, engine := range storetest.Engines {
		for _, limited := range []bool{false, true} {
			e := env.System(env.OutboundOptions{})
			s := storetest.Open(b, storetest.Prepare(b, engine, e))
			core := app.NewCore(app.CoreOptions{Store: s, Env: e, Processors: processor.Registry{coretest.BankName: coretest.NewBank()}})
			core.Writer.Start()
			b.Cleanup(core.Writer.Stop)
			m, err := core.Merchants.Create(b.Context(), store.Merchant{Name: "Loja", City: "SAO PAULO", Routes: payment.AllRoutes(coretest.BankName)}, "")
			if err == nil {
				m.Limits, err = core.Merchants.SetLimits(b.Context(), m.ID, merchant.Unlimited)
			}
			if err == nil && limited {
				m.Limits, err = core.Merchants.SetLimits(b.Context(), m.ID, func(l *limits.Limits) {
					most := money.Cents(1_000_000_000_000)
					l.Payout = limits.Payout{PerDay: &most, PerNight: &most, PerKeyPerDay: &most, NewKeyMaximum: &most}
				})
			}
			if err == nil {
				err = core.Merchants.Fund(b.Context(), m, 1_000_000_000_000)
			}
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			b.Run(fmt.Sprintf("%s/limits=%v", engine, limited), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					n++
					amounts := make([]int64, wire.BatchItemsMax)
					for i := range amounts {
						amounts[i] = 1
					}
					r := batchOf(fmt.Sprint("b", n), amounts...)
					b.StartTimer()
					if _, _, err := core.Payouts.RequestBatch(b.Context(), m, r); err != nil {
						b.Fatal(err)
					}
				}
			})
			if !limited {
				continue
			}
			b.Run(engine+"/refused", func(b *testing.B) {
				amounts := slices.Repeat([]int64{1}, wire.BatchItemsMax)
				amounts[wire.BatchItemsMax-1] = int64(money.Max)
				m.Limits.Payout.NewKeyMaximum = new(money.Cents(1))
				r := batchOf("refused", amounts...)
				for b.Loop() {
					if _, _, err := core.Payouts.RequestBatch(b.Context(), m, r); !problem.Is(err, problem.LimitExceeded) {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
