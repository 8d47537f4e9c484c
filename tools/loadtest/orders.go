package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/delivery"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
	"github.com/porteira/porteira/internal/write"
)

// Shares. Pay-ins that are neither paid nor canceled expire.
const (
	paidShare     = 60 // per cent of pay-ins
	canceledShare = 2  // per cent of pay-ins
	disputedShare = 1  // of 10,000 paid pay-ins
	refusedShare  = 1  // per cent of payouts
	webhookShare  = 50 // per cent of pay-ins
)

// order is a pay-in that the next batch pays or cancels.
type order struct {
	merchant, id payment.ID
	externalID   string
	amount       money.Cents
}

// The customer's document is the usual example.
const (
	customer = `{"name":"Maria da Silva","email":"maria@example.com","document":"52998224725","phone":"11987654321"}`
	items    = `[{"title":"Camiseta","quantity":1,"unitPrice":12990,"tangible":true}]`

	payinBody  = `{"paymentMethod":"PIX","amount":%d,"referenceId":"%s","customer":%s,"items":%s%s}`
	payoutBody = `{"amount":%d,"referenceId":"%s","pixKeyType":"EMAIL","pixKey":"maria@example.com",` +
		`"beneficiaryName":"Maria da Silva","beneficiaryDocument":"52998224725"}`
)

// addOrders commits n pay-ins and m payouts, and then payments, cancellations, expiry, sends
// and deliveries of earlier orders.
func (f *filler) addOrders(ctx context.Context, n, m int) error {
	var ops []write.Operation
	var created []order
	for range n {
		f.clock.Advance(gap)
		merchant := f.merchant()
		r, err := f.payin(&merchant)
		if err != nil {
			return err
		}
		op, err := f.core.Payins.NewCreateOp(merchant, r)
		if err != nil {
			return err
		}
		ops = append(ops, op)
		p := &op.Payin
		created = append(created, order{p.Merchant, p.ID, p.ExternalID, p.Amount})
	}
	for range m {
		merchant := f.merchant()
		r, err := f.payout(&merchant)
		if err != nil {
			return err
		}
		op, err := f.core.Payouts.NewRequestOp(merchant, r)
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	following, err := f.following(ctx)
	if err != nil {
		return err
	}
	f.last = created
	if err := f.commit(ctx, ops); err != nil {
		return err
	}
	if err := f.commit(ctx, following); err != nil {
		return err
	}
	return errors.Join(f.expire(ctx), f.send(ctx), f.deliver(ctx))
}

// commit commits operations in batches. All must succeed.
func (f *filler) commit(ctx context.Context, ops []write.Operation) error {
	for len(ops) > 0 {
		n := min(batch, len(ops))
		if err := errors.Join(f.core.Writer.All(ctx, ops[:n])...); err != nil {
			return err
		}
		ops = ops[n:]
	}
	return ctx.Err()
}

// following pays or cancels pay-ins of the previous batch.
func (f *filler) following(ctx context.Context) (ops []write.Operation, err error) {
	for _, o := range f.last {
		switch at := f.below(100); {
		case at < paidShare:
			op, err := f.core.Payins.NewReceive(ctx, sandbox.Name, o.externalID, f.paid(o), nil)
			if err != nil {
				return nil, err
			}
			ops = append(ops, op)
		case at < paidShare+canceledShare:
			ops = append(ops, f.core.Payins.NewCancel(o.merchant, o.id))
		}
	}
	return ops, nil
}

// paid is the processor's report of a paid charge; a few charges are disputed.
func (f *filler) paid(o order) processor.ChargeReport {
	now := f.clock.Now()
	id := f.endToEndID(now)
	r := processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeOpen, Payments: []processor.Payment{{
		ID: id, ExternalID: o.externalID, EndToEndID: id, Amount: o.amount, PaidAt: now,
	}}}
	if f.below(10_000) < disputedShare {
		r.Disputes = []processor.Dispute{{ID: "D" + id, Amount: o.amount, State: processor.DisputeOpen}}
	}
	return r
}

func (f *filler) expire(ctx context.Context) error {
	for {
		if n, err := f.core.Payins.Expire(ctx); err != nil || n == 0 {
			return err
		}
	}
}

// send completes due payouts, and refuses a few.
func (f *filler) send(ctx context.Context) error {
	for i := range f.merchants {
		for {
			due := store.Due{Merchant: f.merchants[i].ID, Processor: sandbox.Name}
			sends, claimed, err := f.core.Outgoing.Claim(ctx, due, batch)
			if err != nil {
				return err
			}
			ops := make([]write.Operation, len(sends))
			for k := range sends {
				answer := processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{
					Lookup: processor.Found, State: processor.TransferPaid, Amount: sends[k].Payout.Amount, EndToEndID: f.endToEndID(f.clock.Now()),
				}}
				if f.below(100) < refusedShare {
					answer = processor.TransferAnswer{Outcome: processor.Refused, Failure: &payment.Failure{Code: "key_not_found", Message: "The key does not exist."}}
				}
				ops[k] = f.core.Outgoing.NewRecordSendOp(sends[k], answer)
			}
			if err := f.commit(ctx, ops); err != nil {
				return err
			}
			if claimed < batch {
				break
			}
		}
	}
	return nil
}

// deliver completes every due delivery with 200.
func (f *filler) deliver(ctx context.Context) error {
	for i := range f.merchants {
		for {
			list, err := f.core.Deliveries.Claim(ctx, f.merchants[i].ID, batch)
			if err != nil {
				return err
			}
			ops := make([]write.Operation, len(list))
			for k, d := range list {
				ops[k] = &delivery.End{Delivery: d, State: store.DeliveryDone, Attempt: store.Attempt{
					Merchant: d.Merchant, Delivery: d.ID, Number: d.Attempts, Status: 200, Latency: 80 * time.Millisecond, Response: "ok",
					CreatedAt: f.clock.Now(), EndedAt: f.clock.Now(),
				}}
			}
			if err := f.commit(ctx, ops); err != nil {
				return err
			}
			if len(list) < batch {
				break
			}
		}
	}
	return nil
}

// decoder decodes requests as the API does: their fingerprints have the amounts that verify looks for.
func (f *filler) decoder(m *store.Merchant) *wire.Decoder {
	return &wire.Decoder{Merchant: m.ID, MAC: func(data []byte) [32]byte { return f.store.Keys().MAC(db.PurposeFingerprint, data) }}
}

func (f *filler) payin(m *store.Merchant) (*wire.PayinRequest, error) {
	hook := ""
	if f.below(100) < webhookShare {
		hook = `,"webhookUrl":"https://shop.example/hook"`
	}
	r, invalid := f.decoder(m).Payin(fmt.Appendf(nil, payinBody, f.amount(), f.reference(), customer, items, hook))
	if invalid != nil {
		return nil, invalid
	}
	return r, nil
}

func (f *filler) payout(m *store.Merchant) (*wire.PayoutRequest, error) {
	r, invalid := f.decoder(m).Payout(fmt.Appendf(nil, payoutBody, f.amount(), f.reference()))
	if invalid != nil {
		return nil, invalid
	}
	return r, nil
}

// merchant draws a merchant by its share.
func (f *filler) merchant() store.Merchant {
	at := float64(f.below(1<<30)) / (1 << 30) * f.shares[len(f.shares)-1]
	return f.merchants[min(sort.SearchFloat64s(f.shares, at), len(f.merchants)-1)]
}

func (f *filler) below(n int64) int64 { return f.env.Random.Int64N(n) }

// amount is 1.00 to 500.99, in cents.
func (f *filler) amount() int64 { return 100 + f.below(50_000) }

func (f *filler) reference() string {
	b := make([]byte, 12)
	f.env.Random.Read(b)
	return hex.EncodeToString(b)
}

// endToEndID has the form of the Banco Central's Manual das Interfaces de Comunicação:
// E, a bank's ISPB, the minute and eleven characters.
func (f *filler) endToEndID(t time.Time) string {
	return fmt.Sprintf("E99999999%s%011x", t.UTC().Format("200601021504"), f.below(1<<44))
}
