package dispute

import (
	"context"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/wire"
	"github.com/porteira/porteira/internal/write"
)

// Options configure a Service.
type Options struct {
	Store  *store.Store
	Writer *write.Writer
	Env    env.Env
	Links  transition.Links
	// Answered is called after an answer was queued for sending.
	Answered func()
}

// Service implements the use cases of disputes. It is safe for concurrent use.
type Service struct{ Options }

// New returns a Service.
func New(o Options) *Service { return &Service{o} }

// Defend stores the defense of an OPEN dispute, and queues it for sending. The same defense again
// changes nothing. r has been validated. Errors: problem kinds not_found, invalid_state, overloaded
// and unavailable.
func (s *Service) Defend(ctx context.Context, merchant, id payment.ID, r *wire.DefenseRequest) (payment.Dispute, *payment.Defense, error) {
	defense, err := s.Store.NewDefense(merchant, id, r.Defense(), r.Contents, r.Fingerprint)
	if err != nil {
		return payment.Dispute{}, nil, err
	}
	return s.answer(ctx, merchant, id, func(d *payment.Dispute) *Answer { return NewDefend(d, defense, r.Fingerprint, s.Links) })
}

// Accept gives an OPEN or SUBMITTED dispute up: it is LOST. Acceptance again changes nothing.
// Errors: as of Defend.
func (s *Service) Accept(ctx context.Context, merchant, id payment.ID) (payment.Dispute, *payment.Defense, error) {
	return s.answer(ctx, merchant, id, func(d *payment.Dispute) *Answer { return NewAccept(d, s.Links) })
}

func (s *Service) answer(ctx context.Context, merchant, id payment.ID, build func(*payment.Dispute) *Answer) (payment.Dispute, *payment.Defense, error) {
	d, _, err := s.Store.Dispute(ctx, merchant, id)
	if err != nil {
		return d, nil, store.Problem(err)
	}
	op := build(&d)
	if err := s.Writer.Do(ctx, op); err != nil {
		return d, nil, err
	}
	s.Answered()
	return op.Dispute, op.Defense, nil
}

// Answer is the operation that answers a dispute.
type Answer struct {
	dispute     payment.Dispute // as it was read
	action      payment.AnswerAction
	defense     *store.NewDefense
	fingerprint wire.Fingerprint
	links       transition.Links

	// Dispute and Defense are as they are stored.
	Dispute payment.Dispute
	Defense *payment.Defense
}

// NewDefend builds the operation that defends a dispute.
func NewDefend(d *payment.Dispute, defense *store.NewDefense, fingerprint wire.Fingerprint, links transition.Links) *Answer {
	return &Answer{dispute: *d, action: payment.AnswerDefend, defense: defense, fingerprint: fingerprint, links: links}
}

// NewAccept builds the operation that gives a dispute up.
func NewAccept(d *payment.Dispute, links transition.Links) *Answer {
	return &Answer{dispute: *d, action: payment.AnswerAccept, links: links}
}

// Merchant implements [write.Operation].
func (v *Answer) Merchant() payment.ID { return v.dispute.Merchant }

// Class implements [write.Operation].
func (v *Answer) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *Answer) Needs(n *store.Needs) {
	n.DisputesOfPayin(v.dispute.Merchant, v.dispute.Payin)
	n.ReceivablesOf(v.dispute.Merchant, v.dispute.Payin)
	n.Balances(v.dispute.Merchant)
	n.ExpectDeliveries(v.dispute.Merchant, 1)
}

// Decide implements [write.Operation].
func (v *Answer) Decide(l *store.Loaded, c *store.Changes) error {
	list := l.DisputesOf(v.dispute.Merchant, v.dispute.Payin)
	i := slices.IndexFunc(list, func(d payment.Dispute) bool { return d.ID == v.dispute.ID })
	p, ok := l.Payin(v.dispute.Merchant, v.dispute.Payin)
	if i < 0 || !ok {
		return store.ErrNotFound
	}
	d := list[i]
	if !v.given(l, &d) {
		if err := v.refuse(l, &d); err != nil {
			return err
		}
		if err := v.give(following{l, c, &p, v.links}, &d); err != nil {
			return err
		}
	}
	v.Dispute, v.Defense = d, l.Defense(d.Merchant, d.ID)
	return nil
}

// given reports whether the dispute has this answer.
func (v *Answer) given(l *store.Loaded, d *payment.Dispute) bool {
	answers, fingerprints := l.Answers(d.Merchant, d.ID)
	for i := range answers {
		if answers[i].Action == v.action && (v.action == payment.AnswerAccept || v.fingerprint.Conflict(fingerprints[i]) == nil) {
			return true
		}
	}
	return false
}

// refuse returns why the dispute cannot be answered now; nil if it can.
func (v *Answer) refuse(l *store.Loaded, d *payment.Dispute) error {
	why := ""
	switch late := !d.RespondBy.IsZero() && !l.Now().Before(d.RespondBy); {
	case d.Status == payment.DisputeSubmitted && v.action == payment.AnswerAccept:
	case d.Status == payment.DisputeSubmitted:
		why = "The dispute has a defense already."
	case d.Status != payment.DisputeOpen:
		why = "The dispute is " + string(d.Status) + ": it is decided."
	case d.Blocked:
		why = "The processor keeps the money back, and there is no dispute of it yet that could be answered."
	case late && v.action == payment.AnswerDefend:
		why = "The dispute could be defended until " + d.RespondBy.Format(time.RFC3339) + "."
	}
	if why != "" {
		return problem.New(problem.InvalidState, why)
	}
	return nil
}

// give stores the answer and queues it for sending.
func (v *Answer) give(f following, d *payment.Dispute) error {
	answers, _ := f.l.Answers(d.Merchant, d.ID)
	f.c.AddAnswer(payment.DisputeAnswer{
		Merchant: d.Merchant, Dispute: d.ID, Number: int64(len(answers) + 1), Payin: d.Payin, Processor: d.Processor, ExternalID: d.ExternalID,
		Action: v.action, Step: payment.StepQueued, NextAt: f.l.Now(),
	}, v.defense)
	if v.action == payment.AnswerAccept {
		missing := d.Missing()
		if err := f.move(d, payment.OnAccept, 0); err != nil {
			return err
		}
		f.review(d, missing)
		return nil
	}
	cell, legal := payment.DisputeTable.Next(d.Status, payment.OnSubmit)
	if !legal {
		return store.ErrConflict
	}
	d.Status, d.Version, d.SubmittedAt = cell.To, d.Version+1, f.l.Now()
	d.RemindAt = NextReminder(d, f.l.Now())
	f.set(d)
	f.c.CloseCases(d.Merchant, d.ID, store.CaseDisputeDeadline, store.ResolvedByProof)
	return transition.DisputeEvent(f.l, f.c, d, cell.Event)
}
