package flow_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/world"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

type fake struct{}

func (fake) Profile() processor.Profile {
	return processor.Profile{Name: "fake", IdempotentByOurID: true, ChargeTimeout: time.Second, TransferTimeout: 5 * time.Second}
}
func (fake) Mint(r processor.ChargeRequest) (processor.Charge, bool) {
	return processor.Charge{PIX: &payment.PIXDetail{QRCode: "x", TxID: r.ExternalID, ExpiresAt: r.ExpiresAt}}, true
}
func (fake) Charge(context.Context, processor.ChargeRequest) (a processor.ChargeAnswer) { return a }
func (fake) QueryCharge(context.Context, string) (r processor.ChargeReport)             { return r }
func (fake) Transfer(_ context.Context, r processor.TransferRequest, guard func() error) processor.TransferAnswer {
	return processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{State: processor.TransferProcessing}}
}
func (fake) QueryTransfer(context.Context, string) (r processor.TransferReport) { return r }

func TestSmoke(t *testing.T) {
	w := world.System(world.OutboundOptions{})
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		ctx := t.Context()
		s := storetest.Open(t, o)
		f := flow.New(flow.Options{Store: s, World: w, Processors: processor.Registry{"fake": fake{}}})
		f.Start()
		defer f.Stop()
		if err := f.Join(ctx, 0, false); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Beat(ctx); err != nil {
			t.Fatal(err)
		}
		m, err := f.CreateMerchant(ctx, store.Merchant{Name: "Loja", City: "SAO PAULO", Processor: "fake"}, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Fund(ctx, m, 100_00); err != nil {
			t.Fatal(err)
		}
		r := &payment.PayinRequest{Method: payment.Some("PIX"), Amount: payment.Some(int64(1000)), ReferenceID: payment.Some("r1"), WebhookURL: payment.Some("https://x.example/h")}
		p, replayed, err := f.CreatePayin(ctx, m, r)
		if err != nil || replayed {
			t.Fatal(err, replayed)
		}
		p2, replayed, err := f.CreatePayin(ctx, m, r)
		if err != nil || !replayed || p2.ID != p.ID {
			t.Fatal(err, replayed)
		}
		if err := f.RecordNotice(ctx, "fake", "n1", "", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		ns, err := f.ClaimNotices(ctx, 10)
		if err != nil || len(ns) != 1 {
			t.Fatal(err, ns)
		}
		err = f.ApplyCharge(ctx, "fake", p.ExternalID, processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{{ID: "e1", EndToEndID: "e1", Amount: 1500, PaidAt: w.Clock.Now()}}}, &ns[0])
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Payin(ctx, m.ID, p.ID)
		if err != nil || got.Status != payment.PayinPaid || got.Version != 3 {
			t.Fatal(err, got)
		}
		b, err := s.Balances(ctx, m.ID)
		if err != nil || b[ledger.Available] != 110_00 || b[ledger.Unapplied] != 500 {
			t.Fatal(err, b)
		}
		ds, err := f.ClaimDeliveries(ctx, m.ID, 10)
		if err != nil || len(ds) != 2 {
			t.Fatal(err, ds)
		}
		for _, d := range ds {
			d.State = store.DeliveryDone
			if err := f.EndDelivery(ctx, &flow.EndedDelivery{Delivery: d, Attempt: store.Attempt{Status: 200}}); err != nil {
				t.Fatal(err)
			}
		}
		q := &payment.PayoutRequest{Amount: payment.Some(int64(2000)), PIXKey: payment.Some("a@b.c"), PIXKeyType: payment.Some("EMAIL"), BeneficiaryName: payment.Some("x"), BeneficiaryDocument: payment.Some("1"), ReferenceID: payment.Some("p1"), NormalKey: "a@b.c"}
		o1, _, err := f.RequestPayout(ctx, m, q)
		if err != nil {
			t.Fatal(err)
		}
		due, err := s.PayoutsDue(ctx, w.Clock.Now(), store.ToSend)
		if err != nil || len(due) != 1 {
			t.Fatal(err, due)
		}
		sends, taken, err := f.BeginSends(ctx, due[0], 10)
		if err != nil || taken != 1 || len(sends) != 1 {
			t.Fatal(err, taken, sends)
		}
		if err := f.EndSend(ctx, sends[0], processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{State: processor.TransferPaid, EndToEndID: "E2"}}); err != nil {
			t.Fatal(err)
		}
		po, err := s.Payout(ctx, m.ID, o1.ID)
		if err != nil || po.Status != payment.PayoutCompleted {
			t.Fatal(err, po)
		}
		q.ReferenceID, q.Amount = payment.Some("p2"), payment.Some(int64(1_000_000))
		if _, _, err := f.RequestPayout(ctx, m, q); err == nil {
			t.Fatal("no error")
		}
		if n, err := f.ExpirePayins(ctx, 10); err != nil || n != 0 {
			t.Fatal(n, err)
		}
		evs, err := s.Events(ctx, m.ID, 0, 100)
		if err != nil || len(evs) != 4 || evs[3].Number != 4 {
			t.Fatal(err, len(evs))
		}
		if _, err := s.OpenExceptions(ctx, 10); err != nil {
			t.Fatal(err)
		}
		if l, err := s.Payins(ctx, m.ID, store.Filter{Status: "PAID", Limit: 5, CreatedFrom: p.CreatedAt, CreatedTo: p.CreatedAt.Add(time.Millisecond)}); err != nil || len(l) != 1 {
			t.Fatal(err, l)
		}
		if _, err := s.Attempts(ctx, m.ID, 1); err != nil {
			t.Fatal(err)
		}
		if err := f.Leave(ctx); err != nil {
			t.Fatal(err)
		}
	})
}
