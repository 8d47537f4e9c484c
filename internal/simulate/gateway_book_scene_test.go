package simulate

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/wire"
)

// registered is the amount in cents of pay-ins that shopBank does not mint.
const registered = 7_700

// shopBank is a processor that mints its charges and takes every transfer;
// what becomes of them, each test tells.
type shopBank struct{}

func (shopBank) Profile() processor.Profile {
	return processor.Profile{
		Name: "fake", IdempotentByOurID: true, ChargeTimeout: time.Second, TransferTimeout: 5 * time.Second, QuietPeriod: time.Second,
	}
}
func (shopBank) Mint(r processor.ChargeRequest) (processor.Charge, bool) {
	return processor.Charge{PIX: &payment.PIXDetail{QRCode: "x", TxID: r.ExternalID, ExpiresAt: r.ExpiresAt}}, r.Amount != registered
}
func (b shopBank) Charge(_ context.Context, r processor.ChargeRequest) processor.ChargeAnswer {
	r.Amount++
	charge, _ := b.Mint(r)
	return processor.ChargeAnswer{Outcome: processor.Done, Charge: charge}
}
func (shopBank) QueryCharge(context.Context, string) (r processor.ChargeReport) { return r }
func (shopBank) Transfer(context.Context, processor.TransferRequest, func() error) (a processor.TransferAnswer) {
	return a
}
func (shopBank) QueryTransfer(context.Context, string) (r processor.TransferReport) { return r }

// shop is a merchant, its gateway and its bank, of which the checker reads
// every commit.
type shop struct {
	t      *testing.T
	clock  *env.VirtualClock
	keys   *store.Keyring
	store  *store.Store
	flow   *flow.Flow
	db     *sql.DB
	engine string
	book   *gatewayBook
	found  []violation
	m      store.Merchant
	books  books
}

// eachShop opens a shop on each engine.
func eachShop(t *testing.T, run func(v *shop)) {
	t.Helper()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) { run(newShop(t, engine)) })
	}
}

func newShop(t *testing.T, engine string) *shop {
	t.Helper()
	v := &shop{t: t, engine: engine}
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	w.OnFailpoint = func(m env.Failpoint) error {
		if m == env.AfterCommit && v.book != nil {
			v.read()
		}
		return nil
	}
	o := storetest.Prepare(t, engine, w)
	driver, address := "pgx", o.Database
	if engine == "sqlite" {
		driver, address = "sqlite", "file:"+o.Database+"?_pragma=busy_timeout(5000)&_pragma=ignore_check_constraints(1)"
	}
	v.clock, v.keys = clock, o.Keys
	var err error
	v.db, err = sql.Open(driver, address)
	v.must(err)
	v.db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = v.db.Close() })
	v.must(installBook(t.Context(), v.db, engine))
	v.book, err = newGatewayBook(t.Context(), v.db, engine, make([]byte, store.MasterKeyLength))
	v.must(err)
	t.Cleanup(func() { _ = v.book.close() })
	v.store = storetest.Open(t, o)
	v.flow = flow.New(flow.Options{Store: v.store, Env: w, Processors: processor.Registry{"fake": shopBank{}}})
	v.must(v.flow.Join(t.Context(), 0, false))
	v.m, err = v.flow.CreateMerchant(t.Context(), store.Merchant{Name: "shop", City: "SAO PAULO", Processor: "fake"}, "")
	v.must(err)
	v.must(v.flow.Fund(t.Context(), v.m, 100_000))
	return v
}

func (v *shop) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

func (v *shop) read() {
	v.t.Helper()
	found, err := v.book.read(context.Background())
	v.must(err)
	v.found = append(v.found, found...)
}

// sound fails the test where anything was reported.
func (v *shop) sound() {
	v.t.Helper()
	v.found = append(v.found, compare(v.books, v.book, false)...)
	for _, broken := range v.found {
		v.t.Errorf("%+v\n%s", broken, v.book.story(broken.order))
	}
	if v.t.Failed() {
		v.t.FailNow()
	}
}

const hookURL = "https://shop.example/hook"

// sell creates a pay-in with news to a URL, or none.
func (v *shop) sell(reference string, amount int64, url string) payment.Payin {
	v.t.Helper()
	r := &wire.PayinRequest{
		Method: wire.Some("PIX"), Amount: wire.Some(amount), ReferenceID: wire.Some(reference), ExpiresIn: wire.Some(int64(3600)),
	}
	if url != "" {
		r.WebhookURL = wire.Some(url)
	}
	p, _, err := v.flow.CreatePayin(v.t.Context(), v.m, r)
	v.must(err)
	v.books.acks = append(v.books.acks, &ack{
		kind: payin, merchant: v.m.ID.String(), reference: reference, amount: amount, method: "PIX", webhookURL: url, id: p.ID.String(), externalID: p.ExternalID,
	})
	return p
}

// report lets the bank say something of a pay-in.
func (v *shop) report(externalID string, r processor.ChargeReport) {
	v.t.Helper()
	for _, p := range r.Payments {
		line := bankPayment{p.ID, externalID, int64(p.Amount), p.EndToEndID}
		v.books.payments = append(v.books.payments, line)
	}
	v.must(v.flow.ApplyCharge(v.t.Context(), "fake", externalID, r, nil))
}

// pay pays a pay-in, in one payment of that id.
func (v *shop) pay(externalID, id string, amount money.Cents) {
	v.t.Helper()
	v.report(externalID, processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{
		{ID: id, ExternalID: externalID, EndToEndID: "E" + id, Amount: amount, PaidAt: v.clock.Now()},
	}})
}

// dispute reports a dispute of a pay-in in a state.
func (v *shop) dispute(externalID string, amount money.Cents, state processor.DisputeState) {
	v.t.Helper()
	v.report(externalID, processor.ChargeReport{Lookup: processor.Found, Disputes: []processor.Dispute{{ID: "D" + externalID, Amount: amount, State: state}}})
}

// withdraw requests a payout.
func (v *shop) withdraw(reference string, amount int64) payment.Payout {
	v.t.Helper()
	p, _, err := v.flow.RequestPayout(v.t.Context(), v.m, &wire.PayoutRequest{
		Amount: wire.Some(amount), PIXKey: wire.Some("a@b.c"), PIXKeyType: wire.Some("EMAIL"), NormalKey: "a@b.c",
		ReferenceID: wire.Some(reference), WebhookURL: wire.Some(hookURL),
	})
	v.must(err)
	v.books.acks = append(v.books.acks, &ack{
		kind: payout, merchant: v.m.ID.String(), reference: reference, amount: amount, webhookURL: hookURL, id: p.ID.String(), externalID: p.ExternalID,
	})
	return p
}

// send hands what is due to the bank, and records how that ended.
func (v *shop) send(answer processor.TransferAnswer) {
	v.t.Helper()
	list, _, err := v.flow.BeginSends(v.t.Context(), store.Due{Merchant: v.m.ID, Processor: "fake"}, 10)
	v.must(err)
	if len(list) != 1 {
		v.t.Fatalf("%d payouts are due", len(list))
	}
	if answer.Outcome == processor.Done {
		v.transfer(list[0].Payout.ExternalID, int64(list[0].Payout.Amount), answer.Report)
	}
	v.must(v.flow.EndSend(v.t.Context(), list[0], answer))
}

// transfer writes a transfer into the bank's books.
func (v *shop) transfer(externalID string, amount int64, r processor.TransferReport) {
	line := bankTransfer{externalID, amount, int64(r.Returned), string(r.State), r.EndToEndID}
	for i := range v.books.transfers {
		if v.books.transfers[i].externalID == externalID {
			v.books.transfers[i] = line
			return
		}
	}
	v.books.transfers = append(v.books.transfers, line)
}

// ask asks the bank about the one payout that is due to be asked about.
func (v *shop) ask(r processor.TransferReport) {
	v.t.Helper()
	list, err := v.flow.ClaimQuestions(v.t.Context(), store.Due{Merchant: v.m.ID, Processor: "fake"}, 10)
	v.must(err)
	if len(list) != 1 {
		v.t.Fatalf("%d payouts are to be asked about", len(list))
	}
	if r.Lookup == processor.Found {
		v.transfer(list[0].ExternalID, int64(list[0].Amount), r)
	}
	v.must(v.flow.SettlePayout(v.t.Context(), list[0], r))
}

func bankSays(state processor.TransferState) processor.TransferAnswer {
	return processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{
		Lookup: processor.Found, State: state, EndToEndID: "E1", Evidence: "the bank says " + string(state),
	}}
}

// deliver brings all news that are due to their receiver, who answers.
func (v *shop) deliver(answer int) int {
	v.t.Helper()
	list, err := v.flow.ClaimDeliveries(v.t.Context(), v.m.ID, 100)
	v.must(err)
	for _, d := range list {
		v.book.arrives(payment.PublicEventID(d.Event.ID))
		v.books.received = append(v.books.received, received{
			merchant: v.m.ID.String(), url: d.URL, eventID: payment.PublicEventID(d.Event.ID), body: d.Event.Body, answer: answer, at: v.clock.Now(),
		})
		e := &flow.EndedDelivery{End: store.End{Delivery: d, Attempt: store.Attempt{Delivery: d.ID, Status: answer}}}
		switch {
		case answer == 200:
			e.Delivery.State = store.DeliveryDone
		case answer == 410:
			e.Delivery.State, e.Gone = store.DeliveryEnded, true
		case d.Attempts >= 11:
			e.Delivery.State = store.DeliveryExhausted
		default:
			e.Delivery.NextAt = v.clock.Now().Add(time.Minute)
		}
		v.must(v.flow.EndDelivery(v.t.Context(), e))
	}
	return len(list)
}

// furnish fills a shop with one order in each of several states:
// in-paid (with a surplus), in-open, in-disputed, out-done, out-failed,
// out-sent and out-new, money of a stranger, and a notice to be applied.
func (v *shop) furnish() {
	v.t.Helper()
	paid := v.sell("in-paid", 10_000, hookURL)
	v.pay(paid.ExternalID, "A", 10_500)
	v.withdraw("out-done", 2_000)
	v.send(bankSays(processor.TransferPaid))
	v.deliver(200)
	v.sell("in-open", 5_000, hookURL)
	disputed := v.sell("in-disputed", 3_000, hookURL)
	v.pay(disputed.ExternalID, "B", 3_000)
	v.dispute(disputed.ExternalID, 3_000, processor.DisputeOpen)
	v.withdraw("out-failed", 400)
	v.send(processor.TransferAnswer{Outcome: processor.Refused, Failure: &payment.Failure{Code: "x", Message: "no such key"}, Evidence: "422"})
	v.withdraw("out-sent", 700)
	v.send(bankSays(processor.TransferProcessing))
	v.withdraw("out-new", 900)
	v.pay(payment.ExternalID(v.store.Installation(), v.m.Number, v.m.ID, payment.OperationPayin, "unknown"), "C", 55)
	v.must(v.flow.RecordNotice(v.t.Context(), "fake", "n1", "", []byte("{}")))
	v.sound()
}

// lax takes the database's own constraints away: the checker is to find what
// they would refuse.
func (v *shop) lax() {
	v.t.Helper()
	texts := []string{"DROP INDEX payout_sends_live"}
	if v.engine == "postgres" {
		rows, err := v.db.QueryContext(v.t.Context(), `SELECT 'ALTER TABLE ' || conrelid::regclass || ' DROP CONSTRAINT ' || conname
			FROM pg_constraint WHERE contype IN ('c', 'f') AND connamespace = 'public'::regnamespace`)
		v.must(err)
		for rows.Next() {
			var text string
			v.must(rows.Scan(&text))
			texts = append(texts, text)
		}
		v.must(rows.Err())
		v.must(rows.Close())
	}
	for _, text := range texts {
		_, err := v.db.ExecContext(v.t.Context(), text)
		v.must(err)
	}
}

// again reads the whole story into a new book, as one commit.
func (v *shop) again() {
	v.t.Helper()
	old := v.book
	var err error
	v.book, err = newGatewayBook(v.t.Context(), v.db, v.engine, make([]byte, store.MasterKeyLength))
	v.must(err)
	v.book.retention, v.book.now = old.retention, old.now
	v.must(old.close())
	v.found = nil
	v.read()
}

// freshID is an id that nothing has.
const freshID = "0123456789abcdef"

// corrupt runs statements as one commit, which is taken back once it is read.
// $1 is an id that nothing has, and $2 a value to store.
func (v *shop) corrupt(statements []string, value []byte) []violation {
	t := v.t
	t.Helper()
	v.again()
	v.sound()
	tx, err := v.db.BeginTx(t.Context(), nil)
	v.must(err)
	defer func() { v.must(tx.Rollback()) }()
	for _, text := range statements {
		var args []any
		if strings.Contains(text, "$1") {
			args = append(args, []byte(freshID))
		}
		if strings.Contains(text, "$2") {
			args = append(args, value)
		}
		if _, err := tx.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	direct := v.book.log
	v.book.log = tx.StmtContext(t.Context(), direct)
	defer func() { v.book.log = direct }()
	found, err := v.book.read(t.Context())
	v.must(err)
	return found
}
