package store_test

import (
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// readOrders reads orders one by one, in lists with each filter, and what belongs to
// them.
func (v *exercise) readOrders() {
	t, s, ctx, m := v.t, v.s, v.t.Context(), v.merchants[0].ID
	p, q := v.last.payins[0].Payin, v.last.payouts[0].Payout
	_, err := s.Payin(ctx, m, p.ID)
	must(t, err)
	_, err = s.PersonalOf(ctx, m, []payment.ID{p.ID, q.ID})
	must(t, err)
	v.list(payment.OperationPayin, store.Filter{PaidFrom: v.far, PaidTo: v.far})
	_, err = s.PayinPersonal(ctx, m, p.ID)
	must(t, err)
	_, _, err = s.PayinByExternalID(ctx, m, p.ExternalID)
	must(t, err)
	_, err = s.FindPayin(ctx, p.ID)
	must(t, err)
	_, err = s.Payout(ctx, m, q.ID)
	must(t, err)
	_, _, err = s.PayoutByExternalID(ctx, m, q.ExternalID)
	must(t, err)
	_, err = s.FindPayout(ctx, q.ID)
	must(t, err)
	_, err = s.DamagedOrder(ctx, m, q.ID)
	must(t, err)
	for _, f := range []store.Filter{
		{}, {Status: "PAID"}, {Status: string(payment.PayoutCompleted)}, {Method: payment.PIX}, {Method: payment.Boleto}, {Status: "PAID", Method: payment.Boleto}, {ExternalID: "p"}, {ExternalID: "p", PublicExternalID: "q"}, {Before: p.ID},
		{CreatedFrom: v.far}, {CreatedTo: v.far}, {Status: "PAID", Method: payment.PIX, CreatedFrom: v.far, CreatedTo: v.far, Before: p.ID},
		{Statuses: []string{"PENDING", "PAID"}}, {Statuses: []string{"PENDING", "PAID"}, CreatedFrom: v.far, Before: p.ID},
	} {
		v.list(payment.OperationPayin, f)
		f.Method = ""
		v.list(payment.OperationPayout, f)
	}
	_, err = s.Sends(ctx, m, q.ID)
	must(t, err)
	_, err = s.Receipts(ctx, m, p.ID)
	must(t, err)
	_, err = s.HasReceipt(ctx, "bank", "E")
	must(t, err)
	v.readDisputes()
	_, err = s.HasOpenCase(ctx, m, p.ID, store.CaseDispute)
	must(t, err)
	receipts, err := s.Receipts(ctx, m, payment.ID{})
	if err != nil || len(receipts) == 0 {
		t.Fatalf("receipts %v, %v", receipts, err)
	}
	_, err = s.Receipt(ctx, m, receipts[0].ID)
	must(t, err)
	_, err = s.PostingsAbout(ctx, m, p.ID, 5)
	must(t, err)
	_, err = s.FindCase(ctx, v.last.cases[0])
	must(t, err)
	_, err = s.Decisions(ctx, m, v.last.cases[0])
	must(t, err)
	_, err = s.LastDecision(ctx, m)
	must(t, err)
	_, err = s.Balances(ctx, m)
	must(t, err)
	_, err = s.Postings(ctx, m, store.Posting{}, 5)
	must(t, err)
}

// list reads a page of a list, as the API does.
func (v *exercise) list(op payment.Operation, f store.Filter) {
	t, s, ctx, m := v.t, v.s, v.t.Context(), v.merchants[0].ID
	var err error
	if f.Limit = 5; f.Scans() {
		f.From, err = s.ScanFrom(ctx, m, op, f)
		must(t, err)
		f.From = payment.ID{1} // as if there were more orders
	}
	switch op {
	case payment.OperationPayin:
		_, err = s.Payins(ctx, m, f)
	case payment.OperationPayout:
		_, err = s.Payouts(ctx, m, f)
	default:
		_, err = s.Refunds(ctx, m, f)
	}
	must(t, err)
}

// readEvents reads events and their deliveries.
func (v *exercise) readEvents() {
	t, s, ctx, m := v.t, v.s, v.t.Context(), v.merchants[0].ID
	events, err := s.Events(ctx, m, 0, 5)
	if err != nil || len(events) != 5 {
		t.Fatalf("%v, %v", events, err)
	}
	_, err = s.Event(ctx, m, events[0].ID)
	must(t, err)
	_, err = s.ContinueStatement(ctx, m, store.EventPosition{})
	must(t, err)
	_, err = s.Continue(ctx, m, store.EventPosition{})
	must(t, err)
	_, err = s.LastEvent(ctx, m)
	must(t, err)
	_, _, err = s.SubjectsAfter(ctx, m, 0, 5)
	must(t, err)
	_, err = s.Attempts(ctx, m, 1)
	must(t, err)
	_, err = s.EventNumbered(ctx, m, 1)
	must(t, err)
	deliveries, err := s.Deliveries(ctx, m, store.Filter{Limit: 5})
	if err != nil || len(deliveries) == 0 {
		t.Fatalf("%v, %v", deliveries, err)
	}
	_, err = s.Deliveries(ctx, m, store.Filter{CreatedFrom: v.far, Before: deliveries[0].ID, Limit: 5})
	must(t, err)
	_, err = s.DeliveryOf(ctx, m, deliveries[0].ID)
	must(t, err)
	_, err = s.DeliveriesOf(ctx, m, 1)
	must(t, err)
	_, err = s.OldDeliveries(ctx, m, payment.ID{}, v.far, 5)
	must(t, err)
}

// readMerchants reads merchants and what belongs to the installation.
func (v *exercise) readMerchants() {
	t, s, ctx, m := v.t, v.s, v.t.Context(), v.merchants[0]
	_, err := s.Credential(ctx, "k")
	must(t, err)
	_, err = s.Merchant(ctx, m.ID)
	must(t, err)
	_, err = s.MerchantByNumber(ctx, m.Number)
	must(t, err)
	_, err = s.MerchantByName(ctx, m.Name)
	must(t, err)
	s.ForgetMerchants()
	_, err = s.MerchantOf(ctx, v.last.payins[0].Payin.ExternalID)
	must(t, err)
	_, err = s.Merchants(ctx)
	must(t, err)
	_, err = s.Account(ctx, "bank")
	must(t, err)
	_, err = s.AccountVersions(ctx)
	must(t, err)
	_, err = s.WebhookSecret(ctx, m.ID)
	must(t, err)
	_, err = s.Brand(ctx, m.ID)
	must(t, err)
	_, err = s.ReadInstallation(ctx)
	must(t, err)
	_, err = s.Nodes(ctx)
	must(t, err)
	_, err = s.Setting(ctx, "name")
	must(t, err)
	_, err = s.SettingsLike(ctx, "name")
	must(t, err)
	must(t, s.Ping(ctx))
	_, _, err = s.ServerTime(ctx)
	must(t, err)
}

// readWork reads due rows.
func (v *exercise) readWork() {
	t, s, ctx := v.t, v.s, v.t.Context()
	_, err := s.PayinsDue(ctx, v.far, 5)
	must(t, err)
	_, err = s.AccountsWithNotices(ctx, v.far)
	must(t, err)
	_, err = s.AccountsWithCharges(ctx, v.far)
	must(t, err)
	_, err = s.ChargeOf(ctx, v.merchants[0].ID, v.last.payins[0].Payin.ID)
	must(t, err)
	_, err = s.Charges(ctx, v.merchants[0].ID, v.last.payins[0].Payin.ID)
	must(t, err)
	_, err = s.DeliveriesDue(ctx, v.far)
	must(t, err)
	_, err = s.Frozen(ctx)
	must(t, err)
	_, err = s.Feeds(ctx)
	must(t, err)
	_, err = s.FoundTransfer(ctx, v.merchants[0].ID, "0 of 2")
	must(t, err)
	_, err = s.FoundTransfersDue(ctx, v.far, 5)
	must(t, err)
	_, err = s.CasesAbout(ctx, v.merchants[0].ID, v.last.payins[0].Payin.ID, store.CaseOverpaid)
	must(t, err)
	_, err = s.CasesOf(ctx, v.merchants[0].ID, v.last.payins[0].Payin.ID)
	must(t, err)
	_, err = s.StoppedAccounts(ctx)
	must(t, err)
	_, err = s.OpenCasesOf(ctx, v.merchants[0].ID, store.CaseOverpaid)
	must(t, err)
	_, err = s.AsksConsent(ctx, "bank")
	must(t, err)
	for _, f := range []store.StatementFilter{{}, {Account: ledger.Held}, {Kind: ledger.Funded}, {Account: ledger.Held, Kind: ledger.Funded}} {
		f.To, f.Limit = 9, 5
		_, err = s.Statement(ctx, v.merchants[0].ID, f)
		must(t, err)
	}
	_, err = s.StatementEnd(ctx, v.merchants[0].ID)
	must(t, err)
	_, err = s.StatementNumber(ctx, v.merchants[0].ID, 1)
	must(t, err)
	_, err = s.StatementBefore(ctx, v.merchants[0].ID, v.far)
	must(t, err)
	_, err = s.BalancesBefore(ctx, v.merchants[0].ID, v.far)
	must(t, err)
	_, err = s.AskedConsent(ctx, "bank", v.far)
	must(t, err)
	_, _, err = s.HasTransfer(ctx, v.merchants[0].ID, "x", true, "E", 1)
	must(t, err)
	_, _, err = s.DuplicateReturned(ctx, v.merchants[0].ID, v.merchants[0].ID)
	must(t, err)
	for _, queue := range []store.PayoutQueue{store.ToSend, store.ToLookUp} {
		_, err = s.PayoutsDue(ctx, v.far, queue)
		must(t, err)
	}
}
