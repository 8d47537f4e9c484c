package store

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
)

// DefectsMax bounds how many defects of one check are listed.
const DefectsMax = 100

// Proof is the result of one check of one merchant.
type Proof struct {
	Check   string   `json:"check"`
	Proves  string   `json:"proves"`  // the statement that is true if there are no defects
	Count   int64    `json:"count"`   // rows that were checked
	Defects []Defect `json:"defects"` // at most DefectsMax of them; empty if the check passed
	More    bool     `json:"more"`    // there are more defects than are listed
}

// Defect is a row that violates a check.
type Defect struct {
	ID     string `json:"id"` // of the order, entry, receipt or credential; the name of an account
	Detail string `json:"detail"`
}

// check is one proof: the statement that it proves, how many rows it checks, and the rows that
// violate it as (id, detail). It is one SQL statement, so that it sees one consistent state of a
// busy database, and keeps its snapshot no longer than needed.
type check struct {
	name    string
	proves  string
	count   string
	defects string
	named   bool // ids are names, not UUIDs
}

// Verify checks a merchant's rows, one short read after another, while a gateway may
// be running. With the zero id it checks those of the platform itself, and those that
// belong to no single merchant.
func (s *Store) Verify(ctx context.Context, merchant payment.ID) ([]Proof, error) {
	var proofs []Proof
	err := s.VerifyEach(ctx, merchant, func(p Proof) { proofs = append(proofs, p) })
	return proofs, err
}

// VerifyEach is Verify, but reports each check when it is done: with millions of orders each takes
// some time. Large sorts and joins use the database's temporary files.
func (s *Store) VerifyEach(ctx context.Context, merchant payment.ID, report func(Proof)) error {
	list := merchantChecks
	if merchant.IsZero() {
		list = append(slices.Clip(list), globalChecks...)
	}
	for i := range list {
		p, err := list[i].prove(ctx, s.db, merchant)
		if err != nil {
			return s.db.ReadError("to verify "+list[i].name, err)
		}
		report(p)
	}
	for _, c := range keyedChecks {
		p, err := c.prove(ctx, s.db, s.Keys(), merchant)
		if err != nil {
			return s.db.ReadError("to verify "+c.name, err)
		}
		report(p)
	}
	if !merchant.IsZero() {
		return nil
	}
	p, err := proveAudit(ctx, s.db, s.Keys())
	if err != nil {
		return s.db.ReadError("to verify the audit", err)
	}
	report(p)
	return nil
}

// querier reads rows: a database, or a transaction.
type querier interface {
	Query(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRow(ctx context.Context, text string, args ...any) *sql.Row
}

// keyedChecks need the master key, so SQL alone cannot run them.
var keyedChecks = []struct {
	name  string
	prove func(ctx context.Context, q querier, keys *db.Keyring, merchant payment.ID) (Proof, error)
}{
	{"orders", proveOrders},
	{"receivables", proveReceivables},
	{"rows", proveOpens},
	{"chain", proveEntries},
	{"hashes", proveAuthentic},
	{"decisions", proveDecisions},
	{"credentials", proveCredentials},
}

func (c *check) prove(ctx context.Context, q querier, merchant payment.ID) (Proof, error) {
	p := Proof{Check: c.name, Proves: c.proves, Defects: []Defect{}}
	if err := q.QueryRow(ctx, c.count, merchant[:]).Scan(&p.Count); err != nil {
		return p, err
	}
	rows, err := q.Query(ctx, c.defects+" LIMIT $2", merchant[:], DefectsMax+1)
	list, err := db.Collect(rows, err, func(r db.Scanner) (Defect, error) {
		var id []byte
		var v Defect
		err := r.Scan(&id, &v.Detail)
		if v.ID = string(id); !c.named {
			v.ID = idOf(id).String()
		}
		return v, err
	})
	if p.More = len(list) > DefectsMax; p.More {
		list = list[:DefectsMax]
	}
	p.Defects = append(p.Defects, list...)
	return p, err
}

// Lists in SQL.
const (
	payoutsInFlight = "('PENDING', 'PROCESSING')"
	payoutsPaid     = "('COMPLETED', 'RETURNED')"
	payoutsReleased = "('FAILED', 'CANCELED')"
	payinsPaid      = "('PAID', 'PARTIALLY_REFUNDED', 'REFUNDED', 'DISPUTED', 'CHARGEBACK')"
	kindsKept       = "('" + string(ledger.ReceivedUnapplied) + "', '" + string(ledger.ReceivedUnidentified) + "')"
	kindsApplied    = "('" + string(ledger.Received) + "', '" + string(ledger.ReceivedPending) + "')"
	casesUnapplied  = "('" + string(CaseOverpaid) + "', '" + string(CaseUnmatchedReceipt) + "')"
	disputesLive    = "('OPEN', 'SUBMITTED')"
	countPostings   = "SELECT count(*) FROM postings WHERE merchant_id = $1"
	countPayouts    = "SELECT count(*) FROM payouts WHERE merchant_id = $1"
	countPayins     = "SELECT count(*) FROM payins WHERE merchant_id = $1"
	countReceipts   = "SELECT count(*) FROM receipts WHERE merchant_id = $1"
	countEvents     = "SELECT count(*) FROM events WHERE merchant_id = $1"
)

// resolvedByOperator are the resolutions of operators, in SQL.
var resolvedByOperator = func() string {
	list := make([]string, len(OperatorResolutions))
	for i, how := range OperatorResolutions {
		list[i] = "'" + string(how) + "'"
	}
	return "(" + strings.Join(list, ", ") + ")"
}()

// merchantChecks run for each merchant. $1 is the merchant.
var merchantChecks = slices.Concat([]check{
	{name: "balances", proves: "each balance is the sum of its account's postings", named: true,
		count: countPostings,
		defects: `SELECT account, 'stored ' || CAST(SUM(stored) AS TEXT) || ', postings add up to ' || CAST(SUM(posted) AS TEXT) FROM (
			SELECT account, balance AS stored, 0 AS posted FROM balances WHERE merchant_id = $1
			UNION ALL SELECT account, 0, amount FROM postings WHERE merchant_id = $1) AS pair
			GROUP BY account HAVING SUM(stored) <> SUM(posted) ORDER BY account`},

	{name: "signs", proves: "no balance has a forbidden sign, and each account is one that a recipe posts to", named: true,
		count: "SELECT count(*) FROM balances WHERE merchant_id = $1",
		defects: `SELECT account, 'forbidden balance ' || CAST(balance AS TEXT) FROM balances WHERE merchant_id = $1 AND NOT (account LIKE 'clearing:_%' OR account = 'written_off'
			OR (account IN ('owed', 'costs') AND balance <= 0)
			OR (account IN ('available', 'pending', 'held', 'disputed', 'unapplied', 'fees') AND balance >= 0)
			OR (account = 'unidentified' AND balance >= 0 AND merchant_id IN (SELECT id FROM merchants WHERE number = 0)))`},

	{name: "trail", proves: "each posting continues from the balance after another one", named: true,
		count: countPostings,
		defects: `SELECT account, 'no posting ends at ' || CAST(balance AS TEXT) || ', from which another continues' FROM (
			SELECT account, balance_after - amount AS balance FROM postings WHERE merchant_id = $1
			EXCEPT SELECT account, balance_after FROM postings WHERE merchant_id = $1) AS begun
			WHERE balance <> 0 ORDER BY account, balance`},

	{name: "statement", proves: "the postings of the merchant's own accounts are numbered without gaps, and each balance counts its postings", named: true,
		count: countPostings + " AND account IN " + statementAccounts,
		defects: `SELECT account, 'counts ' || CAST(SUM(counted) AS TEXT) || ' postings, there are ' || CAST(SUM(found) AS TEXT) FROM (
			SELECT account, postings AS counted, 0 AS found FROM balances WHERE merchant_id = $1
			UNION ALL SELECT account, 0, 1 FROM postings WHERE merchant_id = $1) AS pair
			GROUP BY account HAVING SUM(counted) <> SUM(found)
			UNION ALL SELECT account, 'its last number is ' || CAST(MAX(number) AS TEXT) || ', it has ' || CAST(count(*) AS TEXT) || ' postings' FROM postings
				WHERE merchant_id = $1 AND account NOT IN ` + statementAccounts + ` GROUP BY account HAVING MAX(number) <> count(*) OR MIN(number) <> 1
			UNION ALL SELECT 'statement', 'its numbers are ' || CAST(first AS TEXT) || ' to ' || CAST(last AS TEXT) || ', ' || CAST(numbers AS TEXT) || ' different ones, of ' || CAST(found AS TEXT) || ' postings' FROM (
				SELECT coalesce(MIN(number), 1) AS first, coalesce(MAX(number), 0) AS last, count(DISTINCT number) AS numbers, count(*) AS found FROM postings
				WHERE merchant_id = $1 AND account IN ` + statementAccounts + `) AS numbered WHERE first <> 1 OR last <> found OR numbers <> found`},

	{name: "entries", proves: "each entry has two or more postings that add up to zero",
		count: "SELECT count(DISTINCT entry_id) FROM postings WHERE merchant_id = $1",
		defects: `SELECT entry_id, CAST(count(*) AS TEXT) || ' postings that add up to ' || CAST(SUM(amount) AS TEXT) FROM postings
			WHERE merchant_id = $1 GROUP BY entry_id HAVING SUM(amount) <> 0 OR count(*) < 2 ORDER BY entry_id`},

	{name: "held", proves: "the held balance is the sum of the payouts and refunds in flight", named: true,
		count: countPayouts + " AND status IN " + payoutsInFlight,
		defects: `SELECT 'held', 'stored ' || CAST(stored AS TEXT) || ', payouts and refunds in flight need ' || CAST(needed AS TEXT) FROM (SELECT
			(SELECT coalesce(SUM(balance), 0) FROM balances WHERE merchant_id = $1 AND account = 'held') AS stored,
			(SELECT coalesce(SUM(amount + fee), 0) FROM payouts WHERE merchant_id = $1 AND status IN ` + payoutsInFlight + `) +
			(SELECT coalesce(SUM(amount), 0) FROM refund_parts WHERE merchant_id = $1 AND step <> 'done') AS needed) AS pair
			WHERE stored <> needed`},

	{name: "limits", proves: "what limits count is the sum of the payouts that neither failed nor were canceled", named: true,
		count: "SELECT count(*) FROM limit_counters WHERE merchant_id = $1",
		defects: `SELECT 'counter ' || CAST(counter AS TEXT) || ' of day ' || CAST(day AS TEXT), 'stored ' || CAST(SUM(stored) AS TEXT) || ' in ' || CAST(SUM(stored_payouts) AS TEXT) ||
				' payouts, counted payouts add up to ' || CAST(SUM(amount) AS TEXT) || ' in ' || CAST(SUM(payouts) AS TEXT) FROM (
			` + countedPayouts(payment.CounterDay) + " UNION ALL " + countedPayouts(payment.CounterNight) + " UNION ALL " +
			countedPayouts(payment.CounterKeyDay) + " UNION ALL " + countedPayouts(payment.CounterKey) + `
			UNION ALL SELECT counter, day, key_hash, 0, 0, amount, payouts, 1 FROM limit_counters WHERE merchant_id = $1) AS pair
			GROUP BY counter, day, key_hash HAVING (SUM(amount) <> SUM(stored) OR SUM(payouts) <> SUM(stored_payouts))
				AND (SUM(kept) = 1 OR day = 0 OR day > (SELECT MIN(c.day) FROM limit_counters c WHERE c.merchant_id = $1 AND c.counter = pair.counter))`},

	// A send that was found after a restore has no node. No node has the id of the platform, which is zero.
	{name: "approvals", proves: "each payout that needed approval was sent only with enough approvals, none by the requester",
		count: countPayouts + " AND approval <> 'none'",
		defects: `SELECT p.id, 'approved by fewer than needed' FROM payouts p
				LEFT JOIN approvals q ON q.merchant_id = $1 AND q.payout_id = p.id AND q.action = 'requested'
				WHERE p.merchant_id = $1 AND p.approval = 'approved' AND (SELECT count(DISTINCT a.actor) FROM approvals a WHERE a.merchant_id = $1
					AND a.payout_id = p.id AND a.action = 'approved' AND a.actor <> coalesce(q.actor, '')) < coalesce(q.needed, 1)
			UNION ALL SELECT p.id, 'sent, and its approval is ' || p.approval FROM payouts p WHERE p.merchant_id = $1 AND p.approval IN ('required', 'rejected')
				AND EXISTS (SELECT 1 FROM payout_sends s WHERE s.merchant_id = $1 AND s.payout_id = p.id
					AND s.node <> (SELECT m.id FROM merchants m WHERE m.number = 0))`},

	{name: "disputed", proves: "the disputed balance is the sum of the open disputes", named: true,
		count: "SELECT count(*) FROM disputes WHERE merchant_id = $1",
		defects: `SELECT 'disputed', 'stored ' || CAST(stored AS TEXT) || ', open disputes contest ' || CAST(needed AS TEXT) FROM (SELECT
			(SELECT coalesce(SUM(balance), 0) FROM balances WHERE merchant_id = $1 AND account = 'disputed') AS stored,
			(SELECT coalesce(SUM(taken - returned), 0) FROM disputes WHERE merchant_id = $1 AND status IN ` + disputesLive + `) AS needed) AS pair
			WHERE stored <> needed`},

	{name: "unapplied", proves: "unapplied and unidentified money is the sum of the open cases about it", named: true,
		count: "SELECT count(*) FROM cases WHERE merchant_id = $1 AND kind IN " + casesUnapplied,
		defects: `SELECT 'unapplied', 'stored ' || CAST(stored AS TEXT) || ', open cases name ' || CAST(needed AS TEXT) FROM (SELECT
			(SELECT coalesce(SUM(balance), 0) FROM balances WHERE merchant_id = $1 AND account IN ('unapplied', 'unidentified')) AS stored,
			(SELECT coalesce(SUM(amount), 0) FROM cases WHERE merchant_id = $1 AND closed_at = 0 AND kind IN ` + casesUnapplied + `) AS needed) AS pair
			WHERE stored <> needed`},

	{name: "surplus", proves: "the unapplied amount of each pay-in is the sum of the open cases about it",
		count: countPayins + " AND unapplied_amount > 0",
		defects: `SELECT id, 'the pay-in has ' || CAST(SUM(shown) AS TEXT) || ', open cases name ' || CAST(SUM(named) AS TEXT) FROM (
			SELECT id, unapplied_amount AS shown, 0 AS named FROM payins WHERE merchant_id = $1 AND unapplied_amount > 0
			UNION ALL SELECT subject_id, 0, amount FROM cases WHERE merchant_id = $1 AND closed_at = 0 AND kind = '` + string(CaseOverpaid) + `') AS pair
			GROUP BY id HAVING SUM(shown) <> SUM(named)`},

	{name: "pending", proves: "the pending balance is the sum of the receivables that have not settled", named: true,
		count: "SELECT count(*) FROM receivables WHERE merchant_id = $1 AND state <> 'settled'",
		defects: `SELECT 'pending', 'stored ' || CAST(stored AS TEXT) || ', receivables add up to ' || CAST(needed AS TEXT) FROM (SELECT
			(SELECT coalesce(SUM(balance), 0) FROM balances WHERE merchant_id = $1 AND account = 'pending') AS stored,
			(SELECT coalesce(SUM(gross - fee - taken), 0) FROM receivables WHERE merchant_id = $1 AND state <> 'settled') AS needed) AS pair
			WHERE stored <> needed`},

	{name: "settled", proves: "of each pay-in, what became available is what its settled receivables say",
		count: "SELECT count(*) FROM receivables WHERE merchant_id = $1",
		defects: `SELECT id, 'receivables settled ' || CAST(SUM(said) AS TEXT) || ', postings have ' || CAST(SUM(posted) AS TEXT) FROM (
			SELECT payin_id AS id, gross - fee - taken AS said, 0 AS posted FROM receivables WHERE merchant_id = $1 AND state = 'settled'
			UNION ALL SELECT subject_id, 0, -amount FROM postings WHERE merchant_id = $1 AND kind = 'settled' AND account = 'pending') AS pair
			GROUP BY id HAVING SUM(said) <> SUM(posted)`},

	{name: "fees", proves: "the fee of each pay-in is what was posted, and not above what was paid",
		count: countPayins,
		defects: `SELECT p.id, 'the fee is ' || CAST(p.fee AS TEXT) || ', postings have ' || CAST(coalesce(f.posted, 0) AS TEXT) || ', paid ' || CAST(p.paid_amount AS TEXT)
			FROM payins p LEFT JOIN (SELECT subject_id, SUM(amount) AS posted FROM postings WHERE merchant_id = $1 AND account = 'fees' GROUP BY subject_id) f
				ON f.subject_id = p.id
			WHERE p.merchant_id = $1 AND (p.fee <> coalesce(f.posted, 0) OR p.fee > p.paid_amount)`},

	{name: "resolutions", proves: "each case that an operator resolved has its decision, and each decision its case",
		count: "SELECT count(*) FROM decisions WHERE merchant_id = $1",
		defects: `SELECT c.id, 'resolved (' || c.resolution || ') without a decision' FROM cases c WHERE c.merchant_id = $1 AND c.resolution IN ` + resolvedByOperator + `
				AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.merchant_id = $1 AND d.case_id = c.id AND d.action IN ('resolved', 'confirmed') AND d.resolution = c.resolution)
			UNION ALL SELECT d.case_id, 'decided (' || d.resolution || '), but the case is not resolved so' FROM decisions d
				WHERE d.merchant_id = $1 AND d.action IN ('resolved', 'confirmed')
				AND NOT EXISTS (SELECT 1 FROM cases c WHERE c.merchant_id = $1 AND c.id = d.case_id AND c.resolution = d.resolution)`},

	{name: "payouts", proves: "each payout's money was held once, and paid or released once, as its status says",
		count: countPayouts,
		defects: `WITH moved AS (SELECT subject_id,
				SUM(CASE WHEN kind = 'payout_held' THEN 1 ELSE 0 END) AS holds,
				SUM(CASE WHEN kind = 'payout_held' THEN amount ELSE 0 END) AS held,
				SUM(CASE WHEN kind = 'payout_paid' THEN 1 ELSE 0 END) AS payments,
				SUM(CASE WHEN kind = 'payout_paid' THEN -amount ELSE 0 END) AS paid,
				SUM(CASE WHEN kind = 'payout_released' THEN 1 ELSE 0 END) AS releases,
				SUM(CASE WHEN kind = 'payout_released' THEN -amount ELSE 0 END) AS released
				FROM postings WHERE merchant_id = $1 AND account = 'held' AND kind IN ('payout_held', 'payout_paid', 'payout_released') GROUP BY subject_id),
			wanted AS (SELECT id, status, amount + fee AS gross,
				CASE WHEN status IN ` + payoutsPaid + ` THEN 1 ELSE 0 END AS payments,
				CASE WHEN status IN ` + payoutsReleased + ` THEN 1 ELSE 0 END AS releases
				FROM payouts WHERE merchant_id = $1)
			SELECT w.id, w.status || ': held ' || CAST(coalesce(m.holds, 0) AS TEXT) || ' times, paid ' || CAST(coalesce(m.payments, 0) AS TEXT) ||
				' times, released ' || CAST(coalesce(m.releases, 0) AS TEXT) || ' times, or with another amount'
				FROM wanted w LEFT JOIN moved m ON m.subject_id = w.id
				WHERE m.subject_id IS NULL OR m.holds <> 1 OR m.held <> w.gross
				OR m.payments <> w.payments OR m.paid <> w.payments * w.gross
				OR m.releases <> w.releases OR m.released <> w.releases * w.gross
			UNION ALL SELECT m.subject_id, 'money was held for a payout that does not exist' FROM moved m
				WHERE NOT EXISTS (SELECT 1 FROM payouts p WHERE p.merchant_id = $1 AND p.id = m.subject_id)`},

	{name: "returns", proves: "the returned amount of each payout is what was posted",
		count: countPayouts + " AND returned_amount > 0",
		defects: `SELECT id, 'the payout has ' || CAST(SUM(said) AS TEXT) || ', postings have ' || CAST(SUM(posted) AS TEXT) FROM (
			SELECT id, returned_amount AS said, 0 AS posted FROM payouts WHERE merchant_id = $1
			UNION ALL SELECT subject_id, 0, -amount FROM postings WHERE merchant_id = $1 AND kind = 'payout_returned' AND account LIKE 'clearing:%') AS pair
			GROUP BY id HAVING SUM(said) <> SUM(posted)`},

	{name: "transfers", proves: "each paid payout has exactly one transfer that was proved paid, with its endToEndId, and no other has one",
		count: countPayouts + " AND status IN " + payoutsPaid,
		defects: `WITH sends AS (SELECT payout_id, SUM(CASE WHEN outcome = 'paid' THEN 1 ELSE 0 END) AS paid,
				SUM(CASE WHEN outcome IN ('intent', 'accepted', 'unknown') THEN 1 ELSE 0 END) AS live
				FROM payout_sends WHERE merchant_id = $1 GROUP BY payout_id)
			SELECT p.id, CASE WHEN p.status IN ` + payoutsPaid + ` AND p.end_to_end_id = '' THEN 'paid without an endToEndId'
				WHEN coalesce(s.live, 0) > 0 THEN p.status || ' with a transfer still undecided'
				ELSE p.status || ' with ' || CAST(coalesce(s.paid, 0) AS TEXT) || ' paid transfers' END
			FROM payouts p LEFT JOIN sends s ON s.payout_id = p.id WHERE p.merchant_id = $1 AND (
				(p.status IN ` + payoutsPaid + ` AND (p.end_to_end_id = '' OR coalesce(s.paid, 0) <> 1))
				OR (p.status NOT IN ` + payoutsPaid + ` AND coalesce(s.paid, 0) > 0)
				OR (p.status NOT IN ` + payoutsInFlight + ` AND coalesce(s.live, 0) > 0))`},

	{name: "payins", proves: "each pay-in's receipts, and what an operator applied to it, add up to its paid amount, and a paid pay-in is paid in full",
		count: countPayins,
		defects: `SELECT p.id, p.status || ': amount ' || CAST(p.amount AS TEXT) || ', paid ' || CAST(p.paid_amount AS TEXT) || ', receipts ' || CAST(coalesce(r.applied, 0) AS TEXT)
			FROM payins p LEFT JOIN (SELECT payin_id, SUM(applied) AS applied FROM (
				SELECT payin_id, applied FROM receipts WHERE merchant_id = $1 UNION ALL SELECT subject_id, -amount FROM postings
					WHERE merchant_id = $1 AND kind = '` + string(ledger.UnappliedApplied) + `' AND account = 'unapplied') AS paid GROUP BY payin_id) r ON r.payin_id = p.id
			WHERE p.merchant_id = $1 AND (p.paid_amount <> coalesce(r.applied, 0)
				OR (p.status IN ` + payinsPaid + ` AND p.paid_amount < p.amount)
				OR (p.status NOT IN ` + payinsPaid + ` AND p.status <> 'FAILED' AND p.paid_amount - p.refunded_amount >= p.amount))`},

	{name: "receipts", proves: "each receipt was posted: the part applied to an order, and the rest as unapplied or unidentified",
		count: countReceipts,
		defects: `SELECT id, 'receipts: ' || CAST(SUM(applied) AS TEXT) || ' applied and ' || CAST(SUM(unapplied) AS TEXT) || ' unapplied; postings: ' ||
				CAST(SUM(posted) AS TEXT) || ' and ' || CAST(SUM(posted_unapplied) AS TEXT) FROM (
			SELECT CASE WHEN length(payin_id) = 0 THEN id ELSE payin_id END AS id, applied, amount - applied AS unapplied, 0 AS posted, 0 AS posted_unapplied
				FROM receipts WHERE merchant_id = $1
			UNION ALL SELECT subject_id, 0, 0, CASE WHEN kind IN ` + kindsApplied + ` THEN -amount ELSE 0 END,
				CASE WHEN kind IN ` + kindsKept + ` THEN -amount ELSE 0 END
				FROM postings WHERE merchant_id = $1 AND account LIKE 'clearing:%' AND (kind IN ` + kindsApplied + ` OR kind IN ` + kindsKept + `)) AS pair
			GROUP BY id HAVING SUM(applied) <> SUM(posted) OR SUM(unapplied) <> SUM(posted_unapplied)`},

	{name: "claims", proves: "each receipt has the one claim on its payment",
		count: countReceipts,
		defects: `SELECT r.id, 'the payment ' || r.external_id || ' is not claimed by this receipt' FROM receipts r WHERE r.merchant_id = $1 AND NOT EXISTS (
			SELECT 1 FROM receipt_claims c WHERE c.processor = r.processor AND c.external_id = r.external_id
				AND c.merchant_id = r.merchant_id AND c.receipt_id = r.id)`},

	{name: "events", proves: "events are numbered from 1 without a gap, up to the counter", named: true,
		count: countEvents,
		defects: `SELECT CAST(e.number AS TEXT), 'the event before this one is missing' FROM events e WHERE e.merchant_id = $1 AND e.number > 1
				AND NOT EXISTS (SELECT 1 FROM events b WHERE b.merchant_id = $1 AND b.number = e.number - 1)
			UNION ALL SELECT 'counter', 'it is ' || CAST(counter AS TEXT) || ', the last event has ' || CAST(last AS TEXT) FROM (SELECT
				(SELECT coalesce(MAX(last_number), 0) FROM event_counters WHERE merchant_id = $1) AS counter,
				(SELECT coalesce(MAX(number), 0) FROM events WHERE merchant_id = $1) AS last) AS pair WHERE counter <> last`},

	{name: "changes", proves: "each change of a payout, and each payment of a pay-in, has one event",
		count: countEvents,
		defects: `SELECT p.id, p.status || ' in version ' || CAST(p.version AS TEXT) || ', events ' || CAST(coalesce(e.n, 0) AS TEXT) 
				FROM payouts p LEFT JOIN (SELECT subject_id, count(DISTINCT version) AS n FROM events WHERE merchant_id = $1 AND type <> 'payout.created' GROUP BY subject_id) e ON e.subject_id = p.id
				WHERE p.merchant_id = $1 AND coalesce(e.n, 0) <> p.version - 1
			UNION ALL SELECT p.id, p.status || ', payin.paid events ' || CAST(coalesce(e.n, 0) AS TEXT)
				FROM payins p LEFT JOIN (SELECT subject_id, count(*) AS n FROM events WHERE merchant_id = $1 AND type = 'payin.paid' GROUP BY subject_id) e ON e.subject_id = p.id
				WHERE p.merchant_id = $1 AND coalesce(e.n, 0) <> CASE WHEN p.status IN ` + payinsPaid + ` THEN 1 ELSE 0 END`},

	{name: "deliveries", proves: "each event of an order with a webhookUrl, but that of its creation, has its delivery, unless it is older than deliveries are kept",
		count: "SELECT count(*) FROM deliveries WHERE merchant_id = $1",
		defects: `SELECT e.id, e.type || ' has no delivery' FROM events e
			LEFT JOIN payins i ON i.merchant_id = e.merchant_id AND i.id = e.subject_id
			LEFT JOIN payouts o ON o.merchant_id = e.merchant_id AND o.id = e.subject_id
			LEFT JOIN refunds r ON r.merchant_id = e.merchant_id AND r.id = e.subject_id
			WHERE e.merchant_id = $1 AND e.type NOT IN ('payin.created', 'payout.created') AND coalesce(i.webhook_url, o.webhook_url, r.webhook_url, '') <> ''
				AND coalesce(i.webhook_disabled, o.webhook_disabled, r.webhook_disabled, 0) = 0
				AND e.created_at >= coalesce((SELECT CAST(value AS BIGINT) FROM settings WHERE name = '` + SettingRemoved + `'), 0)
				AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.merchant_id = e.merchant_id AND d.event_number = e.number)`},
}, refundChecks, batchChecks, causeChecks)

// globalChecks run once, for all merchants ($1 is the zero id, which sorts before
// all others): their tables are distributed by their own keys.
var globalChecks = []check{
	{name: "all claims", proves: "each claim on a payment has its receipt",
		count: "SELECT count(*) FROM receipt_claims WHERE merchant_id >= $1",
		defects: `SELECT c.receipt_id, 'the payment ' || c.external_id || ' is claimed and has no receipt' FROM receipt_claims c
			WHERE c.merchant_id >= $1 AND c.external_id NOT LIKE '` + CostClaim + `%' AND NOT EXISTS (SELECT 1 FROM receipts r
				WHERE r.merchant_id = c.merchant_id AND r.id = c.receipt_id AND r.processor = c.processor AND r.external_id = c.external_id)`},

	{name: "all costs", proves: "each cost that a processor listed was posted once, and no other cost on the platform's accounts, but what its receipts say",
		count: "SELECT count(*) FROM receipt_claims WHERE merchant_id = $1 AND external_id LIKE '" + CostClaim + "%'",
		defects: `SELECT id, 'the cost was posted ' || CAST(SUM(posted) AS TEXT) || ' times, in all ' || CAST(SUM(amount) AS TEXT) || '; receipts have ' || CAST(SUM(said) AS TEXT) FROM (
			SELECT receipt_id AS id, 1 AS claimed, 0 AS posted, 0 AS amount, 0 AS said FROM receipt_claims WHERE merchant_id = $1 AND external_id LIKE '` + CostClaim + `%'
			UNION ALL SELECT id, 0, 0, 0, cost FROM receipts WHERE merchant_id = $1 AND cost > 0
			UNION ALL SELECT subject_id, 0, 1, amount, 0 FROM postings WHERE merchant_id = $1 AND account LIKE 'clearing:%' AND kind IN ('cost_booked', 'cost_returned')) AS pair
			GROUP BY id HAVING SUM(claimed) = 1 AND SUM(posted) <> 1 OR SUM(claimed) = 0 AND SUM(amount) <> SUM(said)`},

	{name: "all assigned", proves: "money that names no order left the platform's accounts for a merchant's, once",
		count: countPostings + " AND account = 'unidentified'",
		defects: `SELECT id, 'moved ' || CAST(SUM(moved) AS TEXT) || ', arrived ' || CAST(SUM(arrived) AS TEXT) FROM (
			SELECT subject_id AS id, -amount AS moved, 0 AS arrived FROM postings WHERE merchant_id = $1 AND account = 'unidentified' AND kind = '` + string(ledger.UnidentifiedMoved) + `'
			UNION ALL SELECT p.subject_id, 0, p.amount FROM merchants m JOIN postings p ON p.merchant_id = m.id AND p.account = 'unapplied'
				WHERE p.kind = '` + string(ledger.UnidentifiedArrived) + `') AS pair GROUP BY id HAVING SUM(moved) <> SUM(arrived)`},
}

// countedBy is [payment.Payout.CountedBy].
const countedBy = "CASE WHEN counted_at > 0 THEN counted_at ELSE created_at END"

// countedPayouts are the payouts of merchant $1 in a counter of limits. A night belongs to the day
// six hours before; old days may have been removed (kept = 0). payouts has the columns of countOf.
func countedPayouts(counter payment.Counters) string {
	bit, key, payouts := strconv.FormatInt(int64(counter), 10), "key_hash", "1"
	day := map[payment.Counters]string{
		payment.CounterDay: "(" + countedBy + " - 10800000000) / 86400000000", payment.CounterNight: "(" + countedBy + " - 32400000000) / 86400000000",
		payment.CounterKeyDay: "(" + countedBy + " - 10800000000) / 86400000000", payment.CounterKey: "0",
	}[counter]
	if counter&payment.ByKey == 0 {
		key = "substr(id, 1, 0)"
	}
	if counter == payment.CounterKey {
		payouts = "CASE WHEN approval IN ('required', 'rejected') THEN 0 ELSE 1 END"
	}
	return "SELECT " + bit + " AS counter, " + day + " AS day, " + key + " AS key_hash, amount, " + payouts + ` AS payouts, 0 AS stored, 0 AS stored_payouts, 0 AS kept
				FROM payouts WHERE merchant_id = $1 AND (counters & ` + bit + ") <> 0 AND status NOT IN " + payoutsReleased
}
