// Package refund implements the use cases of refunds: create, book refunds that the processor
// lists, give unapplied money back. Package outgoing sends them.
package refund

import (
	"slices"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// Options configure a Service.
type Options struct {
	Store      *store.Store
	Writer     *write.Writer
	Env        env.Env
	Processors processor.Accounts
	// Frozen reports whether refunds of an account wait after a cold start. History is the number
	// of the database's history, 0 if there was no cold start, and RestoredAt its beginning; see
	// [cluster.Node].
	Frozen     func(account string) bool
	History    func() int64
	RestoredAt func() time.Time
	// Requested is called after a refund was queued for sending.
	Requested func()
}

// Service implements the use cases of refunds. It is safe for concurrent use.
type Service struct{ Options }

// New returns a Service.
func New(o Options) *Service { return &Service{o} }

// frozen is the refusal of a merchant's new refund after a cold start; nil if no account waits. The
// refunds of some accounts have not been read: the same request may have been paid there, with
// other parts.
func (s *Service) frozen(merchant payment.ID) *problem.Error {
	if s.History() == 0 {
		return nil
	}
	list := slices.DeleteFunc(s.Processors.IDs(), func(id string) bool {
		_, refunds := s.Processors.Find(id).(processor.Refunder)
		return !refunds || !s.Processors.OpenTo(id, merchant) || !s.Frozen(id)
	})
	if len(list) == 0 {
		return nil
	}
	return processor.ErrFrozen("Refunds", s.Processors, list, s.RestoredAt(), s.Env.Clock.Now())
}

// errBegun means that another process has found a restore since this process's last heartbeat.
var errBegun = problem.New(problem.Unavailable, "The database was just restored from a backup. The referenceId remains unused. Send the same request again later.").WithRetryAfter(10 * time.Second)

// refundsMax bounds the refunds of a pay-in, failed ones included.
const refundsMax = 200

// Windows are the times within which payments can be given back, by account and method. An account
// that this process cannot open has none.
type Windows map[string]map[payment.Method]time.Duration

// Windows are those of the open accounts.
func (s *Service) Windows() Windows {
	w := Windows{}
	for _, id := range s.Processors.IDs() {
		proc := s.Processors.Find(id)
		w[id] = map[payment.Method]time.Duration{}
		if _, ok := proc.(processor.Refunder); ok {
			w[id] = proc.Profile().RefundWindows
		}
	}
	return w
}

// refusal is a reason why a payment cannot be given back.
type refusal int

// The refusals. If there are several, the last one is reported.
const (
	none     refusal = iota
	tooLate          // the window has passed
	noMethod         // the processor cannot give the method back
	notOpen          // this process cannot open the account: another process may, or this process later
)

// refusal returns why a payment cannot be given back now.
func (w Windows) refusal(method payment.Method, r *payment.Receipt, now time.Time) refusal {
	methods, open := w[r.Processor]
	window, ok := methods[method]
	switch {
	case !open:
		return notOpen
	case !ok:
		return noMethod
	case window > 0 && now.After(r.PaidAt.Add(window)):
		return tooLate
	default:
		return none
	}
}

// possible lists the payments of a pay-in that can be given back now, and why others cannot.
func (w Windows) possible(p *payment.Payin, receipts []payment.Receipt, parts []payment.RefundPart, now time.Time) (list []payment.RefundSource, why refusal) {
	for _, s := range payment.RefundSources(receipts, parts) {
		o := w.refusal(p.Method, &s.Receipt, now)
		if why = max(why, o); o == none {
			list = append(list, s)
		}
	}
	return list, why
}

// externalID is the external id of a part of a refund; the first part has the refund's own id. A
// reference has no control characters, so no other refund has the id of a part.
func externalID(s *store.Store, m *store.Merchant, reference string, number int) string {
	if number > 1 {
		reference += "\x00" + strconv.Itoa(number)
	}
	return s.ExternalID(m, payment.OperationRefund, reference)
}

// newParts are the parts of a refund, to be sent now.
func newParts(r *payment.Refund, list []payment.RefundSlice, ids func(number int) string, now time.Time) []payment.RefundPart {
	parts := make([]payment.RefundPart, len(list))
	for i, s := range list {
		parts[i] = payment.RefundPart{
			Merchant: r.Merchant, Refund: r.ID, Number: int64(i + 1), Payin: r.Payin, Receipt: s.Receipt.ID, Processor: s.Receipt.Processor,
			PaymentID: s.Receipt.ExternalID, ExternalID: ids(i + 1), Amount: s.Amount, Effect: effect.Effect{State: effect.Queued, NextAt: now},
		}
	}
	return parts
}
