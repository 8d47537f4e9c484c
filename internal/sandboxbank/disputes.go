package sandboxbank

import (
	"bytes"
	"crypto/sha256"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// respondIn is how long a dispute can be defended, unless the control says otherwise.
const respondIn = 10 * 24 * time.Hour

func (d *disputeChanged) shown() bankapi.Dispute {
	return bankapi.Dispute{
		ID: d.ID, PaymentID: d.PaymentID, Kind: d.Kind, Reason: d.Reason, Amount: d.Amount, State: d.State,
		RespondBy: d.RespondBy, Blocked: d.Blocked, Lost: d.Lost,
	}
}

// changeDispute opens a dispute of the charge's latest payment, or decides its latest one: the
// merchant wins or loses, all or a part of it. Winning a lost dispute reverses it. A dispute
// after a block continues it.
func (b *Bank) changeDispute(now time.Time, c *charge, action string, how *bankapi.ForceCharge) error {
	if len(c.payments) == 0 {
		return bankapi.CodeStateForbids
	}
	p := c.payments[len(c.payments)-1]
	open, lost := p.lastDispute(bankapi.DisputeOpen), p.lastDispute(bankapi.DisputeLost)
	var changed disputeChanged
	switch {
	case action == "dispute":
		return b.openDispute(now, p, open, how)
	case action == "win" && open != nil:
		changed = *open
		changed.State = bankapi.DisputeWon
	case action == "win" && lost != nil:
		changed = *lost
		changed.State = bankapi.DisputeReversed
	case action == "lose" && open != nil && how.Amount >= 0 && how.Amount <= open.Amount:
		changed = *open
		changed.State, changed.Lost = bankapi.DisputeLost, how.Amount
	default:
		return bankapi.CodeStateForbids
	}
	return b.commit(now, &record{Dispute: &changed, Notice: b.newID(now)})
}

func (b *Bank) openDispute(now time.Time, p *receipt, open *disputeChanged, how *bankapi.ForceCharge) error {
	changed := disputeChanged{
		ExternalID: p.ExternalID, PaymentID: p.ID, Amount: how.Amount, State: bankapi.DisputeOpen,
		Kind: how.Kind, Reason: how.Reason, Blocked: how.Blocked, RespondBy: now.Add(respondIn),
	}
	if how.RespondInSeconds > 0 {
		changed.RespondBy = now.Add(time.Duration(how.RespondInSeconds) * time.Second)
	}
	if how.Blocked {
		changed.RespondBy = time.Time{}
	}
	if changed.Kind == "" {
		changed.Kind = "MED"
		if p.EndToEndID == "" {
			changed.Kind = "CHARGEBACK"
		}
	}
	switch left := p.refundable(); {
	case open != nil && open.Blocked && !how.Blocked && how.Amount == 0:
		changed.ID, changed.Amount = open.ID, open.Amount
	case how.Amount < 0 || how.Amount > left || left < 1 || !bankapi.IsText(how.Reason):
		return bankapi.CodeStateForbids
	case how.Amount == 0:
		changed.Amount = left
	}
	if changed.ID == "" {
		changed.ID = b.newID(now)
	}
	return b.commit(now, &record{Dispute: &changed, Notice: b.newID(now)})
}

func serveDefense(b *Bank, c *call) (any, error) {
	var r bankapi.DefenseRequest
	if err := c.decode(&r); err != nil {
		return nil, err
	}
	if r.Accept == (r.Text != "") {
		return nil, bankapi.CodeRequestInvalid
	}
	return b.defend(c.PathValue("id"), &r, c.fault)
}

func serveGetDefense(b *Bank, c *call) (any, error) {
	id := c.PathValue("id")
	var shown bankapi.Defense
	err := b.do(func(time.Time) error {
		switch {
		case b.ledger.disputed[id] == nil:
			return bankapi.CodeDisputeUnknown
		case b.ledger.defenses[id] == nil:
			return bankapi.CodeDefenseUnknown
		}
		shown = b.ledger.defenses[id].shown()
		return nil
	})
	return shown, err
}

func (d *defense) shown() bankapi.Defense {
	return bankapi.Defense{DisputeID: d.DisputeID, Accept: d.Accept, Files: d.Files, CreatedAt: d.createdAt}
}

// defend records the answer to a dispute, or shows the same one. A defense may be followed by
// giving up, which ends the dispute.
func (b *Bank) defend(id string, r *bankapi.DefenseRequest, fault bankapi.FaultKind) (shown bankapi.Defense, err error) {
	content, err := json.Marshal(r)
	if err != nil {
		return shown, bankapi.CodeRequestInvalid
	}
	sum := sha256.Sum256(content)
	err = b.do(func(now time.Time) error {
		p := b.ledger.disputed[id]
		if p == nil {
			return bankapi.CodeDisputeUnknown
		}
		var d *disputeChanged
		for _, v := range p.disputes {
			if v.ID == id {
				d = v
			}
		}
		if known := b.ledger.defenses[id]; known != nil && (known.Accept || !r.Accept) {
			if !bytes.Equal(known.Content, sum[:]) {
				return bankapi.CodeContentDiffers
			}
			shown = known.shown()
			return nil
		}
		if fault == bankapi.Refuse || d.State != bankapi.DisputeOpen || d.Blocked || !r.Accept && !now.Before(d.RespondBy) {
			return bankapi.CodeDisputeClosed
		}
		received := &defenseReceived{DisputeID: id, Content: sum[:], Accept: r.Accept, Files: len(r.Files)}
		if err := b.commit(now, &record{Defense: received}); err != nil {
			return err
		}
		shown = b.ledger.defenses[id].shown()
		if !r.Accept {
			return nil
		}
		changed := *d
		changed.State = bankapi.DisputeLost
		return b.commit(now, &record{Dispute: &changed, Notice: b.newID(now)})
	})
	return shown, err
}
