package notice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/porteira/porteira/internal/payin"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// ReadFeeds is the step of the worker that reads the processors' lists of payments and
// changes, so that a payment or change whose notice was lost is still booked. The
// receipt's unique key prevents double booking. One processor's failure does not stop
// the others.
func (s *Service) ReadFeeds(ctx context.Context) (int, error) {
	if !s.Queue.node.Lease.Valid() {
		return 0, nil
	}
	did := 0
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Processors)) {
		if lister, ok := s.Processors[name].(processor.Collector); ok {
			n, err := s.readPayments(ctx, name, lister)
			did += n
			if err != nil {
				errs = append(errs, fmt.Errorf("payments of %s: %w", name, err))
			}
		}
		if monitor, ok := s.Processors[name].(processor.Monitor); ok {
			n, err := s.readChanges(ctx, name, monitor)
			did += n
			if err != nil {
				errs = append(errs, fmt.Errorf("changes of %s: %w", name, err))
			}
		}
	}
	return did, errors.Join(errs...)
}

// readPayments books one page of payments and then moves the cursor: after a crash
// between the two the page is read again, which is harmless.
func (s *Service) readPayments(ctx context.Context, name string, lister processor.Collector) (int, error) {
	cursor, err := s.Store.Setting(ctx, store.SettingPaymentCursor+name)
	if err != nil {
		return 0, err
	}
	limited, cancel := s.Env.Clock.WithTimeout(ctx, queryTimeout)
	page, next, err := lister.Payments(limited, cursor)
	cancel()
	if err != nil || len(page) == 0 {
		return 0, err
	}
	charger, _ := s.Processors[name].(processor.Charger)
	for i := range page {
		if err := s.bookPayment(ctx, name, charger, page[i]); err != nil {
			return 0, err
		}
	}
	return s.moveCursor(ctx, store.SettingPaymentCursor+name, cursor, next, len(page))
}

// moveCursor saves the cursor of a page that was booked, and returns its number of
// entries; 0 if the cursor did not move, as reading it again at once leads nowhere.
func (s *Service) moveCursor(ctx context.Context, setting, cursor, next string, entries int) (int, error) {
	if next == cursor {
		return 0, nil
	}
	return entries, s.Writer.DoWithoutCancel(ctx, write.SetSetting{Name: setting, Value: next})
}

// bookPayment books a listed payment with everything that its charge reports: other
// notices of the charge may be lost too.
func (s *Service) bookPayment(ctx context.Context, name string, charger processor.Charger, p processor.Payment) error {
	known, err := s.Store.HasReceipt(ctx, name, p.ID)
	if err != nil || known {
		return err
	}
	alone := processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{p}}
	report := alone
	if charger != nil {
		limited, cancel := s.Env.Clock.WithTimeout(ctx, queryTimeout)
		queried := charger.QueryCharge(limited, p.ExternalID)
		cancel()
		if queried.Lookup == processor.Found {
			listed := slices.ContainsFunc(queried.Payments, func(q processor.Payment) bool { return q.ID == p.ID })
			if report = queried; !listed { // the list is sufficient proof
				report.Payments = append(report.Payments, p)
			}
		}
	}
	err = s.Payins.Receive(ctx, name, p.ExternalID, report, nil)
	if errors.Is(err, payin.ErrInvalidPayment) { // the invalid one may be another payment of its charge
		err = s.Payins.Receive(ctx, name, p.ExternalID, alone, nil)
	}
	if errors.Is(err, payin.ErrInvalidPayment) { // it must not stop the payments after it
		s.Log.ErrorContext(ctx, "payment cannot be booked", "processor", name, "externalId", p.ExternalID, "cause", err)
		err = s.Payins.ReportInvalidPayment(ctx, name, p.ExternalID)
	}
	return err
}

// readChanges books one page of changes as their notices would, and then moves the
// cursor.
func (s *Service) readChanges(ctx context.Context, name string, monitor processor.Monitor) (int, error) {
	cursor, err := s.Store.Setting(ctx, store.SettingChangeCursor+name)
	if err != nil {
		return 0, err
	}
	limited, cancel := s.Env.Clock.WithTimeout(ctx, queryTimeout)
	page, next, err := monitor.Changes(limited, cursor)
	cancel()
	if err != nil || len(page) == 0 {
		return 0, err
	}
	for _, c := range page {
		if err := s.bookChange(ctx, name, c); err != nil {
			return 0, err
		}
	}
	did, err := s.moveCursor(ctx, store.SettingChangeCursor+name, cursor, next, len(page))
	if err != nil {
		return 0, err
	}
	if next != cursor {
		for _, c := range page {
			delete(s.unconfirmed, changeKey(name, c))
		}
	}
	return did, nil
}

func changeKey(name string, c processor.Change) string {
	key := fmt.Sprint(name, " ", c.ExternalID, " ", c.Returned)
	if c.Dispute != nil {
		key += " " + c.Dispute.ID + " " + string(c.Dispute.State)
	}
	return key
}

// changeTries is how often a change is queried that its processor does not confirm: ten
// minutes, at one read every 5 s.
const changeTries = 120

var errUnbooked = errors.New("notice: the processor lists a change but does not confirm it")

// bookChange queries and books a change that is not booked yet. The answer may be
// older than the list, so the query is repeated until it includes the change.
func (s *Service) bookChange(ctx context.Context, name string, c processor.Change) error {
	known, _, err := s.isBooked(ctx, name, c)
	if err != nil || known {
		return err
	}
	if err := s.applyHint(ctx, s.Processors[name], name, processor.Hint{Subject: c.Subject, ExternalID: c.ExternalID}, nil); err != nil {
		return err
	}
	known, ours, err := s.isBooked(ctx, name, c)
	if err != nil || known || !ours {
		return err
	}
	key := changeKey(name, c)
	switch s.unconfirmed[key]++; {
	case s.unconfirmed[key] < changeTries:
		return fmt.Errorf("%w: %s", errUnbooked, c.ExternalID)
	case s.unconfirmed[key] > changeTries:
		return nil // its case is open, and the rest of the page is not booked yet
	}
	s.Log.ErrorContext(ctx, "change not confirmed: compare the processor's statement", "processor", name, "externalId", c.ExternalID)
	return s.reviewChange(ctx, name, c)
}

// isBooked reports whether a listed change is booked, and whether it concerns an
// order of ours at all.
func (s *Service) isBooked(ctx context.Context, name string, c processor.Change) (known, ours bool, err error) {
	merchant, err := s.Store.MerchantOf(ctx, c.ExternalID)
	if err != nil {
		return false, false, store.Problem(err)
	}
	if c.Subject == processor.SubjectTransfer {
		p, _, err := s.Store.PayoutByExternalID(ctx, merchant, c.ExternalID)
		if errors.Is(err, store.ErrNotFound) {
			return false, false, nil
		}
		return p.ReturnedAmount >= c.Returned, true, store.Problem(err)
	}
	order, _, err := s.Store.PayinByExternalID(ctx, merchant, c.ExternalID)
	if errors.Is(err, store.ErrNotFound) || c.Dispute == nil {
		return false, false, nil
	}
	if err != nil {
		return false, true, store.Problem(err)
	}
	state, err := s.Store.DisputeState(ctx, merchant, name, c.Dispute.ID)
	if errors.Is(err, store.ErrNotFound) { // one that could not be posted has a case
		known, err := s.Store.HasOpenCase(ctx, merchant, order.ID, store.CaseDispute)
		return known, true, store.Problem(err)
	}
	// Any state is later than "open".
	return state == string(c.Dispute.State) || c.Dispute.State == processor.DisputeOpen || state == string(processor.DisputeReversed), true, store.Problem(err)
}

// reviewChange opens a case for a change that its processor lists but does not confirm.
func (s *Service) reviewChange(ctx context.Context, name string, c processor.Change) error {
	merchant, err := s.Store.MerchantOf(ctx, c.ExternalID)
	if err != nil {
		return store.Problem(err)
	}
	v := store.Case{
		ID: s.Env.IDs.NewID(s.Env.Clock.Now()), Merchant: merchant, Kind: store.CaseContradiction, Amount: c.Returned,
		Params: store.ReasonUnconfirmedChange.With(store.Params{"processor": name, "externalId": c.ExternalID}),
	}
	if c.Subject == processor.SubjectTransfer {
		p, _, err := s.Store.PayoutByExternalID(ctx, merchant, c.ExternalID)
		if err != nil {
			return store.Problem(err)
		}
		v.Subject = p.ID
	} else {
		p, _, err := s.Store.PayinByExternalID(ctx, merchant, c.ExternalID)
		if err != nil {
			return store.Problem(err)
		}
		v.Subject = p.ID
	}
	if c.Dispute != nil {
		v.Amount = c.Dispute.Amount
	}
	return s.Writer.DoWithoutCancel(ctx, write.OpenCase{Case: v})
}
