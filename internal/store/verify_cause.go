package store

import (
	"strings"

	"github.com/porteira/porteira/internal/ledger"
)

// Lists in SQL.
const (
	platform       = "(SELECT id FROM merchants WHERE number = 0)"
	kindsFound     = "('" + string(ledger.PayoutFound) + "', '" + string(ledger.PayoutAdopted) + "', '" + string(ledger.FoundReturned) + "', '" + string(ledger.FoundWrittenOff) + "', '" + string(ledger.PayoutRecovered) + "')"
	kindsLate      = "('" + string(ledger.PayoutPaidLate) + "', '" + string(ledger.PayoutWrittenOff) + "')"
	kindsFeesBack  = "('" + string(ledger.FeeRefunded) + "', '" + string(ledger.FeeRecharged) + "')"
	kindsPayoutFee = "('" + string(ledger.PayoutPaid) + "', '" + string(ledger.PayoutPaidLate) + "')"
)

// postingsOfRecipes are the sides and accounts of all recipes, in SQL, as sideOfPosting has them.
var postingsOfRecipes = func() string {
	var list []string
	for i := range ledger.Recipes {
		k := ledger.Recipes[i].Kind
		for _, a := range k.From() {
			list = append(list, "'"+string(k)+"-"+string(a)+"'")
		}
		for _, a := range k.To() {
			list = append(list, "'"+string(k)+"+"+string(a)+"'")
		}
	}
	return "(" + strings.Join(list, ", ") + ")"
}()

const sideOfPosting = "kind || CASE WHEN amount < 0 THEN '-' ELSE '+' END || CASE WHEN account LIKE 'clearing:_%' THEN 'clearing:' ELSE account END"

// FundsCheck is the check that finds money that the operator put in.
const FundsCheck = "funds"

// causeChecks are the checks of merchantChecks that tie entries to their causes. $1 is the merchant.
var causeChecks = []check{
	{name: "recipes", proves: "each entry is of one kind, and takes from and gives to the accounts of its recipe",
		count: countPostings,
		defects: `SELECT entry_id, kind || ' moves ' || CAST(amount AS TEXT) || ' on ' || account FROM postings
				WHERE merchant_id = $1 AND ` + sideOfPosting + " NOT IN " + postingsOfRecipes + `
			UNION ALL SELECT entry_id, 'of two kinds: ' || MIN(kind) || ', ' || MAX(kind) FROM postings
				WHERE merchant_id = $1 GROUP BY entry_id HAVING MIN(kind) <> MAX(kind)`},

	{name: FundsCheck, proves: "only porteira dev credits money that no payer paid",
		count: countPostings + " AND account = 'available' AND kind = '" + string(ledger.Funded) + "'",
		defects: `SELECT entry_id, 'credits ' || CAST(amount AS TEXT) || ', and this is no database of porteira dev' FROM postings
			WHERE merchant_id = $1 AND kind = '` + string(ledger.Funded) + `' AND account NOT LIKE 'clearing:%'
				AND NOT EXISTS (SELECT 1 FROM settings WHERE name = '` + SettingSandbox + `')`},

	{name: "found", proves: "what left outside the life of a payout, and who bears it, is what its found transfer says",
		count: "SELECT count(*) FROM found_transfers WHERE merchant_id = $1",
		defects: `WITH late AS (SELECT p.id AS payout, f.id AS transfer FROM payouts p
				JOIN found_transfers f ON f.merchant_id = $1 AND f.external_id = p.external_id
				WHERE p.merchant_id = $1 AND p.step = 'paid_late' AND p.status IN ` + payoutsReleased + `)
			SELECT id, 'found transfers have ' || CAST(SUM(transfers) AS TEXT) || ', of which ' || CAST(SUM(said) AS TEXT) || ' left and the platform bears ' || CAST(SUM(said_borne) AS TEXT) ||
				'; by the postings ' || CAST(SUM(posted) AS TEXT) || ' left and it bears ' || CAST(SUM(borne) AS TEXT) FROM (
			SELECT f.id AS id, 1 AS transfers, CASE WHEN f.adopted_at = 0 OR l.payout IS NOT NULL THEN f.amount ELSE 0 END AS said,
				CASE WHEN f.written_off = 1 AND (f.adopted_at = 0 OR l.payout IS NOT NULL) THEN f.amount ELSE 0 END AS said_borne, 0 AS posted, 0 AS borne
				FROM found_transfers f LEFT JOIN late l ON l.transfer = f.id WHERE f.merchant_id = $1
			UNION ALL SELECT CASE WHEN s.kind IN ` + kindsLate + ` THEN coalesce(l.transfer, s.subject_id) ELSE s.subject_id END, 0, 0, 0,
				CASE WHEN s.account LIKE 'clearing:%' THEN s.amount ELSE 0 END, CASE WHEN s.account = 'written_off' THEN -s.amount ELSE 0 END
				FROM postings s LEFT JOIN late l ON l.payout = s.subject_id
				WHERE s.merchant_id = $1 AND (s.account LIKE 'clearing:%' OR s.account = 'written_off') AND (s.kind IN ` + kindsFound + ` OR s.kind IN ` + kindsLate + `)) AS pair
			GROUP BY id HAVING SUM(transfers) <> 1 OR SUM(said) <> SUM(posted) OR SUM(said_borne) <> SUM(borne)`},

	{name: "bearers", proves: "the platform bears a transfer only by a decision about its case",
		count: "SELECT count(*) FROM found_transfers WHERE merchant_id = $1",
		defects: `SELECT f.id, 'the platform bears it without a decision' FROM found_transfers f
			LEFT JOIN payouts p ON p.merchant_id = $1 AND p.external_id = f.external_id
			WHERE f.merchant_id = $1 AND f.written_off = 1 AND NOT EXISTS (SELECT 1 FROM cases c JOIN decisions d ON d.merchant_id = $1 AND d.case_id = c.id
				WHERE c.merchant_id = $1 AND (c.subject_id = f.id OR c.subject_id = p.id) AND d.action IN ('resolved', 'confirmed') AND d.resolution = '` + string(ResolvedWriteOff) + `')`},

	{name: "causes", proves: "money that names no order, or exceeds it, is moved only by the resolution of a case, or as its processor gave it back",
		count: countPostings + " AND account IN ('unapplied', 'unidentified')",
		defects: `SELECT id, kind || ' of ' || CAST(amount AS TEXT) || ' was posted ' || CAST(SUM(posted) AS TEXT) || ' times, and has ' || CAST(SUM(caused) AS TEXT) || ' causes' FROM (
			SELECT subject_id AS id, CASE kind WHEN '` + string(ledger.UnidentifiedBack) + `' THEN '` + string(ledger.UnidentifiedReturned) + `' ELSE kind END AS kind, abs(amount) AS amount, 1 AS posted, 0 AS caused
				FROM postings WHERE merchant_id = $1 AND account IN ('unapplied', 'unidentified') AND kind IN ` + kindsCaused +
			causedBy(ledger.UnappliedReleased, casesUnapplied, "resolution = '"+string(ResolvedApply)+"'") +
			causedBy(ledger.UnidentifiedMoved, casesUnapplied, "resolution = '"+string(ResolvedApply)+"'") +
			causedBy(ledger.UnappliedWrittenOff, casesUnapplied, "resolution = '"+string(ResolvedWriteOff)+"'") +
			causedBy(ledger.UnidentifiedKept, casesUnapplied, "resolution = '"+string(ResolvedWriteOff)+"'") +
			causedBy(ledger.UnappliedBack, casesUnapplied, "(params LIKE '%\""+string(ReasonDisputed)+"\"%' OR params LIKE '%\""+string(ReasonGivenBack)+"\"%')") +
			causedBy(ledger.UnidentifiedReturned, "('"+string(CaseRefundUnexpected)+"')", "resolution = '"+string(ResolvedByProof)+"'") + `
			UNION ALL SELECT subject_id, '` + string(ledger.UnidentifiedArrived) + `', -amount, 0, 1 FROM postings
				WHERE merchant_id = ` + platform + ` AND account = 'unidentified' AND kind = '` + string(ledger.UnidentifiedMoved) + `') AS pair
			GROUP BY id, kind, amount HAVING SUM(posted) > SUM(caused)`},

	// Those of the platform are in "all costs".
	{name: "costs", proves: "what processors kept of a merchant's payments is what its receipts say",
		count: countReceipts,
		defects: `SELECT id, 'receipts have ' || CAST(SUM(said) AS TEXT) || ', postings have ' || CAST(SUM(posted) AS TEXT) FROM (
			SELECT CASE WHEN length(payin_id) = 0 THEN id ELSE payin_id END AS id, cost AS said, 0 AS posted FROM receipts WHERE merchant_id = $1 AND merchant_id <> ` + platform + `
			UNION ALL SELECT subject_id, 0, -amount FROM postings WHERE merchant_id = $1 AND merchant_id <> ` + platform + ` AND account = 'costs') AS pair
			GROUP BY id HAVING SUM(said) <> SUM(posted)`},

	{name: "payout fees", proves: "the fee of each payout was charged when it was paid, once",
		count: countPayouts,
		defects: `SELECT p.id, 'the fee is ' || CAST(p.fee AS TEXT) || ', postings have ' || CAST(m.fees AS TEXT) || ' in ' || CAST(m.entries AS TEXT) || ' payments' FROM payouts p
			JOIN (SELECT subject_id, SUM(CASE WHEN account = 'fees' THEN amount ELSE 0 END) AS fees, SUM(CASE WHEN account <> 'fees' THEN 1 ELSE 0 END) AS entries FROM postings
				WHERE merchant_id = $1 AND (account = 'fees' OR account LIKE 'clearing:%') AND kind IN ` + kindsPayoutFee + ` GROUP BY subject_id) m ON m.subject_id = p.id
			WHERE p.merchant_id = $1 AND m.fees <> p.fee * m.entries`},

	{name: "refunded fees", proves: "the fees that refunds gave back are what was posted",
		count: "SELECT count(*) FROM refund_parts WHERE merchant_id = $1",
		defects: `SELECT id, 'refunds have ' || CAST(SUM(said) AS TEXT) || ', postings have ' || CAST(SUM(posted) AS TEXT) FROM (
			SELECT payin_id AS id, fee_refunded AS said, 0 AS posted FROM refund_parts WHERE merchant_id = $1
			UNION ALL SELECT subject_id, 0, -amount FROM postings WHERE merchant_id = $1 AND account = 'fees' AND kind IN ` + kindsFeesBack + `) AS pair
			GROUP BY id HAVING SUM(said) <> SUM(posted)`},
}

const kindsCaused = "('" + string(ledger.UnappliedReleased) + "', '" + string(ledger.UnappliedWrittenOff) + "', '" + string(ledger.UnappliedBack) + "', '" +
	string(ledger.UnidentifiedMoved) + "', '" + string(ledger.UnidentifiedArrived) + "', '" + string(ledger.UnidentifiedKept) + "', '" +
	string(ledger.UnidentifiedReturned) + "', '" + string(ledger.UnidentifiedBack) + "')"

// causedBy are the cases that cause entries of a kind. Money that a merchant was assigned has its case
// on the platform.
func causedBy(kind ledger.Kind, cases, which string) string {
	return `
			UNION ALL SELECT subject_id, '` + string(kind) + `', amount, 0, 1 FROM cases WHERE merchant_id IN ($1, ` + platform + ") AND kind IN " + cases + " AND " + which
}
