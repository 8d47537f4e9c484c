package dispute

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// remindBefore is how long before its deadline a dispute without a defense gets a case.
var remindBefore = []time.Duration{7 * 24 * time.Hour, 3 * 24 * time.Hour, 24 * time.Hour}

// NextReminder is when a dispute gets its next case about its deadline: at once if a step has
// passed without one; zero if it needs none.
func NextReminder(d *payment.Dispute, now time.Time) time.Time {
	if d.Status != payment.DisputeOpen || d.Blocked || d.RespondBy.IsZero() || !now.Before(d.RespondBy) {
		return time.Time{}
	}
	if now.After(d.RespondBy.Add(-remindBefore[0])) {
		return now
	}
	return d.RespondBy.Add(-remindBefore[0])
}

// remindBatch is how many disputes one run reads.
const remindBatch = 100

// Remind is the step of the worker that opens cases about disputes that are not defended, 7, 3
// and 1 days before their deadlines. A dispute has one such case: the next one replaces it, and
// it is closed at the deadline, after which there can be no defense.
func (s *Service) Remind(ctx context.Context) (int, error) {
	due, err := s.Store.DisputesToRemind(ctx, s.Env.Clock.Now(), remindBatch)
	if err != nil || len(due) == 0 {
		return 0, store.Problem(err)
	}
	ops := make([]write.Operation, len(due))
	for i := range due {
		ops[i] = &remind{due[i]}
	}
	return len(due), errors.Join(s.Writer.All(ctx, ops)...)
}

// remind opens the case about a dispute's deadline.
type remind struct{ dispute payment.Dispute }

// Merchant implements [write.Operation].
func (v *remind) Merchant() payment.ID { return v.dispute.Merchant }

// Class implements [write.Operation].
func (v *remind) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *remind) Needs(n *store.Needs) { n.DisputesOfPayin(v.dispute.Merchant, v.dispute.Payin) }

// Decide implements [write.Operation].
func (v *remind) Decide(l *store.Loaded, c *store.Changes) error {
	list := l.DisputesOf(v.dispute.Merchant, v.dispute.Payin)
	i := slices.IndexFunc(list, func(d payment.Dispute) bool { return d.ID == v.dispute.ID })
	if i < 0 || list[i].RemindAt.IsZero() || list[i].RemindAt.After(l.Now()) {
		return nil
	}
	d := list[i]
	d.RemindAt = time.Time{}
	switch {
	case d.Status == payment.DisputeOpen && !l.Now().Before(d.RespondBy):
		c.CloseCases(d.Merchant, d.ID, store.CaseDisputeDeadline, store.ResolvedByProof)
	case d.Status == payment.DisputeOpen:
		d.RemindAt = d.RespondBy
		step := 0
		for step+1 < len(remindBefore) && !l.Now().Before(d.RespondBy.Add(-remindBefore[step+1])) {
			step++
		}
		if step+1 < len(remindBefore) {
			d.RemindAt = d.RespondBy.Add(-remindBefore[step+1])
		}
		days := strconv.Itoa(int(remindBefore[step] / (24 * time.Hour)))
		c.CloseCases(d.Merchant, d.ID, store.CaseDisputeDeadline, store.ResolvedByNewCase)
		c.OpenCase(store.Case{
			ID:       store.CaseID("deadline %s %d %s", d.ID, d.RespondBy.UnixMicro(), days),
			Merchant: d.Merchant, Kind: store.CaseDisputeDeadline, Subject: d.ID, Amount: d.Amount,
			Params: store.Params{
				"processor": d.Processor, "externalId": d.ExternalID, "days": days, "respondBy": d.RespondBy.Format(time.RFC3339),
			},
		})
	}
	c.SetDispute(d)
	return nil
}
