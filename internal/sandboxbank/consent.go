package sandboxbank

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// A contract that asks for consent accepts each request of a transfer as a further copy. It
// asks about each copy at the gateways' addresses, pays one that is approved, and fails one
// that is refused or about which nobody answers. The approval is in the journal, the questions
// are not: after a crash the bank asks again.

// questionPauses follow the first question about a transfer, if it was not answered. The
// second pause is followed by the last question.
var questionPauses = []time.Duration{5 * time.Second, 30 * time.Second}

// asksConsent reports whether orders are paid only with consent.
func (b *Bank) asksConsent(s bankapi.Subject) bool {
	return b.opts.Repeat == bankapi.RepeatAsksConsent && s == bankapi.SubjectTransfer
}

// mayPay reports whether no consent to the order is missing; the lock is held.
func (b *Bank) mayPay(o *order) bool { return !b.asksConsent(o.Subject) || !o.approvedAt.IsZero() }

// makeCopy gives a transfer the next free number of a copy under its id, or that of one that
// was refused: a refused id is refused again. The lock is held.
func (b *Bank) makeCopy(created *orderCreated) {
	for {
		o := b.ledger.orders[created.key()]
		if b.ledger.delayed[created.key()] == nil && (o == nil || o.Refusal != "") {
			return
		}
		created.Copy++
	}
}

// copies are the orders under an id, accepted or refused, and not those that are delayed.
func (l *ledger) copies(key orderKey) iter.Seq[*order] {
	return func(yield func(*order) bool) {
		for ; l.orders[key] != nil || l.delayed[key] != nil; key.copy++ {
			if o := l.orders[key]; o != nil && !yield(o) {
				return
			}
		}
	}
}

// current is the order that stands for all copies under an id: the first one that was paid;
// without it, the first one that may still be paid, or has failed; the gateway knows those that it
// refused. nil if there is none.
func (l *ledger) current(key orderKey) (shown *order) {
	for o := range l.copies(key) {
		if shown == nil || o.rank() < shown.rank() {
			shown = o
		}
	}
	return shown
}

func (o *order) rank() int {
	states := []bankapi.OrderState{bankapi.OrderPaid, bankapi.OrderProcessing, bankapi.OrderFailed}
	rank := slices.Index(states, o.state)
	if o.failure == bankapi.CodeConsentRefused {
		rank++
	}
	return rank
}

// question is one round of asking about a transfer.
type question struct {
	timer  timer
	order  *order
	status bankapi.ConsentStatus // "" without an answer
}

// dueQuestions takes the transfers about which the bank has to ask; the lock is held.
func (b *Bank) dueQuestions(now time.Time) (due []question) {
	for len(due) < stepLimit {
		t, ok := popDue(&b.questions, now)
		if !ok {
			break
		}
		if o := b.ledger.orders[t.order]; o != nil && b.waitsForConsent(o) {
			due = append(due, question{timer: t, order: o})
		}
	}
	return due
}

// waitsForConsent reports whether a transfer is in process and not approved; the lock is held.
func (b *Bank) waitsForConsent(o *order) bool {
	return o.state == bankapi.OrderProcessing && !b.mayPay(o)
}

// askAll asks about each transfer once, and records the answers.
func (b *Bank) askAll(ctx context.Context, now time.Time, asked []question) error {
	if len(asked) == 0 {
		return nil
	}
	b.mu.Lock()
	urls := b.addresses()
	b.mu.Unlock()
	workers := min(max(b.opts.NoticeWorkers, 1), len(asked))
	askFrom := func(first int) {
		for i := first; i < len(asked); i += workers {
			asked[i].status = b.ask(ctx, urls, asked[i].order)
		}
	}
	var group sync.WaitGroup
	for worker := range workers - 1 {
		group.Go(func() { askFrom(worker + 1) })
	}
	askFrom(0)
	group.Wait()
	if err := ctx.Err(); err != nil { // the last question may have got no time
		b.requeue(nil, asked)
		return err
	}
	return b.recordAnswers(now, asked)
}

// ask asks at one address after the other until one decides.
func (b *Bank) ask(ctx context.Context, urls []string, o *order) bankapi.ConsentStatus {
	body, err := json.Marshal(bankapi.Question{Transfer: bankapi.QuestionedTransfer{
		ID: o.ID, ExternalID: o.ExternalID, Amount: o.Amount, PIXKey: o.Key,
	}})
	if err != nil {
		return ""
	}
	for _, url := range urls {
		status, answer, err := b.post(ctx, url+bankapi.ConsentPath, body)
		var consent bankapi.Consent
		if err != nil || status != http.StatusOK || json.Unmarshal(answer, &consent) != nil {
			continue
		}
		if consent.Status == bankapi.ConsentApproved || consent.Status == bankapi.ConsentRefused {
			return consent.Status
		}
	}
	return ""
}

// recordAnswers records approvals, fails the transfers that were refused or about which
// nobody answered the last question, and restarts the timers of the others.
func (b *Bank) recordAnswers(now time.Time, asked []question) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range asked {
		q, o := &asked[i], asked[i].order
		var err error
		switch {
		case !b.waitsForConsent(o): // it was failed meanwhile
		case q.status == bankapi.ConsentApproved:
			err = b.commit(now, &record{Approval: &orderApproved{ExternalID: o.ExternalID, Copy: o.Copy}})
		case q.status == bankapi.ConsentRefused:
			err = b.changeOrder(now, o, orderChanged{State: bankapi.OrderFailed, Failure: bankapi.CodeConsentRefused})
		case q.timer.tries < len(questionPauses):
			q.timer.due = now.Add(questionPauses[q.timer.tries])
			q.timer.tries++
			b.push(&b.questions, q.timer)
		default:
			err = b.changeOrder(now, o, orderChanged{State: bankapi.OrderFailed, Failure: bankapi.CodeConsentMissing})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
