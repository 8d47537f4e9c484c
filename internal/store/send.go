package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// SendOutcome is how a send of a payout to its processor ended.
type SendOutcome string

// The outcomes. At most one send of a payout is undecided: intent, accepted or
// unknown (a partial unique index ensures it).
const (
	SendIntent   SendOutcome = "intent"
	SendAccepted SendOutcome = "accepted"
	SendUnknown  SendOutcome = "unknown"
	SendNotFound SendOutcome = "not_found" // by a look-up beyond the quiet period; it may still pay
	SendNotSent  SendOutcome = "not_sent"
	SendLater    SendOutcome = "later" // the processor asked for a later repeat, without an effect
	SendRefused  SendOutcome = "refused"
	SendPaid     SendOutcome = "paid"
	SendFailed   SendOutcome = "failed"
)

// NoEffect reports whether it is proved that a send had and will have no effect, for a
// cause that is not in the payout.
func (o SendOutcome) NoEffect() bool { return o == SendNotSent || o == SendLater }

// Undecided reports whether the effect of a send is still open.
func (o SendOutcome) Undecided() bool {
	return o == SendIntent || o == SendAccepted || o == SendUnknown
}

// Send is one send of a payout to its processor.
type Send struct {
	Merchant  payment.ID
	Payout    payment.ID
	Number    int64 // from 1
	Processor string
	BodyHash  []byte
	Node      payment.ID
	Deadline  time.Time // UTC; no byte leaves after it
	Outcome   SendOutcome
	Evidence  string
	CreatedAt time.Time
	EndedAt   time.Time
}

var sendTable = newTable("payout_sends", []string{"merchant_id", "payout_id", "number"},
	idColumn("merchant_id", func(s *Send) *payment.ID { return &s.Merchant }),
	idColumn("payout_id", func(s *Send) *payment.ID { return &s.Payout }),
	intColumn("number", func(s *Send) *int64 { return &s.Number }),
	textColumn("processor", func(s *Send) *string { return &s.Processor }),
	bytesColumn("body_hash", func(s *Send) *[]byte { return &s.BodyHash }),
	idColumn("node", func(s *Send) *payment.ID { return &s.Node }),
	timeColumn("deadline", func(s *Send) *time.Time { return &s.Deadline }).as(mutable),
	textColumn("outcome", func(s *Send) *SendOutcome { return &s.Outcome }).as(mutable),
	textColumn("evidence", func(s *Send) *string { return &s.Evidence }).as(mutable),
	timeColumn("created_at", func(s *Send) *time.Time { return &s.CreatedAt }),
	timeColumn("ended_at", func(s *Send) *time.Time { return &s.EndedAt }).as(mutable),
)

var (
	sendUpdate   = sendTable.updateBy("", "merchant_id", "payout_id", "number")
	sendByPayout = sendTable.selectBy("t.merchant_id, t.payout_id, t.number", "merchant_id", "payout_id").ReadOnly() // the payout is locked
)

func scanSend(r db.Scanner) (Send, error) {
	var s Send
	return s, sendTable.scan(r, &s)
}

// Sends reads the sends of a payout.
func (n *Needs) Sends(merchant, payout payment.ID) {
	n.sends = append(n.sends, Ref{merchant, payout})
}

func (l *Loaded) loadSends(ctx context.Context, tx *db.Tx, n *Needs) error {
	payouts := n.sends
	for _, refs := range l.payouts.due {
		payouts = append(payouts, refs...)
	}
	list, err := db.Select(ctx, tx, sendByPayout, keysOf(payouts), scanSend)
	if len(list) > 0 {
		l.sends = map[Ref][]Send{}
	}
	for i := range list {
		ref := Ref{list[i].Merchant, list[i].Payout}
		l.sends[ref] = append(l.sends[ref], list[i])
	}
	return err
}

// Sending reads whether a process sends a payout of an account. It locks the account's list of
// transfers, so that of two processes only one detects first that no process does.
func (n *Needs) Sending(account string) {
	n.Feed(Transfers(account))
	n.sending = append(n.sending, account)
}

func (l *Loaded) loadSending(ctx context.Context, tx *db.Tx, n *Needs) error {
	for _, account := range n.sending {
		var count int
		err := tx.QueryRow(ctx, `SELECT count(*) FROM payouts t WHERE t.claimed_by > $1 AND length(t.claimed_by) > 0
			AND t.step = 'intent' AND t.processor = $2`, []byte{}, account).Scan(&count)
		if err != nil {
			return fmt.Errorf("sends of an account: %w", err)
		}
		if l.sending == nil {
			l.sending = map[string]bool{}
		}
		l.sending[account] = count > 0
	}
	return nil
}

// Sending reports whether a process sends, or may send, a payout of an account. Without a list of
// transfers that is not known, so it may.
func (l *Loaded) Sending(account string) bool {
	_, listed := l.Feed(Transfers(account))
	return l.sending[account] || !listed
}

// Sends are the loaded sends of a payout, by number.
func (l *Loaded) Sends(merchant, payout payment.ID) []Send { return l.sends[Ref{merchant, payout}] }

// AddSend records the intent of a send, before a byte leaves; or, without a node, a send that the
// database lacks.
func (c *Changes) AddSend(s Send) {
	s.CreatedAt = c.l.now
	ref := Ref{s.Merchant, s.Payout}
	if c.l.sends == nil {
		c.l.sends = map[Ref][]Send{}
	}
	c.l.sends[ref] = append(c.l.sends[ref], s)
	c.newSends = append(c.newSends, s)
	if c.l.sending != nil {
		c.l.sending[s.Processor] = true
	}
	c.count++
}

// SetSend changes a loaded send, or one that this commit adds.
func (c *Changes) SetSend(s Send) {
	same := func(v Send) bool { return v.Merchant == s.Merchant && v.Payout == s.Payout && v.Number == s.Number }
	list := slices.Clone(c.l.sends[Ref{s.Merchant, s.Payout}])
	if i := slices.IndexFunc(list, same); i >= 0 {
		list[i] = s
		c.l.sends[Ref{s.Merchant, s.Payout}] = list
	}
	if i := slices.IndexFunc(c.newSends, same); i >= 0 {
		c.newSends[i] = s
	} else {
		c.sends = append(c.sends, s)
	}
	c.count++
}

func (c *Changes) saveSends(ctx context.Context, tx *db.Tx) error {
	type key struct {
		Ref

		number int64
	}
	return saveRows(ctx, tx, "sends", sendUpdate, c.sends, func(s *Send) key { return key{Ref{s.Merchant, s.Payout}, s.Number} }, sendTable, c.newSends)
}

// Sends lists the sends of a payout, by number.
func (s *Store) Sends(ctx context.Context, merchant, payout payment.ID) ([]Send, error) {
	rows, err := s.db.Query(ctx, "SELECT "+sendTable.selected+` FROM payout_sends t
		WHERE t.merchant_id = $1 AND t.payout_id = $2 ORDER BY t.number`, merchant[:], payout[:])
	list, err := db.Collect(rows, err, scanSend)
	return list, s.db.ReadError("sends", err)
}
