package bench

import (
	"context"
	"encoding/hex"
	"fmt"
	"sort"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// seedRound is what is committed at once: new orders, and what becomes of those
// of the round before.
type seedRound struct {
	slice *flow.Slice
	after seedState
}

// What becomes of an order in the round after its own; of others nothing.
const (
	toBePaid     = 'p'
	toBeCanceled = 'c'
)

// seededOrder is an order on its way to the next round.
type seededOrder struct {
	merchant, id payment.ID
	externalID   string
	amount       money.Cents
	fate         rune
}

// prepare makes the next round; it runs beside the commit of the one before.
func (s *seeder) prepare(ctx context.Context, at seedState) (seedRound, error) {
	r := seedRound{slice: s.flow.NewSlice()}
	paidAt := at.Until
	n, m := s.share(at)
	made := make([]seededOrder, 0, n)
	for i := range max(n, m) {
		if i < n {
			at.Until = at.Until.Add(s.gap)
		}
		s.preparing.SetOffset(at.Until.Sub(s.Env.Clock.Now()))
		if i < n {
			o, err := s.payin(r.slice, at.Until)
			if err != nil {
				return r, err
			}
			made = append(made, o)
		}
		if i < m {
			if err := s.payout(r.slice, at.Until); err != nil {
				return r, err
			}
		}
	}
	for _, o := range s.last {
		if err := s.settle(ctx, r.slice, o, paidAt); err != nil {
			return r, err
		}
	}
	s.last = made
	at.Payins, at.Payouts = at.Payins+n, at.Payouts+m
	r.after = at
	r.slice.Note(s.setting, at.text())
	return r, nil
}

// share is how many pay-ins and payouts the next round takes, so that both come
// to their end together, as far as a round holds them.
func (s *seeder) share(at seedState) (payins, payouts int64) {
	payins, payouts = s.goal.Payins-at.Payins, s.goal.Payouts-at.Payouts
	rounds := max(1, (max(payins, payouts)+seedSlice-1)/seedSlice)
	return (payins + rounds - 1) / rounds, (payouts + rounds - 1) / rounds
}

// A customer and what is bought, as a shop sends them. The document is one that
// is printed in examples: it belongs to nobody.
var (
	seedCustomer = jsontext.Value(`{"name":"Maria da Silva","email":"maria@example.com","document":"52998224725","phone":"11987654321","address":{"street":"Rua das Flores","number":"123","neighborhood":"Centro","city":"Sao Paulo","state":"SP","zipCode":"01001000"}}`)
	seedItems    = jsontext.Value(`[{"title":"Camiseta","quantity":1,"unitPrice":12990,"tangible":true}]`)
	seedBuyer    = wire.CustomerRequest{
		Name: wire.Some("Maria da Silva"), Email: wire.Some("maria@example.com"), Document: wire.Some("52998224725"), Phone: wire.Some("11987654321"),
		Address: wire.Some(wire.AddressRequest{
			Street: wire.Some("Rua das Flores"), Number: wire.Some("123"), Neighborhood: wire.Some("Centro"),
			City: wire.Some("Sao Paulo"), State: wire.Some("SP"), ZipCode: wire.Some("01001000"),
		}),
	}
	seedBought = []wire.ItemRequest{{
		Title: wire.Some("Camiseta"), Quantity: wire.Some(int64(1)), UnitPrice: wire.Some(int64(12990)), Tangible: wire.Some(true),
	}}
	seedPayinFields  = []string{"amount", "customer", "items", "paymentMethod", "referenceId", "webhookUrl"}
	seedPayoutFields = []string{"amount", "beneficiaryDocument", "beneficiaryName", "pixKey", "pixKeyType", "referenceId", "webhookUrl"}
)

// payin adds one order, and draws what becomes of it.
func (s *seeder) payin(slice *flow.Slice, now time.Time) (seededOrder, error) {
	q := &wire.PayinRequest{
		Method: wire.Some(string(payment.PIX)), Amount: wire.Some(s.amount()), ReferenceID: wire.Some(s.reference()),
		WebhookURL: s.hook(), Customer: wire.Some(seedBuyer), Items: wire.Some(seedBought),
		Personal: payment.PersonalData{Customer: seedCustomer, Items: seedItems}, Fingerprint: s.fingerprint(seedPayinFields),
	}
	var errs wire.Errors
	if q.Check(wire.Rules{ChecksDocuments: true, Today: payment.DayOf(now)}, &errs); len(errs.List()) > 0 {
		return seededOrder{}, fmt.Errorf("bench: a seeded pay-in is faulty: %v", errs.List())
	}
	p, err := slice.CreatePayin(s.someone(), q)
	if err != nil {
		return seededOrder{}, err
	}
	o := seededOrder{merchant: p.Merchant, id: p.ID, externalID: p.ExternalID, amount: p.Amount}
	switch at := s.random.below(100); {
	case at < seedPaid:
		o.fate = toBePaid
	case at < seedPaid+seedCanceled:
		o.fate = toBeCanceled
	}
	return o, nil
}

// settle lets an order of the round before be paid or canceled, at until.
func (s *seeder) settle(ctx context.Context, slice *flow.Slice, o seededOrder, until time.Time) error {
	switch o.fate {
	case toBePaid:
		id := endToEnd(s.random, until)
		report := processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeOpen, Payments: []processor.Payment{{
			ID: id, ExternalID: o.externalID, EndToEndID: id, Amount: o.amount, PaidAt: until,
		}}}
		if s.random.one(seedDisputed) {
			report.Disputes = []processor.Dispute{{ID: "D" + id, Amount: o.amount, State: processor.DisputeOpen}}
		}
		return slice.ApplyCharge(ctx, processorName, o.externalID, report)
	case toBeCanceled:
		slice.CancelPayin(o.merchant, o.id)
	}
	return nil
}

// payout adds one payout.
func (s *seeder) payout(slice *flow.Slice, now time.Time) error {
	reference := s.reference()
	q := &wire.PayoutRequest{
		Amount: wire.Some(s.amount()), ReferenceID: wire.Some(reference), WebhookURL: s.hook(),
		PIXKeyType: wire.Some("EMAIL"), PIXKey: wire.Some("p" + reference[:keyLength] + "@example.com"),
		BeneficiaryName: wire.Some("Maria da Silva"), BeneficiaryDocument: wire.Some("52998224725"), Fingerprint: s.fingerprint(seedPayoutFields),
	}
	var errs wire.Errors
	if q.Check(wire.Rules{ChecksDocuments: true, Today: payment.DayOf(now)}, &errs); len(errs.List()) > 0 {
		return fmt.Errorf("bench: a seeded payout is faulty: %v", errs.List())
	}
	return slice.RequestPayout(s.someone(), q)
}

// commit makes a round durable, and does what then falls due.
func (s *seeder) commit(ctx context.Context, r seedRound) error {
	s.setTime(r.after.Until)
	if err := r.slice.Commit(ctx); err != nil {
		return err
	}
	s.state = r.after
	_, err := s.due(ctx)
	return err
}

// due does once what falls due: expiry, sends and deliveries. It says whether
// there was anything.
func (s *seeder) due(ctx context.Context) (any bool, err error) {
	for {
		n, err := s.flow.ExpirePayins(ctx, seedSlice)
		if err != nil {
			return any, err
		}
		if n < seedSlice {
			break
		}
	}
	now := s.state.Until
	ends := s.flow.NewSlice()
	for i := range s.merchants {
		m := s.merchants[i].ID
		for taken := seedSlice; taken == seedSlice; {
			var sends []flow.Sending
			if sends, taken, err = s.flow.BeginSends(ctx, store.Due{Merchant: m, Processor: processorName}, seedSlice); err != nil {
				return any, err
			}
			for k := range sends {
				ends.EndSend(sends[k], s.transferred(&sends[k], now))
			}
		}
		for taken := seedSlice; taken == seedSlice; {
			list, err := s.flow.ClaimDeliveries(ctx, m, seedSlice)
			if err != nil {
				return any, err
			}
			taken = len(list)
			for k := range list {
				ends.EndDelivery(s.delivered(list[k], now))
			}
		}
	}
	any = ends.Len() > 0
	return any, ends.Commit(ctx)
}

// drain goes on until nothing is due: the store is then as a gateway leaves it
// that had time enough.
func (s *seeder) drain(ctx context.Context) error {
	if err := s.ask(ctx); err != nil {
		return err
	}
	rest := s.flow.NewSlice()
	for _, o := range s.last {
		if err := s.settle(ctx, rest, o, s.state.Until); err != nil {
			return err
		}
	}
	s.last = nil // a second drain must not pay them again
	if err := rest.Commit(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if any, err := s.due(ctx); err != nil || !any {
			return err
		}
		s.state.Until = s.state.Until.Add(webhookAgain)
		s.setTime(s.state.Until)
	}
	return ctx.Err()
}

// ask asks about payouts whose send a process did not live to record.
func (s *seeder) ask(ctx context.Context) error {
	for i := range s.merchants {
		for {
			list, err := s.flow.ClaimQuestions(ctx, store.Due{Merchant: s.merchants[i].ID, Processor: processorName}, seedSlice)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				break
			}
			for k := range list {
				p := list[k]
				if err := s.flow.SettlePayout(ctx, p, s.paid(p.Amount, s.state.Until)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// paid is what the processor says of a transfer that went well.
func (s *seeder) paid(amount money.Cents, now time.Time) processor.TransferReport {
	return processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, Amount: amount, EndToEndID: endToEnd(s.chance, now)}
}

// transferred is what the processor says of a send.
func (s *seeder) transferred(v *flow.Sending, now time.Time) processor.TransferAnswer {
	if s.chance.one(seedRefused) {
		return processor.TransferAnswer{Outcome: processor.Refused, Failure: &payment.Failure{Code: "key_not_found", Message: "The key belongs to nobody."}}
	}
	return processor.TransferAnswer{Outcome: processor.Done, Report: s.paid(v.Payout.Amount, now)}
}

// webhookAgain is when an event is sent again that its receiver did not take.
const webhookAgain = 5 * time.Second

// delivered is how an attempt ended.
func (s *seeder) delivered(d store.Delivery, now time.Time) *flow.EndedDelivery {
	v := &flow.EndedDelivery{End: store.End{Delivery: d, Attempt: store.Attempt{
		Delivery: d.ID, Status: 200, Latency: 40*time.Millisecond + time.Duration(s.chance.below(100))*time.Millisecond, Response: "ok",
	}}}
	v.Delivery.State = store.DeliveryDone
	if s.chance.one(seedRetried) {
		v.Attempt.Status, v.Attempt.Error, v.Attempt.Response = 503, "unexpected_status", ""
		v.Delivery.State, v.Delivery.NextAt = store.DeliveryPending, now.Add(webhookAgain)
	}
	return v
}

// someone chooses a merchant, by its share.
func (s *seeder) someone() store.Merchant {
	at := float64(s.random.below(1<<30)) / (1 << 30) * s.shares[len(s.shares)-1]
	return s.merchants[min(sort.SearchFloat64s(s.shares, at), len(s.merchants)-1)]
}

func (s *seeder) amount() int64 { return amountMin + int64(s.random.below(amountSpan)) }

func (s *seeder) reference() string { return hex.EncodeToString(s.random.draw(referenceLength / 2)) }

func (s *seeder) hook() (f wire.Field[string]) {
	if s.random.below(100) < seedHooked {
		f = wire.Some(defaultHook)
	}
	return f
}

// fingerprint is as large as a request's, and as random as its keyed hashes are.
func (s *seeder) fingerprint(fields []string) wire.Fingerprint {
	macs := make([]wire.FieldMAC, len(fields))
	for i, name := range fields {
		macs[i] = wire.FieldMAC{Name: name, MAC: [16]byte(s.random.draw(16))}
	}
	return wire.NewFingerprint(macs)
}

// endToEnd makes an id of a Pix as banks do: a bank, a minute, and eleven
// characters (Banco Central do Brasil, Manual das Interfaces de Comunicação).
func endToEnd(random *pooledRandom, t time.Time) string {
	id := append([]byte("E99999999"), t.Format("200601021504")...)
	const alphabet = "0123456789abcdefghijklmnopqrstuv"
	for _, b := range random.draw(endToEndTail) {
		id = append(id, alphabet[int(b)%len(alphabet)])
	}
	return string(id)
}

const endToEndTail = 11

// pooledRandom draws from a pool of random bytes.
type pooledRandom struct {
	from env.Random
	pool [4096]byte
	used int
	full bool
}

// draw draws n random bytes, which are good until the next call.
func (p *pooledRandom) draw(n int) []byte {
	if !p.full || p.used+n > len(p.pool) {
		p.from.Read(p.pool[:])
		p.used, p.full = 0, true
	}
	p.used += n
	return p.pool[p.used-n : p.used]
}

// below chooses one of n, each about as likely as any other.
func (p *pooledRandom) below(n int) int {
	b := p.draw(4)
	v := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24
	return int(v * uint64(n) >> 32)
}

// one is true once in n times.
func (p *pooledRandom) one(n int) bool { return p.below(n) == 0 }
