package notice

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// bookTransfer books a listed transfer that has the external id of a merchant and no payout: a
// restored backup lacks the payout. A failed transfer moved no money. A transfer that was returned
// in full is recorded with the amount zero: if its payout is requested again, the processor's
// answer may be older than the return.
func (s *Service) bookTransfer(ctx context.Context, feed *store.Feed, t *processor.ListedTransfer) error {
	if t.State == processor.TransferFailed {
		return nil
	}
	account, left := feed.Account, t.Amount-t.Returned
	merchant, err := s.Store.MerchantOf(ctx, t.ExternalID)
	if err != nil {
		return store.Problem(err)
	}
	if merchant.IsZero() && s.Store.IsDerived(t.ExternalID) { // of a merchant that a restored backup lacks
		return s.reportForeign(ctx, account, merchant, t)
	}
	if merchant.IsZero() || len(t.ExternalID) != payment.ExternalIDLength {
		return nil // of another program that uses the account
	}
	known, unbooked, err := s.Store.HasTransfer(ctx, merchant, t.ExternalID, t.State == processor.TransferPaid, s.duplicateID(account, t), t.Amount)
	switch invalid := t.Amount <= 0 || t.Amount > money.Max || t.Returned < 0 || t.Returned > t.Amount; {
	case err != nil:
		return store.Problem(err)
	case invalid && (unbooked || !known):
		return s.park(ctx, feed, &processor.Unreadable{ID: t.ExternalID, ExternalID: t.ExternalID, Cause: processor.InvalidAmount})
	case unbooked:
		return s.bookOfPayout(ctx, feed, merchant, t)
	case known:
		return nil
	}
	if _, _, err := s.Store.PayinByExternalID(ctx, merchant, t.ExternalID); !errors.Is(err, store.ErrNotFound) {
		if err != nil && !store.Lasting(err) {
			return store.Problem(err)
		}
		if left == 0 {
			return nil
		}
		return s.reportForeign(ctx, account, merchant, t)
	}
	op := &findTransfer{node: s.Queue.node.ID(), final: t.State == processor.TransferPaid, found: store.FoundTransfer{
		Merchant: merchant, ExternalID: t.ExternalID, Processor: account, EndToEndID: t.EndToEndID, Total: t.Amount, Amount: left,
	}, params: listedParams(account, t)}
	if err := s.Writer.Do(ctx, op); err != nil || !op.booked {
		return err
	}
	s.beganHistory(op.began)
	s.Log.ErrorContext(ctx, "found a transfer without a payout: the database is an older copy of itself", "processor", account, "externalId", t.ExternalID)
	return nil
}

// beganHistory sets the history of this process's node to the one that a commit of this process
// began, if any.
func (s *Service) beganHistory(began store.Installation) {
	if began.History > 0 {
		s.Queue.node.BeginHistory(began.History, began.RestoredAt)
	}
}

// duplicateID is the endToEndId of a listed transfer that may be a duplicate: it was paid, at a
// processor that may pay an external id twice. Otherwise it is "".
func (s *Service) duplicateID(account string, t *processor.ListedTransfer) string {
	proc := s.Processors.Find(account)
	if t.State != processor.TransferPaid || proc == nil || proc.Profile().Transfer.Repeat.Safe() {
		return ""
	}
	return t.EndToEndID
}

// reportForeign opens a case, once, about a listed transfer that is no merchant's payout here. If
// it has the external id of a pay-in, another program or a person at the processor made it, which
// proves nothing about the database. Otherwise it has the external id of a merchant that the
// database lacks.
func (s *Service) reportForeign(ctx context.Context, account string, merchant payment.ID, t *processor.ListedTransfer) error {
	return s.Writer.Do(ctx, write.OpenCase{Case: store.Case{
		ID: store.CaseID("listed transfer %s %s", account, t.ExternalID), Merchant: merchant, Kind: store.CaseNotice, Amount: t.Amount,
		Params: store.ReasonUnknownTransfer.With(listedParams(account, t)),
	}})
}

// listedParams are what a person compares of a listed transfer. Cases are no place for personal data:
// it is masked.
func listedParams(account string, t *processor.ListedTransfer) store.Params {
	p := store.Params{"processor": account, "externalId": t.ExternalID}
	for name, value := range map[string]string{
		store.ParamEndToEndID: t.EndToEndID, store.ParamPIXKey: payment.MaskKey("", t.PIXKey), store.ParamReceiver: payment.MaskName(t.Receiver),
	} {
		if value != "" {
			p[name] = value
		}
	}
	if !t.SentAt.IsZero() {
		p[store.ParamSentAt] = t.SentAt.UTC().Format(time.RFC3339)
	}
	return p
}

// bookOfPayout books a listed transfer of a payout
//   - that this database does not show as sent: the transfer left in a past that an older copy
//     lacks, or after the payout's money was released;
//   - whose outcome a person decides; or
//   - that this database shows as paid by another transfer.
//
// If the payout's row is damaged, the entry gets a case: it must not stop the transfers after it,
// and after a restore the account waits for it.
func (s *Service) bookOfPayout(ctx context.Context, feed *store.Feed, merchant payment.ID, t *processor.ListedTransfer) error {
	account := feed.Account
	if err := s.detectCopy(ctx, account, merchant, t); err != nil {
		return err
	}
	report := processor.TransferReport{
		Lookup: processor.Found, State: t.State, ProcessorID: t.ProcessorID, EndToEndID: t.EndToEndID, Amount: t.Amount, Returned: t.Returned,
		Evidence: "list of transfers",
	}
	_, err := s.Transfers.RecordNotice(ctx, account, t.ExternalID, report, nil)
	if err == nil || !store.Lasting(err) || ctx.Err() != nil {
		return err
	}
	s.Log.ErrorContext(ctx, "listed transfer of a payout cannot be booked", "processor", account, "externalId", t.ExternalID, "cause", err)
	list, err := s.Store.Payouts(ctx, merchant, store.Filter{ExternalID: t.ExternalID, Limit: 1})
	if err != nil {
		return store.Problem(err)
	}
	for i := range list {
		if v, ok := s.Transfers.DamagedPaidLate(&list[i], &report); ok {
			return s.Writer.Do(ctx, write.OpenCase{Case: v})
		}
	}
	return s.park(ctx, feed, &processor.Unreadable{ID: t.ExternalID, ExternalID: t.ExternalID, Cause: processor.DamagedOrder})
}

// detectCopy begins a new history if the payout of a listed transfer was never sent: the database
// is an older copy.
func (s *Service) detectCopy(ctx context.Context, account string, merchant payment.ID, t *processor.ListedTransfer) error {
	p, _, err := s.Store.PayoutByExternalID(ctx, merchant, t.ExternalID)
	if err != nil || p.Status != payment.PayoutPending || p.Processor != account {
		return nil // the booking that follows returns the same error
	}
	op := &findUnsent{node: s.Queue.node.ID(), account: account, payout: store.Ref{Merchant: merchant, ID: p.ID}}
	if err := s.Writer.Do(ctx, op); err != nil || op.began.History == 0 {
		return err
	}
	s.beganHistory(op.began)
	s.Log.ErrorContext(ctx, "found a transfer of a payout that was never sent: the database is an older copy of itself", "processor", account, "externalId", t.ExternalID)
	return nil
}

// findUnsent begins a new history if a payout whose transfer is listed was never sent: only an
// older copy of the database shows it so.
type findUnsent struct {
	node    payment.ID
	account string
	payout  store.Ref

	began store.Installation // with the new history, if one began
}

// Merchant implements [write.Operation].
func (v *findUnsent) Merchant() payment.ID { return v.payout.Merchant }

// Class implements [write.Operation].
func (v *findUnsent) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *findUnsent) Needs(n *store.Needs) {
	n.Payout(v.payout.Merchant, v.payout.ID)
	n.Sends(v.payout.Merchant, v.payout.ID)
	n.Feed(store.Transfers(v.account))
	n.Heartbeat(v.node) // for the installation
}

// Decide implements [write.Operation].
func (v *findUnsent) Decide(l *store.Loaded, c *store.Changes) error {
	v.began = store.Installation{}
	p, ok := l.Payout(v.payout.Merchant, v.payout.ID)
	if ok && p.Status == payment.PayoutPending && len(l.Sends(p.Merchant, p.ID)) == 0 {
		v.began = beginHistory(l, c, v.account)
	}
	return nil
}

// findTransfer books a transfer that no payout has. It proves that the database is an older copy,
// even if nothing else shows that, as with a copy of the disk. Then a new history begins, as after
// a restore.
type findTransfer struct {
	node   payment.ID
	found  store.FoundTransfer
	params store.Params // of its case
	final  bool         // else it is looked up until it is
	booked bool
	began  store.Installation // with the new history, if one began
}

// Merchant implements [write.Operation].
func (v *findTransfer) Merchant() payment.ID { return v.found.Merchant }

// Class implements [write.Operation].
func (v *findTransfer) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *findTransfer) Needs(n *store.Needs) {
	n.FoundTransfer(v.found.Merchant, v.found.ExternalID)
	n.Feed(store.Transfers(v.found.Processor))
	n.Heartbeat(v.node) // for the installation
}

// Decide takes the money from the merchant, and opens a case. If all of the money came back, it
// does neither.
func (v *findTransfer) Decide(l *store.Loaded, c *store.Changes) error {
	f := v.found
	v.booked, v.began = false, store.Installation{}
	if _, known := l.FoundTransfer(f.Merchant, f.ExternalID); known || l.HasPayout(f.Merchant, f.ExternalID) {
		return nil
	}
	if f.ID = c.NewID(); !v.final {
		f.NextAt = l.Now()
	}
	c.AddFoundTransfer(f)
	v.booked = true
	if f.Amount > 0 {
		if err := c.Post(f.Merchant, f.ID, ledger.FindPayout(f.Processor, l.Balances(f.Merchant)[ledger.Available], f.Amount)); err != nil {
			return err
		}
		c.OpenCase(store.Case{
			Merchant: f.Merchant, Kind: store.CasePayoutFound, Subject: f.ID, Amount: f.Amount,
			Params: v.params,
		})
	}
	v.began = beginHistory(l, c, f.Processor)
	return nil
}

// beginHistory begins a new history, unless the account's payouts wait for its list already: then it
// returns the zero value, and the history is known to have begun with a restore.
func beginHistory(l *store.Loaded, c *store.Changes, account string) (began store.Installation) {
	inst := l.Installation()
	f, ok := l.Feed(store.Transfers(account))
	switch {
	case !ok || inst.ID.IsZero():
		return began
	case f.Cleared != inst.History:
		if inst.ProvedAt.Before(inst.RestoredAt) {
			inst.ProvedAt = l.Now()
			c.SetInstallation(inst)
		}
		return began
	}
	began = inst.Restored(inst.Epoch, l.Now())
	if f.Through.Before(began.RestoredFrom) { // the list was read this far
		began.RestoredFrom = f.Through
	}
	c.SetInstallation(began)
	return began
}
