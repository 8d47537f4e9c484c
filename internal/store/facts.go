package store

import (
	"context"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
)

// WorkKind is a queue of background work, as operators name it.
type WorkKind string

// The queues whose rows are due at a time.
const (
	WorkSendPayouts   WorkKind = "payouts to send"
	WorkLookUpPayouts WorkKind = "payouts to look up"
	WorkSendRefunds   WorkKind = "refunds to send"
	WorkLookUpRefunds WorkKind = "refunds to look up"
	WorkCharges       WorkKind = "charges"
	WorkNotices       WorkKind = "notices"
	WorkAnswers       WorkKind = "answers to disputes"
	WorkExpiry        WorkKind = "expiry of pay-ins"
	WorkApprovals     WorkKind = "expiry of approvals"
	WorkSettlement    WorkKind = "settlement"
	WorkWebhooks      WorkKind = "webhooks"
)

// Oldest is the time at which the first row of a queue is due, at an account if the queue is
// split by account.
type Oldest struct {
	Account string
	Since   time.Time
}

// firstDue reads the first row of each account in the index of a queue.
func firstDue(table, column, condition string) string {
	return "SELECT a.id, coalesce((SELECT t.next_at FROM " + table + " t WHERE t." + column + " = a.id AND t.next_at > 0" + condition +
		" ORDER BY t.next_at LIMIT 1), 0) FROM accounts a"
}

// workStatements read the first row of a queue. Those of payouts are [Store.PayoutsDue].
var workStatements = map[WorkKind]string{
	WorkSendRefunds:   firstDue("refund_parts", "processor", " AND "+payoutQueues[ToSend].sql),
	WorkLookUpRefunds: firstDue("refund_parts", "processor", " AND "+payoutQueues[ToLookUp].sql),
	WorkCharges:       firstDue("charges", "account", ""),
	WorkNotices:       firstDue("notices", "processor", ""),
	WorkAnswers:       firstDue("dispute_answers", "processor", ""),
	WorkExpiry:        "SELECT '', t.next_at FROM payins t WHERE t.next_at > 0 ORDER BY t.next_at LIMIT 1",
	WorkApprovals:     "SELECT '', t.next_at FROM payouts t WHERE t.next_at > 0 AND t.step = 'approval' ORDER BY t.next_at LIMIT 1",
	WorkSettlement:    "SELECT '', t.settles_at FROM receivables t WHERE t.state = 'pending' ORDER BY t.settles_at LIMIT 1",
	WorkWebhooks: `SELECT '', coalesce(MIN(since), 0) FROM (SELECT (SELECT t.next_at FROM deliveries t WHERE t.merchant_id = m.id AND t.next_at > 0
		ORDER BY t.next_at LIMIT 1) AS since FROM merchants m) AS first WHERE since > 0`,
}

// OldestWork lists the accounts whose first row of a queue is due at a time, with that row's time.
func (s *Store) OldestWork(ctx context.Context, kind WorkKind, now time.Time) (list []Oldest, err error) {
	switch kind {
	case WorkSendPayouts, WorkLookUpPayouts:
		queue := ToSend
		if kind == WorkLookUpPayouts {
			queue = ToLookUp
		}
		pairs, err := s.PayoutsDue(ctx, now, queue)
		for _, d := range pairs {
			list = append(list, Oldest{d.Processor, d.Since})
		}
		return list, err
	}
	rows, err := s.db.Query(ctx, workStatements[kind])
	all, err := db.Collect(rows, err, func(r db.Scanner) (v Oldest, err error) {
		var since int64
		err = r.Scan(textDest[string]{&v.Account}, &since)
		v.Since = atMicros(since)
		return v, err
	})
	for _, v := range all {
		if !v.Since.IsZero() && !v.Since.After(now) {
			list = append(list, v)
		}
	}
	return list, s.db.ReadError("due "+string(kind), err)
}

// countedMost bounds a count: more than it is as alarming as it.
const countedMost = 10_000

// Unknown is how many effects at processors have an unknown outcome, at most 10,000 per merchant, and
// since when the oldest has it; zero if there is none. Subject: payout, refund, charge or dispute
// answer.
type Unknown struct {
	Subject string
	Count   int64
	Since   time.Time
}

// unknownOf counts rows t of a merchant m, and finds the first of them by its id.
func unknownOf(from, since, id string) string {
	return fmt.Sprintf(`SELECT CAST(coalesce(SUM(n), 0) AS BIGINT), coalesce(MIN(CASE WHEN since > 0 THEN since END), 0) FROM (
		SELECT (SELECT count(*) FROM (SELECT 1 FROM %[1]s LIMIT %[4]d) AS counted) AS n,
			coalesce((SELECT %[2]s FROM %[1]s ORDER BY %[3]s LIMIT 1), 0) AS since FROM merchants m) AS merchant`, from, since, id, countedMost)
}

var unknownStatements = []struct{ subject, text string }{
	{"payout", unknownOf("payouts t WHERE t.merchant_id = m.id AND t.status = 'PROCESSING' AND t.status <> 'COMPLETED' AND t.step IN ('unknown', 'manual_review')", "t.sent_at", "t.id")},
	{"refund", unknownOf(`refunds r JOIN refund_parts t ON t.merchant_id = r.merchant_id AND t.refund_id = r.id
		WHERE r.merchant_id = m.id AND r.status = 'PROCESSING' AND r.status <> 'COMPLETED' AND t.step IN ('unknown', 'manual_review')`, "t.first_at", "r.id")},
	{"charge", `SELECT count(*), coalesce(MIN(since), 0) FROM (SELECT t.first_sent_at AS since FROM charges t WHERE t.next_at > 0 AND t.may_exist = 1 AND t.state = 'wanted' LIMIT 10000) AS counted`},
	{"answer", `SELECT count(*), coalesce(MIN(since), 0) FROM (SELECT t.first_sent_at AS since FROM dispute_answers t WHERE t.next_at > 0 AND t.step = 'unknown' LIMIT 10000) AS counted`},
}

// Unknowns counts the effects whose outcome is unknown.
func (s *Store) Unknowns(ctx context.Context) (list []Unknown, err error) {
	for _, of := range unknownStatements {
		v, since := Unknown{Subject: of.subject}, int64(0)
		if err := s.db.QueryRow(ctx, of.text).Scan(&v.Count, &since); err != nil {
			return nil, s.db.ReadError("unknown outcomes", err)
		}
		v.Since = atMicros(since)
		list = append(list, v)
	}
	return list, nil
}

// Backlog is what waits to be delivered.
type Backlog struct {
	Deliveries int64 // attempts that are to come, at most 10,000 per merchant
	Events     int64 // that have no delivery yet to an enabled endpoint
	Endpoints  int64 // enabled, and not failing
	Failing    int64 // enabled, and the last attempt failed
	Disabled   int64
}

// WebhookBacklog counts what waits to be delivered, and the endpoints by their health.
func (s *Store) WebhookBacklog(ctx context.Context) (v Backlog, err error) {
	err = s.db.QueryRow(ctx, fmt.Sprintf(`SELECT CAST(coalesce(SUM(n), 0) AS BIGINT) FROM (SELECT (SELECT count(*) FROM (
		SELECT 1 FROM deliveries t WHERE t.merchant_id = m.id AND t.next_at > 0 LIMIT %d) AS counted) AS n FROM merchants m) AS merchant`, countedMost)).Scan(&v.Deliveries)
	if err == nil {
		err = s.db.QueryRow(ctx, `SELECT CAST(coalesce(SUM(CASE WHEN t.enabled = 1 THEN coalesce((SELECT c.last_number FROM event_counters c WHERE c.merchant_id = t.merchant_id), 0) - t.position ELSE 0 END), 0) AS BIGINT),
			coalesce(SUM(CASE WHEN t.enabled = 1 AND t.failures = 0 THEN 1 ELSE 0 END), 0), coalesce(SUM(CASE WHEN t.enabled = 1 AND t.failures > 0 THEN 1 ELSE 0 END), 0),
			coalesce(SUM(CASE WHEN t.enabled = 0 THEN 1 ELSE 0 END), 0) FROM webhook_endpoints t`).Scan(&v.Events, &v.Endpoints, &v.Failing, &v.Disabled)
	}
	return v, s.db.ReadError("webhook backlog", err)
}

// AllBalances adds up the balances of all merchants and the platform, by account.
func (s *Store) AllBalances(ctx context.Context) (ledger.Balances, error) {
	type sum struct {
		account ledger.Account
		balance money.Cents
	}
	rows, err := s.db.Query(ctx, "SELECT account, CAST(SUM(balance) AS BIGINT) FROM balances GROUP BY account")
	list, err := db.Collect(rows, err, func(r db.Scanner) (v sum, err error) {
		return v, r.Scan(textDest[ledger.Account]{&v.account}, &v.balance)
	})
	all := ledger.Balances{}
	for _, v := range list {
		all[v.account] = v.balance
	}
	return all, s.db.ReadError("balances", err)
}
