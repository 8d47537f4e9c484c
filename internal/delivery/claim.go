package delivery

import (
	"context"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// Claim claims up to limit due deliveries of a merchant and begins an attempt of each.
func (s *Service) Claim(ctx context.Context, merchant payment.ID, limit int) ([]store.Delivery, error) {
	op, err := s.claim(ctx, merchant, limit)
	return op.claimed, err
}

func (s *Service) claim(ctx context.Context, merchant payment.ID, limit int) (*claim, error) {
	op := &claim{merchant: merchant, node: s.Queue.node.ID(), limit: limit}
	return op, s.Writer.DoWithoutCancel(ctx, op)
}

// claim claims due deliveries.
type claim struct {
	merchant, node payment.ID
	limit          int
	claimed        []store.Delivery
	postponed      int
}

// Merchant implements [write.Operation].
func (v *claim) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *claim) Class() commit.Class { return commit.Claim }

// Needs implements [write.Operation].
func (v *claim) Needs(n *store.Needs) {
	n.ClaimingNode(v.node)
	n.DueDeliveries(v.merchant, v.limit)
}

// Decide implements [write.Operation]. A delivery whose event cannot be decrypted gets a case;
// one whose endpoint is disabled or deleted is not sent; one that would overtake older events of
// its endpoint is postponed.
func (v *claim) Decide(l *store.Loaded, c *store.Changes) error {
	v.claimed, v.postponed = nil, 0
	if !l.NodeAlive(v.node) {
		return write.ErrNodeDead
	}
	for _, d := range l.DueDeliveries(v.merchant) {
		if d.Stopped != "" {
			d.State, d.NextAt, d.UpdatedAt = d.Stopped, time.Time{}, l.Now()
			c.SetDelivery(d)
			continue
		}
		if !d.Postponed.IsZero() {
			d.NextAt, d.UpdatedAt = d.Postponed, l.Now() // by this clock
			c.SetDelivery(d)
			v.postponed++
			continue
		}
		if d.Damaged {
			d.State, d.NextAt, d.UpdatedAt = store.DeliveryExhausted, time.Time{}, l.Now()
			d.Case = c.OpenCase(store.Case{
				Merchant: d.Merchant, Kind: store.CaseDamaged, Subject: d.Subject, Params: store.Params{"table": "events", "number": strconv.FormatInt(d.EventNumber, 10)},
			})
			c.SetDelivery(d)
			continue
		}
		d.Claim(v.node, l.Now())
		if d.Moved {
			c.MoveDelivery(d)
		}
		c.SetDelivery(d)
		v.claimed = append(v.claimed, d)
	}
	return nil
}
