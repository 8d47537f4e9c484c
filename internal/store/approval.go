package store

import (
	"context"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// ApprovalAction is an action on a payout that needs approval.
type ApprovalAction string

// The actions.
const (
	ApprovalRequested ApprovalAction = "requested" // with the payout: the first row
	ApprovalGiven     ApprovalAction = "approved"
	ApprovalRejected  ApprovalAction = "rejected"
	ApprovalExpired   ApprovalAction = "expired" // the time for approval ended without a decision
)

// Approval is a row of the record of a payout that needs approval. Rows are never changed.
type Approval struct {
	Merchant  payment.ID
	Payout    payment.ID
	Number    int64 // from 0
	Action    ApprovalAction
	Actor     actor.Actor // "" for expiry
	Reason    string
	Needed    int64 // approvals, in the first row
	CreatedAt time.Time

	mac    []byte
	forged bool // mac does not fit: the row was changed outside the gateway
}

var approvalTable = newTable("approvals", []string{"merchant_id", "payout_id", "number"},
	idColumn("merchant_id", func(v *Approval) *payment.ID { return &v.Merchant }),
	idColumn("payout_id", func(v *Approval) *payment.ID { return &v.Payout }),
	intColumn("number", func(v *Approval) *int64 { return &v.Number }),
	textColumn("action", func(v *Approval) *ApprovalAction { return &v.Action }),
	textColumn("actor", func(v *Approval) *actor.Actor { return &v.Actor }),
	textColumn("reason", func(v *Approval) *string { return &v.Reason }),
	intColumn("needed", func(v *Approval) *int64 { return &v.Needed }),
	timeColumn("created_at", func(v *Approval) *time.Time { return &v.CreatedAt }),
	bytesColumn("mac", func(v *Approval) *[]byte { return &v.mac }),
)

var approvalHash = approvalTable.hashOf("merchant_id", "payout_id", "number", "action", "actor", "reason", "needed", "created_at")

// The lock of the payout, which is taken before, covers its rows too.
var approvalsOfPayout = approvalTable.selectBy("t.merchant_id, t.payout_id, t.number", "merchant_id", "payout_id").ReadOnly()

func scanApproval(keys *db.Keyring) func(r db.Scanner) (Approval, error) {
	return func(r db.Scanner) (Approval, error) {
		var v Approval
		err := approvalTable.scan(r, &v)
		v.forged = err == nil && !approvalHash.authentic(keys, &v, v.mac)
		return v, err
	}
}

// Approvals reads the actions on a payout that needs approval, which the operation loads.
func (n *Needs) Approvals(merchant, payout payment.ID) {
	n.approvals = append(n.approvals, Ref{merchant, payout})
}

func (l *Loaded) loadApprovals(ctx context.Context, tx *db.Tx, n *Needs) error {
	list, err := db.Select(ctx, tx, approvalsOfPayout, keysOf(n.approvals), scanApproval(tx.Keys()))
	for i := range list {
		l.addApproval(list[i])
	}
	return err
}

func (l *Loaded) addApproval(v Approval) {
	if l.approvals == nil {
		l.approvals = map[Ref][]Approval{}
	}
	ref := Ref{v.Merchant, v.Payout}
	l.approvals[ref] = append(l.approvals[ref], v)
}

// Approvals are the actions on a loaded payout that needs approval, in order.
func (l *Loaded) Approvals(merchant, payout payment.ID) []Approval {
	return l.approvals[Ref{merchant, payout}]
}

// ApprovalsForged reports whether a row about the approval of a loaded payout, or the payout, was
// changed, added or removed outside the gateway.
func (l *Loaded) ApprovalsForged(merchant, payout payment.ID) bool {
	for i, v := range l.Approvals(merchant, payout) {
		if v.forged || v.Number != int64(i) || (i == 0) != (v.Action == ApprovalRequested) {
			return true
		}
	}
	return l.PayoutForged(merchant, payout)
}

// AddApproval adds a row about a payout that is new or whose rows are loaded, with the next
// number and the time of the transaction.
func (c *Changes) AddApproval(v Approval) {
	v.Number, v.CreatedAt = int64(len(c.l.Approvals(v.Merchant, v.Payout))), c.l.now
	c.l.addApproval(v)
	c.newApprovals = append(c.newApprovals, v)
	c.count++
}

func (c *Changes) saveApprovals(ctx context.Context, tx *db.Tx) error {
	rows := make([][]any, len(c.newApprovals))
	for i := range c.newApprovals {
		c.newApprovals[i].mac = approvalHash.mac(tx.Keys(), &c.newApprovals[i])
		rows[i] = approvalTable.row(&c.newApprovals[i])
	}
	if err := tx.InsertNew(ctx, approvalTable.insert, rows...); err != nil {
		return fmt.Errorf("approvals: %w", err)
	}
	return nil
}

// Approvals reads the actions on a payout that needs approval, in order.
func (s *Store) Approvals(ctx context.Context, merchant, payout payment.ID) ([]Approval, error) {
	rows, err := s.db.Query(ctx, "SELECT "+approvalTable.selected+` FROM approvals t
		WHERE t.merchant_id = $1 AND t.payout_id = $2 ORDER BY t.number`, merchant[:], payout[:])
	list, err := db.Collect(rows, err, scanApproval(s.Keys()))
	return list, s.db.ReadError("approvals", err)
}

// ApprovalsOf counts the approvals of payouts of a merchant, and those that they need.
func (s *Store) ApprovalsOf(ctx context.Context, merchant payment.ID, payouts []payment.ID) (map[payment.ID]payment.Approvals, error) {
	refs := make([]Ref, len(payouts))
	for i, id := range payouts {
		refs[i] = Ref{merchant, id}
	}
	list, err := db.Select(ctx, s.db, approvalsOfPayout, keysOf(refs), scanApproval(s.Keys()))
	counts := make(map[payment.ID]payment.Approvals, len(payouts))
	for i := range list {
		counts[list[i].Payout] = list[i].addTo(counts[list[i].Payout])
	}
	return counts, s.db.ReadError("approvals", err)
}

// CountApprovals is ApprovalsOf of a payout whose rows are loaded; zero if they are not.
func (l *Loaded) CountApprovals(merchant, payout payment.ID) (counts payment.Approvals) {
	for _, v := range l.Approvals(merchant, payout) {
		counts = v.addTo(counts)
	}
	return counts
}

func (v *Approval) addTo(counts payment.Approvals) payment.Approvals {
	counts.Needed += v.Needed
	if v.Action == ApprovalGiven {
		counts.Given++
	}
	counts.Expired = counts.Expired || v.Action == ApprovalExpired
	return counts
}

// PayoutsUndecided lists up to limit payouts whose time for approval has ended, oldest first. If the
// account's list of transfers is read, a payout is listed only after that list was read up to this
// end: a snapshot of the disk may lack an approval and its transfer, and nothing else shows that.
func (s *Store) PayoutsUndecided(ctx context.Context, now time.Time, limit int) ([]Ref, error) {
	rows, err := s.db.Query(ctx, `SELECT merchant_id, id FROM payouts
		WHERE next_at > 0 AND next_at <= $1 AND step = 'approval'
		AND NOT EXISTS (SELECT 1 FROM feeds f WHERE f.account = payouts.processor AND f.feed = '`+feedTransfers+`' AND f.through > 0 AND f.through < payouts.next_at)
		ORDER BY next_at LIMIT $2`, micros(now), limit)
	list, err := db.Collect(rows, err, scanRef)
	return list, s.db.ReadError("payouts", err)
}
