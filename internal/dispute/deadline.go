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

// undecidedAfter is after how long an undecided dispute gets a case: longer than card schemes and
// the MED take.
const undecidedAfter = 120 * 24 * time.Hour

// NextReminder is the time of a dispute's next case: about its deadline until the deadline has
// passed, then about the missing decision. A time in the past means at once. It is zero if the
// dispute needs no case.
func NextReminder(d *payment.Dispute, now time.Time) time.Time {
	at := d.CreatedAt.Add(undecidedAfter)
	switch {
	case !d.Live():
		return time.Time{}
	case defendable(d, now):
		at = d.RespondBy.Add(-remindBefore[0])
	}
	if now.After(at) {
		return now
	}
	return at
}

// defendable reports whether a dispute has a deadline for a defense that has not passed.
func defendable(d *payment.Dispute, now time.Time) bool {
	return d.Status == payment.DisputeOpen && !d.Blocked && now.Before(d.RespondBy)
}

// remindBatch is how many disputes one run reads.
const remindBatch = 100

// Remind is the step of the worker that opens cases about disputes: 7, 3 and 1 days before a
// deadline without a defense, and after months without a decision. A dispute has one case about its
// deadline: the next case replaces the one before. It is closed at the deadline, after which no
// defense is possible.
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

// remind opens a case about a dispute.
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
	switch now := l.Now(); {
	case !d.Live():
		d.RemindAt = time.Time{}
	case defendable(&d, now):
		remindOfDeadline(&d, now, c)
	case now.Before(d.CreatedAt.Add(undecidedAfter)):
		c.CloseCases(d.Merchant, d.ID, store.CaseDisputeDeadline, store.ResolvedByProof)
		d.RemindAt = d.CreatedAt.Add(undecidedAfter)
	default:
		c.CloseCases(d.Merchant, d.ID, store.CaseDisputeDeadline, store.ResolvedByProof)
		d.RemindAt = time.Time{}
		c.OpenCase(store.Case{
			ID:       store.CaseID("undecided %s", d.ID),
			Merchant: d.Merchant, Kind: store.CaseDisputeOpen, Subject: d.ID, Amount: d.Amount,
			Params: store.Params{"processor": d.Processor, "externalId": d.ExternalID},
		})
	}
	c.SetDispute(d)
	return nil
}

// remindOfDeadline opens the case about a dispute's deadline.
func remindOfDeadline(d *payment.Dispute, now time.Time, c *store.Changes) {
	d.RemindAt = d.RespondBy
	step := 0
	for step+1 < len(remindBefore) && !now.Before(d.RespondBy.Add(-remindBefore[step+1])) {
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
