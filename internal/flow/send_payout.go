package flow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// askFirstFor is how long after a restored backup every payout is asked about
// before it is sent: merchants repeat requests whose orders the backup lacks.
const askFirstFor = 7 * 24 * time.Hour

// Sending is a payout whose intent is durable: this process, and nobody else,
// may hand it to its processor until Deadline.
type Sending struct {
	Payout   payment.Payout
	Number   int64 // of this send, from 1
	Request  processor.TransferRequest
	Deadline time.Time // UTC
}

// BeginSends takes up to limit payouts that are due in hand and records
// the intent to send each of them, in one commit, before a byte leaves: the one
// door through which payouts leave. taken counts those that it took in hand;
// fewer may come back to be sent, as some must be asked about first.
func (f *Flow) BeginSends(ctx context.Context, due store.Due, limit int) (list []Sending, taken int, err error) {
	err = f.claim(ctx, due.Merchant, func(tx *store.Tx, node payment.ID) error {
		list, taken = nil, 0
		claimed, err := tx.ClaimPayouts(ctx, due, node, store.ToSend, limit)
		if err != nil {
			return err
		}
		taken = len(claimed)
		var sends []store.Send
		for i := range claimed {
			p := &claimed[i]
			if f.askFirst(p) {
				if err := f.beginAsking(ctx, tx, p); err != nil {
					return err
				}
				continue
			}
			s, err := f.beginSend(ctx, tx, p, node)
			if err != nil {
				return fmt.Errorf("begin send of %s: %w", p.ID, err)
			}
			if s != nil {
				sends = append(sends, *s)
				list = append(list, Sending{Payout: *p, Number: s.Number, Request: transferRequest(p), Deadline: s.Deadline})
			}
		}
		return tx.InsertSends(ctx, sends)
	})
	if taken > len(list) {
		f.wake(WakeResolve)
	}
	return list, taken, err
}

// askFirst says whether this payout may have been sent in a past that the
// database has forgotten: it was restored from a backup.
func (f *Flow) askFirst(p *payment.Payout) bool {
	restored := f.RestoredAt()
	if restored.IsZero() || f.env.Clock.Now().Sub(restored) > askFirstFor {
		return false
	}
	return p.Lookups == 0 || p.UpdatedAt.Before(restored)
}

// beginAsking makes a payout one whose outcome is unknown.
func (f *Flow) beginAsking(ctx context.Context, tx *store.Tx, p *payment.Payout) error {
	p.Step, p.NextAt, p.ClaimedBy = payment.StepUnknown, tx.Now, payment.ID{}
	return sentStatus(ctx, tx, p)
}

// sentStatus moves a payout that leaves, or may have left, to PROCESSING; it
// writes one that is there already.
func sentStatus(ctx context.Context, tx *store.Tx, p *payment.Payout) error {
	moved, err := movePayout(ctx, tx, p, payment.OnSend)
	if err != nil || moved {
		return err
	}
	return tx.UpdatePayout(ctx, p, p.Version)
}

// beginSend records the intent to send a payout; nil where it must not be sent.
func (f *Flow) beginSend(ctx context.Context, tx *store.Tx, p *payment.Payout, node payment.ID) (*store.Send, error) {
	proc, err := f.processorOf(p.Processor)
	if err != nil {
		return nil, err
	}
	earlier, err := tx.Sends(ctx, p.Merchant, p.ID)
	if err != nil {
		return nil, err
	}
	hash := bodyHash(transferRequest(p))
	for i := range earlier {
		if !bytes.Equal(earlier[i].BodyHash, hash) {
			return nil, f.needsPerson(ctx, tx, p, "It was sent before with other contents; it is not sent again. Compare the processor's books with this order.")
		}
	}
	if p.SentAt.IsZero() {
		p.SentAt = tx.Now
	}
	p.Step, p.NextAt, p.ClaimedBy = payment.StepIntent, time.Time{}, node
	if err := sentStatus(ctx, tx, p); err != nil {
		return nil, err
	}
	return &store.Send{
		Merchant: p.Merchant, Payout: p.ID, Number: int64(len(earlier)) + 1, Processor: p.Processor, BodyHash: hash,
		Node: node, Deadline: tx.Now.Add(proc.Profile().TransferTimeout), Outcome: store.SendIntent,
	}, nil
}

// transferRequest is what the processor is asked to do: the same bytes each time.
func transferRequest(p *payment.Payout) processor.TransferRequest {
	return processor.TransferRequest{
		ExternalID: p.ExternalID, Amount: p.Amount, KeyType: p.PIXKeyType, Key: p.Beneficiary.Key(),
		Name: p.Beneficiary.Name, Document: p.Beneficiary.Document,
	}
}

// bodyHash recognises a request without keeping whom it pays.
func bodyHash(r processor.TransferRequest) []byte {
	text, err := json.Marshal(&r)
	if err != nil { // texts from JSON that was checked always marshal
		panic(err)
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// ErrStale says that a send was given up before its first byte left: it was
// too late, or this process has lost the right to send.
var ErrStale = errors.New("flow: too late to send")

// Guard is what a processor calls right before the first byte leaves. It looks
// at the deadline of the intent and at the lease, which a process that was
// stopped for a while has lost.
func (f *Flow) Guard(s *Sending, lease Lease) func() error {
	return func() error {
		if !lease.Valid() || !f.env.Clock.Now().Before(s.Deadline) || f.Node() != s.Payout.ClaimedBy {
			return ErrStale
		}
		return nil
	}
}

// needsPerson stops the executor's work on a payout whose money stays held.
func (f *Flow) needsPerson(ctx context.Context, tx *store.Tx, p *payment.Payout, why string) error {
	p.Step, p.NextAt, p.ClaimedBy = payment.StepPerson, time.Time{}, payment.ID{}
	if err := tx.UpdatePayout(ctx, p, p.Version); err != nil {
		return err
	}
	f.log.Warn("payout needs a person", "payout", p.ID, "externalId", p.ExternalID, "why", why)
	return tx.OpenException(ctx, store.Exception{
		Merchant: p.Merchant, Kind: store.ExceptionPayoutUnknown, Subject: p.ID, Amount: p.Amount, Detail: why,
	})
}
