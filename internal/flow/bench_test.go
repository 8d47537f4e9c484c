package flow_test

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/wire"
)

// The hot verbs, 64 requests at once, one merchant, durable: no HTTP, no JSON.
func BenchmarkVerbs(b *testing.B) {
	for _, engine := range storetest.Engines {
		w := env.System(env.OutboundOptions{})
		s := storetest.Open(b, storetest.Prepare(b, engine, w))
		f := flow.New(flow.Options{Store: s, Env: w, Processors: processor.Registry{"fake": fake{}}})
		f.Start()
		defer f.Stop()
		m, err := f.CreateMerchant(b.Context(), store.Merchant{Name: "Loja", City: "SAO PAULO", Processor: "fake"}, "")
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Fund(b.Context(), m, 1_000_000_000_000); err != nil {
			b.Fatal(err)
		}
		var n atomic.Int64
		run := func(name string, verb func(reference string) error) {
			b.Run(engine+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(32)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := verb("r-" + strconv.FormatInt(n.Add(1), 36)); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
		run("payin", func(reference string) error {
			_, _, err := f.CreatePayin(b.Context(), m, &wire.PayinRequest{Method: wire.Some("PIX"), Amount: wire.Some(int64(1000)), ReferenceID: wire.Some(reference)})
			return err
		})
		run("payout", func(reference string) error {
			_, _, err := f.RequestPayout(b.Context(), m, &wire.PayoutRequest{Amount: wire.Some(int64(1)), PIXKey: wire.Some("a@b.c"), PIXKeyType: wire.Some("EMAIL"), ReferenceID: wire.Some(reference)})
			return err
		})
	}
}
