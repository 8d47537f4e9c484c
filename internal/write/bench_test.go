package write_test

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// offlineBank is a bank that makes its charges without a call.
type offlineBank struct{ *coretest.Bank }

// NewCharge implements [processor.OfflineCharger].
func (offlineBank) NewCharge(r processor.ChargeRequest) (processor.Charge, bool) {
	return processor.Charge{PIX: processortest.PIX(r)}, true
}

// The two operations that clients wait for most, 64 requests at once, one merchant,
// durable: no HTTP, no JSON.
func BenchmarkOperations(b *testing.B) {
	for _, engine := range storetest.Engines {
		e := env.System(env.OutboundOptions{})
		s := storetest.Open(b, storetest.Prepare(b, engine, e))
		core := app.NewCore(app.CoreOptions{Store: s, Env: e, Processors: processor.Registry{coretest.BankName: offlineBank{coretest.NewBank()}}})
		core.Writer.Start()
		b.Cleanup(core.Writer.Stop)
		m, err := core.Merchants.Create(b.Context(), store.Merchant{Name: "Loja", City: "SAO PAULO", Routes: payment.AllRoutes(coretest.BankName)}, "")
		if err == nil {
			m.Limits, err = core.Merchants.SetLimits(b.Context(), m.ID, merchant.Unlimited)
		}
		if err == nil {
			err = core.Merchants.Fund(b.Context(), m, 1_000_000_000_000)
		}
		if err != nil {
			b.Fatal(err)
		}
		var n atomic.Int64
		run := func(name string, operation func(reference string) error) {
			b.Run(engine+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(32)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := operation("r-" + strconv.FormatInt(n.Add(1), 36)); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
		run("payin", func(reference string) error {
			_, _, err := core.Payins.Create(b.Context(), m, coretest.PayinRequest(reference, ""))
			return err
		})
		run("payout", func(reference string) error {
			_, _, err := core.Payouts.Request(b.Context(), m, coretest.PayoutRequest(reference, 1))
			return err
		})
	}
}
