package store_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// large are the tables that grow with what merchants do.
var large = []string{
	"payins", "payouts", "payout_sends", "postings", "balances", "event_counters", "events", "deliveries", "delivery_attempts",
	"receipts", "receipt_claims", "disputes", "notices", "credentials",
}

// ofOneMerchant are the queries that may begin at a merchant's first row: they
// list its rows in the order of their key, and are filtered by nothing, or by
// what most rows have; or they read its few accounts, or its one counter.
var ofOneMerchant = regexp.MustCompile(`WHERE merchant_id = \$1 ORDER BY id DESC LIMIT|AND method = \$2 ORDER BY id DESC LIMIT|FROM balances|FROM event_counters`)

// pulledForward are the statements that look at all that waits, when a process
// begins or its clock was set back: as long as the queues, not as the tables.
var pulledForward = regexp.MustCompile(`^UPDATE \w+ SET next_at = \$1 WHERE next_at > 0 AND next_at > \$2`)

// A query on the path of a request or a loop finds its rows by an index: with a
// year of orders in the table it must cost what it costs with ten.
func TestQueriesUseAnIndex(t *testing.T) {
	t.Parallel()
	w := env.System(env.OutboundOptions{})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		o := storetest.Prepare(t, "sqlite", w)
		s := storetest.Open(t, o)
		reads := s.RecordReads(o.Database)
		exercise(t, s)
		texts := append(reads.Texts(), s.Written()...)
		everyText(t, texts, false)
		for _, text := range texts {
			for _, step := range sqlitePlan(t, s, text) {
				if named := updateOf.FindStringSubmatch(text); named != nil { // its alias says nothing
					step = strings.Replace(step, " t ", " "+named[1]+" ", 1)
				}
				table, whole := strings.CutPrefix(step, "SCAN ")
				if whole && isLarge(table) && !pulledForward.MatchString(text) {
					t.Errorf("%s: %s", step, text)
				}
				table, _ = strings.CutPrefix(step, "SEARCH ")
				if strings.HasSuffix(step, "(merchant_id=?)") && isLarge(table) && !ofOneMerchant.MatchString(text) {
					t.Errorf("all rows of a merchant, %s: %s", step, text)
				}
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		o := storetest.Prepare(t, "postgres", w)
		o.Connections = 1 // which then has prepared every statement
		s := storetest.Open(t, o)
		exercise(t, s)
		fillPostgres(t, s)
		plans := postgresPlans(t, s)
		if len(plans) < 40 {
			t.Fatalf("only %d statements were recorded", len(plans))
		}
		everyText(t, slices.Collect(maps.Keys(plans)), true)
		for text, plan := range plans {
			for _, table := range regexp.MustCompile(`Seq Scan on (\w+)`).FindAllStringSubmatch(plan, -1) {
				if isLarge(table[1]) && !pulledForward.MatchString(text) {
					t.Errorf("%s\n%s", text, plan)
				}
			}
		}
	})
}

var updateOf = regexp.MustCompile(`^UPDATE (\w+) AS t `)

// isLarge says whether a step of a plan reads a table that grows.
func isLarge(step string) bool {
	name, _, _ := strings.Cut(step, " ")
	aliases := map[string]string{"a": "delivery_attempts", "d": "deliveries"}
	if table, ok := aliases[name]; ok {
		name = table
	}
	return slices.Contains(large, name)
}

var parameter = regexp.MustCompile(`\$(\d+)`)

func sqlitePlan(t *testing.T, s *store.Store, text string) (steps []string) {
	t.Helper()
	switch verb, _, _ := strings.Cut(text, " "); verb {
	case "SELECT", "INSERT", "UPDATE", "DELETE":
	default:
		return nil
	}
	var args []any
	for _, match := range parameter.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		for len(args) < n {
			args = append(args, nil)
		}
	}
	rows, err := s.Reader().QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, detail)
	}
	return steps
}

// postgresPlans explains every statement that the one connection prepared, as
// the server plans it for tables that have grown.
func postgresPlans(t *testing.T, s *store.Store) map[string]string {
	t.Helper()
	conn, err := s.Reader().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	read := func(text string) (list []string) {
		rows, err := conn.QueryContext(t.Context(), text, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			list = append(list, line)
		}
		return list
	}
	if _, err := conn.ExecContext(t.Context(), "SET plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	plans := map[string]string{}
	for _, line := range read(`SELECT name || ' ' || coalesce(array_length(parameter_types, 1), 0) || ' ' || statement FROM pg_prepared_statements
		WHERE statement ~ '^(SELECT|INSERT|UPDATE|DELETE)' AND statement !~ 'pg_'`) {
		parts := strings.SplitN(line, " ", 3)
		n, err := strconv.Atoi(parts[1])
		if err != nil {
			t.Fatal(err)
		}
		call := parts[0]
		if n > 0 {
			call += "(" + strings.TrimSuffix(strings.Repeat("NULL, ", n), ", ") + ")"
		}
		plans[parts[2]] = strings.Join(read("EXPLAIN EXECUTE "+call), "\n")
	}
	return plans
}

// exercise runs every query that requests and loops run.
func exercise(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := t.Context()
	node := payment.ID{7}
	var m store.Merchant
	var p *store.NewPayin
	var q *store.NewPayout
	write := func(work func(tx *store.Tx) error) {
		t.Helper()
		if err := s.Write(ctx, work); err != nil {
			t.Fatal(err)
		}
	}
	write(func(tx *store.Tx) (err error) {
		if m, err = tx.CreateMerchant(ctx, store.Merchant{Name: "m", Processor: "bank"}, ""); err != nil {
			return err
		}
		p = &store.NewPayin{Payin: payment.Payin{Merchant: m.ID, ID: tx.NewID(), ExternalID: "p", Amount: 9, Status: payment.PayinPending, Version: 1, ExpiresAt: tx.Now}}
		q = &store.NewPayout{Payout: payment.Payout{Merchant: m.ID, ID: tx.NewID(), ExternalID: "q", Amount: 9, Status: payment.PayoutPending,
			Step: payment.StepQueued, Version: 1, Processor: "bank", WebhookURL: "https://a.example", NextAt: tx.Now}}
		first(t, tx.CreateCredential(ctx, store.Credential{KeyID: "k", Merchant: m.ID, SecretHash: []byte{1}}))
		first(t, tx.SaveBrand(ctx, store.Brand{Merchant: m.ID, Title: "M"}))
		first(t, tx.RegisterNode(ctx, node))
		_, err = tx.InsertPayins(ctx, []*store.NewPayin{p})
		first(t, err)
		_, err = tx.InsertPayouts(ctx, []*store.NewPayout{q})
		first(t, err)
		tx.Announce(payment.Event{Merchant: m.ID, Type: payment.EventPayinPaid, Subject: p.ID}, []byte(`{}`), "https://a.example")
		first(t, tx.OpenException(ctx, store.Exception{Merchant: m.ID, Kind: store.ExceptionNotice}))
		_, err = tx.RecordNotices(ctx, []store.Notice{{Processor: "bank", ID: "n"}})
		first(t, err)
		_, err = tx.RecordNotice(ctx, store.Notice{Processor: "bank", ID: "n"})
		first(t, err)
		first(t, tx.Hold(ctx, node, noRoom{}))
		if held := tx.Held(); held.Node != node {
			t.Errorf("held by %v", held.Node)
		}
		return tx.Post(ctx, m.ID, p.ID, ledger.Fund("bank", 5))
	})
	write(func(tx *store.Tx) error { return exerciseWrites(t, tx, m.ID, p, q, node) })
	write(func(tx *store.Tx) error {
		d := claimOne(t, tx, m.ID, node)
		d.State, d.NextAt = store.DeliveryDone, time.Time{}
		_, err := tx.FinishDelivery(ctx, d, store.Attempt{}, node)
		first(t, err)
		_, err = tx.FinishDelivery(ctx, d, store.Attempt{}, node) // lost by now
		return err
	})
	write(func(tx *store.Tx) error { return exerciseRemoval(t, tx, m.ID, q.ID, node, p.ExpiresAt.Add(time.Hour)) })
	write(func(tx *store.Tx) error {
		_, err := tx.ReleaseNode(ctx, store.Node{ID: node, Beat: 2})
		return err
	})
	_, err := s.AnalyzeGrown(t.Context())
	first(t, err)
	exerciseReads(t, s, m, p, q)
	exerciseLookups(t, s, m, p, q)
	write(func(tx *store.Tx) error {
		first(t, tx.RevokeCredential(ctx, "k"))
		return tx.CloseMerchant(ctx, m.ID)
	})
}

func exerciseWrites(t *testing.T, tx *store.Tx, m payment.ID, p *store.NewPayin, q *store.NewPayout, node payment.ID) error {
	t.Helper()
	ctx := t.Context()
	_, err := tx.Payin(ctx, m, p.ID)
	first(t, err)
	_, err = tx.Payout(ctx, m, q.ID)
	first(t, err)
	_, _, err = tx.PayinByExternalID(ctx, m, p.ExternalID)
	first(t, err)
	_, _, err = tx.PayoutByExternalID(ctx, m, q.ExternalID)
	first(t, err)
	_, err = tx.ClaimPayouts(ctx, store.Due{Merchant: m, Processor: "bank"}, node, store.ToAsk, 5)
	first(t, err)
	claimed, err := tx.ClaimPayouts(ctx, store.Due{Merchant: m, Processor: "bank"}, node, store.ToSend, 5)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("%v, %v", claimed, err)
	}
	first(t, tx.InsertSends(ctx, []store.Send{{Merchant: m, Payout: q.ID, Number: 1, Node: node, Outcome: store.SendIntent}}))
	_, err = tx.Sends(ctx, m, q.ID)
	first(t, err)
	first(t, tx.PayinsAhead(ctx, m, []string{p.ExternalID, "another"}))
	first(t, tx.PayoutsAhead(ctx, m, []payment.ID{q.ID, m}))
	_, err = tx.FinishDeliveries(ctx, []store.End{{}, {Delivery: store.Delivery{ID: m}}}) // of nobody
	first(t, err)
	first(t, tx.RedateSend(ctx, m, q.ID, 1, tx.Now))
	first(t, tx.EndSend(ctx, m, q.ID, store.SendNotFound, ""))
	first(t, tx.EndSend(ctx, m, q.ID, store.SendAccepted, ""))
	first(t, tx.EndSend(ctx, m, q.ID, store.SendNotFound, ""))
	first(t, tx.EndSend(ctx, m, q.ID, store.SendPaid, ""))
	first(t, tx.StayNode(ctx, node))
	p.Version, q.Version = 2, 2
	first(t, tx.UpdatePayin(ctx, &p.Payin, 1))
	first(t, tx.UpdatePayout(ctx, &q.Payout, 1))
	d := claimOne(t, tx, m, node)
	_, err = tx.FinishDelivery(ctx, d, store.Attempt{}, node)
	first(t, err)
	first(t, tx.GiveUpDelivery(ctx, d, m, store.Exception{Merchant: m}))
	first(t, tx.CloseException(ctx, m, m, ""))
	first(t, tx.ReturnDelivery(ctx, d, tx.Now, node))
	first(t, tx.EndDeliveries(ctx, m, p.ID, "https://a.example"))
	_, err = tx.Redeliver(ctx, &payment.Event{Merchant: m, Number: 1})
	first(t, err)
	notices, err := tx.ClaimNotices(ctx, node, 5)
	if err != nil || len(notices) != 1 {
		t.Fatalf("%v, %v", notices, err)
	}
	first(t, tx.DelayNotice(ctx, notices[0], tx.Now, ""))
	first(t, tx.FinishNotice(ctx, notices[0], store.NoticeApplied, ""))
	receipts := []*payment.Receipt{{Merchant: m, ID: tx.NewID(), Payin: p.ID, Processor: "bank", ExternalID: "E", Amount: 1, Applied: 1}}
	_, err = tx.ClaimReceipts(ctx, receipts)
	first(t, err)
	first(t, tx.InsertReceipts(ctx, receipts))
	first(t, tx.InsertDispute(ctx, store.Dispute{Merchant: m, ID: p.ID, Payin: p.ID, Processor: "bank", ExternalID: "D", Amount: 1, State: "open"}))
	_, err = tx.Dispute(ctx, m, "bank", "D")
	first(t, err)
	first(t, tx.UpdateDispute(ctx, store.Dispute{Merchant: m, ID: p.ID, State: "won"}, "open"))
	first(t, tx.CloseExceptions(ctx, m, p.ID, store.ExceptionNotice))
	_, err = tx.Beat(ctx, node)
	first(t, err)
	first(t, tx.PullForward(ctx, tx.Now))
	first(t, tx.MarkRestored(ctx, 1))
	first(t, tx.SetSetting(ctx, "name", "value"))
	_, err = tx.Setting(ctx, "name")
	first(t, err)
	return tx.Post(ctx, m, p.ID, ledger.Fund("bank", 5))
}

// claimOne takes the one delivery in hand that is due.
func claimOne(t *testing.T, tx *store.Tx, m, node payment.ID) store.Delivery {
	t.Helper()
	deliveries, err := tx.ClaimDeliveries(t.Context(), m, node, 5)
	if err != nil || len(deliveries) != 1 {
		t.Fatalf("%v, %v", deliveries, err)
	}
	return deliveries[0]
}

// exerciseRemoval lets a finished delivery go, and be made anew for an order.
func exerciseRemoval(t *testing.T, tx *store.Tx, m, order, node payment.ID, before time.Time) error {
	t.Helper()
	ctx := t.Context()
	_, err := tx.NoteRemoval(ctx, before, time.Hour)
	first(t, err)
	n, err := tx.RemoveDeliveries(ctx, store.Old{Merchant: m, Last: tx.NewID()}, before)
	if err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	_, err = tx.Redeliver(ctx, &payment.Event{Merchant: m, Number: 1, Subject: m}) // no order: both tables are looked at
	first(t, err)
	_, err = tx.Redeliver(ctx, &payment.Event{Merchant: m, Number: 1, Subject: order})
	first(t, err)
	first(t, tx.ReturnDelivery(ctx, claimOne(t, tx, m, node), tx.Now, node))
	claimOne(t, tx, m, node) // and it stays in hand
	return nil
}

func exerciseReads(t *testing.T, s *store.Store, m store.Merchant, p *store.NewPayin, q *store.NewPayout) {
	t.Helper()
	ctx := t.Context()
	now := p.ExpiresAt.Add(time.Hour)
	_, err := s.Payin(ctx, m.ID, p.ID)
	first(t, err)
	_, err = s.PayinPersonal(ctx, m.ID, p.ID)
	first(t, err)
	_, _, err = s.PayinByExternalID(ctx, m.ID, p.ExternalID)
	first(t, err)
	_, err = s.Payout(ctx, m.ID, q.ID)
	first(t, err)
	_, _, err = s.PayoutByExternalID(ctx, m.ID, q.ExternalID)
	first(t, err)
	for _, f := range []store.Filter{
		{}, {Status: "PAID"}, {Method: payment.PIX}, {ExternalID: "p"}, {Before: p.ID}, {CreatedFrom: now}, {CreatedTo: now},
		{Status: "PAID", Method: payment.PIX, CreatedFrom: now, CreatedTo: now, Before: p.ID},
	} {
		f.Limit = 5
		_, err = s.Payins(ctx, m.ID, f)
		first(t, err)
		f.Method = ""
		_, err = s.Payouts(ctx, m.ID, f)
		first(t, err)
	}
	_, err = s.Sends(ctx, m.ID, q.ID)
	first(t, err)
	_, err = s.Balances(ctx, m.ID)
	first(t, err)
	_, err = s.Postings(ctx, m.ID, store.Posting{}, 5)
	first(t, err)
	events, err := s.Events(ctx, m.ID, 0, 5)
	if err != nil || len(events) != 1 {
		t.Fatalf("%v, %v", events, err)
	}
	_, err = s.Event(ctx, m.ID, events[0].ID)
	first(t, err)
	_, err = s.Attempts(ctx, m.ID, 1)
	first(t, err)
	_, err = s.Receipts(ctx, m.ID, p.ID)
	first(t, err)
	_, err = s.HasReceipt(ctx, "bank", "E")
	first(t, err)
	_, err = s.PayinsDue(ctx, now, 5)
	first(t, err)
	_, err = s.DeliveriesDue(ctx, now)
	first(t, err)
	for _, steps := range []store.StepFilter{store.ToSend, store.ToAsk} {
		_, err = s.PayoutsDue(ctx, now, steps)
		first(t, err)
	}
}

// exerciseLookups are reads of what an order or a loop needs beside the lists.
func exerciseLookups(t *testing.T, s *store.Store, m store.Merchant, p *store.NewPayin, q *store.NewPayout) {
	t.Helper()
	ctx, now := t.Context(), p.ExpiresAt.Add(time.Hour)
	_, err := s.Credential(ctx, "k")
	first(t, err)
	_, err = s.MerchantByNumber(ctx, m.Number)
	first(t, err)
	_, err = s.Brand(ctx, m.ID)
	first(t, err)
	_, _, err = s.SubjectsAfter(ctx, m.ID, 0, 5)
	first(t, err)
	_, err = s.LastEvent(ctx, m.ID)
	first(t, err)
	_, err = s.DisputeState(ctx, m.ID, "bank", "D")
	first(t, err)
	_, err = s.HasException(ctx, m.ID, p.ID, store.ExceptionDispute)
	first(t, err)
	_, err = s.FindPayin(ctx, p.ID)
	first(t, err)
	_, err = s.FindPayout(ctx, q.ID)
	first(t, err)
	_, err = s.Merchant(ctx, m.ID)
	first(t, err)
	_, err = s.MerchantByName(ctx, m.Name)
	first(t, err)
	_, err = s.WebhookSecret(ctx, m.ID)
	first(t, err)
	_, err = s.Merchants(ctx)
	first(t, err)
	_, err = s.Nodes(ctx)
	first(t, err)
	_, err = s.ReadInstallation(ctx)
	first(t, err)
	_, err = s.Setting(ctx, "name")
	first(t, err)
	_, err = s.OldDeliveries(ctx, m.ID, payment.ID{}, now, 5)
	first(t, err)
	first(t, s.Ping(ctx))
}

// first ends the test at the first error.
func first(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("exercise: %w", err))
	}
}

// noRoom has no place for anything.
type noRoom struct{}

func (noRoom) RoomForNotice() bool             { return false }
func (noRoom) RoomForDelivery(payment.ID) bool { return false }
