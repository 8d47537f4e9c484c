package payin

import (
	"context"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
)

// followAfter is the schedule of look-ups, by their number so far, of an order that is PROCESSING
// or has a dispute whose end is in no list. They are needed because the notice of its end may be
// lost.
var followAfter = []time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// followsBeforeCase is the number of look-ups after which a case is opened: after one day for a
// Pix, three for a card and six for a boleto.
var followsBeforeCase = map[payment.Method]int{payment.PIX: 7, payment.CreditCard: 9, payment.Boleto: 12}

// followDisputes schedules look-ups of an order with an open dispute.
func followDisputes(l *store.Loaded, c *store.Changes, p *payment.Payin) {
	if v, ok := l.Charge(p.Merchant, p.ID); (!ok || v.State != store.ChargeFollowed) && openDispute(l.DisputesOf(p.Merchant, p.ID)) {
		followCharge(l, c, p)
	}
}

// openDispute reports whether a pay-in has a dispute that is not decided.
func openDispute(disputes []payment.Dispute) bool {
	return slices.ContainsFunc(disputes, func(d payment.Dispute) bool { return d.Live() })
}

// disputesRead are the newest disputes of an order that are read: of each instalment of a card
// there may be several.
const disputesRead = 100

// disputedAt are the accounts that have an undecided dispute of a pay-in: its own, or one that it
// was tried at before.
func (s *Service) disputedAt(ctx context.Context, p *payment.Payin) (accounts []string, err error) {
	list, err := s.Store.Disputes(ctx, p.Merchant, store.DisputeFilter{Payin: p.ID, Limit: disputesRead})
	for i := range list {
		if d := &list[i].Dispute; d.Live() && !slices.Contains(accounts, d.Processor) {
			accounts = append(accounts, d.Processor)
		}
	}
	return accounts, err
}

// followCharge schedules look-ups of an order that has become PROCESSING, or is disputed.
func followCharge(l *store.Loaded, c *store.Changes, p *payment.Payin) {
	v, ok := l.Charge(p.Merchant, p.ID)
	if !ok { // it was generated offline
		v = store.Charge{Merchant: p.Merchant, Payin: p.ID, Number: 1, Account: p.Processor, MayExist: true}
	}
	v.State, v.Attempts = store.ChargeFollowed, 0
	if v.ClaimedBy.IsZero() { // else the record of its call schedules them
		v.NextAt = l.Now().Add(followAfter[0])
	}
	if ok {
		c.SetCharge(v)
	} else {
		c.AddCharge(v)
	}
}

// lookUpFollowed looks up the charge of an order that is PROCESSING or disputed, at each account
// that has its dispute.
func (s *Service) lookUpFollowed(ctx context.Context, w *chargeWork, p *payment.Payin) {
	accounts := []string{w.Account}
	if p.Status != payment.PayinProcessing {
		var err error
		if accounts, err = s.disputedAt(ctx, p); err != nil {
			w.notSent(err)
			return
		}
	}
	if len(accounts) == 0 {
		w.Outcome = outcomeOrderEnded
		return
	}
	w.Attempts++
	for _, account := range accounts {
		r := s.queryFollowed(ctx, account, p)
		w.cause = r.Cause
		switch r.Lookup {
		case processor.Found:
			w.Outcome = string(r.State)
			w.reports = append(w.reports, accountReport{account, r})
		case processor.NotFound:
			w.Outcome = outcomeNotFound
		default:
			w.Outcome = processor.Unknown.String()
		}
	}
}

func (s *Service) queryFollowed(ctx context.Context, account string, p *payment.Payin) processor.ChargeReport {
	charger, profile, err := s.charger(account)
	if err != nil { // another process may open it
		return processor.ChargeReport{Cause: err}
	}
	limited, cancel := s.Env.Clock.WithTimeout(context.WithoutCancel(ctx), profile.Charge.Timeout)
	defer cancel()
	r := worker.Call(func() processor.ChargeReport { return charger.QueryCharge(limited, p.ExternalID) },
		func(cause error) processor.ChargeReport { return processor.ChargeReport{Cause: cause} })
	s.breakers.Record(account, r.Lookup != processor.LookupUnknown || limited.Err() == nil)
	return r
}

// reportFollowed opens a case about an order that has been PROCESSING for too long, and closes it
// when that ends.
func (v *recordCharge) reportFollowed(c *store.Changes, p *payment.Payin) {
	bound := followsBeforeCase[p.Method]
	switch {
	case p.Status != payment.PayinProcessing && v.work.Attempts >= bound:
		c.CloseCases(p.Merchant, p.ID, store.CasePayinProcessing, store.ResolvedByProof)
	case p.Status == payment.PayinProcessing && v.work.Attempts == bound:
		c.OpenCase(store.Case{
			Merchant: p.Merchant, Kind: store.CasePayinProcessing, Subject: p.ID, Amount: p.Amount,
			Params: store.Params{"processor": v.work.Account, "externalId": p.ExternalID},
		})
	}
}
