package review_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

const endToEndID = "E1234567820261120120000000000001"

// desk is a gateway with the service that resolves its cases.
type desk struct {
	*coretest.Gateway

	reviews *review.Service
}

func newDesk(g *coretest.Gateway) *desk {
	return &desk{g, review.New(review.Options{
		Store: g.Store, Writer: g.Writer, Env: g.Env, Links: func(*payment.Payin) payment.Links { return payment.Links{} },
		Processors: g.Outgoing.Processors,
	})}
}

// sendAgain sends a payout again, which is looked up before.
func (d *desk) sendAgain() {
	d.T.Helper()
	d.Send()
	d.LookUp()
	d.Send()
}

// only is the only open case of a kind.
func (d *desk) only(kind store.CaseKind) store.Case {
	d.T.Helper()
	list, err := d.Store.OpenCases(d.T.Context(), 10)
	d.Must(err)
	if len(list) != 1 || list[0].Kind != kind {
		d.T.Fatalf("open cases %+v, want one %s", list, kind)
	}
	return list[0]
}

// request is a complete decision of ana about a case.
func request(v *store.Case, how store.Resolution) review.Request {
	r := review.Request{Case: v.ID, How: how, Actor: "operator:ana", Reason: "compared", Evidence: "statement of 20/11, line 7"}
	if how == store.ResolvedPaid && (v.Kind == store.CasePayoutUnknown || v.Kind == store.CaseDamaged || v.Params.Reason() == store.ReasonOtherAmount) {
		r.EndToEndID = endToEndID
	}
	return r
}

func (d *desk) operation(r review.Request) *review.Resolve {
	d.T.Helper()
	op, err := d.reviews.NewResolve(d.T.Context(), r)
	d.Must(err)
	return op
}

func (d *desk) resolve(r review.Request) review.Result {
	d.T.Helper()
	result, err := d.reviews.Resolve(d.T.Context(), r)
	d.Must(err)
	return result
}

// agree resolves a case by two people.
func (d *desk) agree(v *store.Case, how store.Resolution) {
	d.T.Helper()
	r := request(v, how)
	if got := d.resolve(r); got.Action != store.DecisionProposed || !got.Case.ClosedAt.IsZero() {
		d.T.Fatalf("the first decision: %+v", got)
	}
	r.Actor = "operator:bia"
	if got := d.resolve(r); got.Action != store.DecisionConfirmed || got.Case.Resolution != how {
		d.T.Fatalf("the second decision: %+v", got)
	}
}

func (d *desk) refused(r review.Request, kind problem.Kind) {
	d.T.Helper()
	changes := d.Changes(func() {
		if _, err := d.reviews.Resolve(d.T.Context(), r); !problem.Is(err, kind) {
			d.T.Errorf("%s by %s: %v, want %s", r.How, r.Actor, err, kind)
		}
	})
	if changes != "" {
		d.T.Errorf("the refused decision changed %s", changes)
	}
}

// unknownPayout is a payout at a processor that is not idempotent, whose outcome stays
// unknown, and its case.
func (d *desk) unknownPayout() (payment.Payout, store.Case) {
	d.T.Helper()
	d.Bank.AnswerTransfer = coretest.Unknown
	d.Bank.Profiled.Transfer.Repeat = processor.RepeatReturnsFirst
	p := d.Payout("r", 10_00)
	d.Send()
	d.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe // after the first send, which needs a look-up else
	d.Jump(2 * d.Bank.Profiled.Transfer.QuietPeriod)
	d.LookUp()
	d.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
	return p, d.only(store.CasePayoutUnknown)
}

// paidAfterRelease is a payout that its processor refused and paid nevertheless, and its
// case.
func (d *desk) paidAfterRelease(amount int64) (payment.Payout, store.Case) {
	d.T.Helper()
	d.Bank.AnswerTransfer = func(b *coretest.Bank, r processor.TransferRequest) processor.TransferAnswer {
		b.Pay(r, processor.TransferPaid)
		return processor.TransferAnswer{Outcome: processor.Refused}
	}
	p := d.Payout("r", amount)
	d.Send()
	d.WantPayout(p, payment.PayoutFailed, payment.StepDone)
	d.Bank.AnswerTransfer = nil
	d.Notify("n "+p.ID.String(), p.ExternalID)
	d.Apply()
	return p, d.only(store.CaseContradiction)
}

// receive pays cents to an id at the bank, with a notice.
func (d *desk) receive(externalID string, amount money.Cents) {
	d.T.Helper()
	id := fmt.Sprint(d.Merchant.Number, "-", len(d.Bank.Incoming))
	d.Bank.Receive(externalID, id, amount)
	d.Notify(id, "charge "+externalID)
	d.Apply()
}

// overpaid is a pay-in of 100.00 to which 130.00 were paid, and its case.
func (d *desk) overpaid() (payment.Payin, store.Case) {
	d.T.Helper()
	p := d.Payin(d.Merchant, "in", "")
	d.receive(p.ExternalID, 130_00)
	d.WantPayin(p, payment.PayinPaid, 100_00, 1)
	return p, d.only(store.CaseOverpaid)
}
