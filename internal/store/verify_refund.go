package store

import "github.com/porteira/porteira/internal/ledger"

// Lists in SQL.
const (
	kindsRefunded = "('" + string(ledger.Refunded) + "', '" + string(ledger.RefundTakenBack) + "')"
	// disputesHaving are the statuses of disputes that have money of their order.
	disputesHaving = "('OPEN', 'SUBMITTED', 'LOST')"
	countRefunds   = "SELECT count(*) FROM refunds WHERE merchant_id = $1"
)

// refundChecks are the checks of merchantChecks about refunds. $1 is the merchant.
var refundChecks = []check{
	{name: "refunds", proves: "the parts of each refund add up to it, and its status and its postings say what reached the payer",
		count: countRefunds,
		defects: `WITH parts AS (SELECT refund_id, SUM(amount) AS amount, SUM(CASE WHEN outcome = 'paid' THEN amount ELSE 0 END) AS paid,
				SUM(CASE WHEN step <> 'done' THEN 1 ELSE 0 END) AS live FROM refund_parts WHERE merchant_id = $1 GROUP BY refund_id),
			posted AS (SELECT subject_id, SUM(amount) AS amount FROM postings WHERE merchant_id = $1 AND account LIKE 'clearing:%'
				AND kind IN ` + kindsRefunded + ` GROUP BY subject_id)
			SELECT r.id, r.status || ' of ' || CAST(r.amount AS TEXT) || ': refunded ' || CAST(r.refunded_amount AS TEXT) || ', parts ' ||
				CAST(coalesce(p.paid, 0) AS TEXT) || ' of ' || CAST(coalesce(p.amount, 0) AS TEXT) || ', posted ' || CAST(coalesce(l.amount, 0) AS TEXT)
				FROM refunds r LEFT JOIN parts p ON p.refund_id = r.id LEFT JOIN posted l ON l.subject_id = r.id
				WHERE r.merchant_id = $1 AND (coalesce(p.amount, 0) <> r.amount OR coalesce(p.paid, 0) <> r.refunded_amount OR coalesce(l.amount, 0) <> r.refunded_amount
				OR (r.status = 'COMPLETED' AND r.refunded_amount <> r.amount) OR (r.status IN ('PENDING', 'PROCESSING') AND coalesce(p.live, 0) = 0)
				OR (r.status IN ('COMPLETED', 'FAILED') AND coalesce(p.live, 0) > 0))
			UNION ALL SELECT l.subject_id, 'money was refunded for a refund that does not exist' FROM posted l
				WHERE NOT EXISTS (SELECT 1 FROM refunds r WHERE r.merchant_id = $1 AND r.id = l.subject_id)`},

	{name: "disputes", proves: "the disputed amount of each pay-in is what its disputes have, and what they took, returned and lost was posted",
		count: "SELECT count(*) FROM disputes WHERE merchant_id = $1",
		defects: `SELECT id, 'the pay-in has ' || CAST(SUM(shown) AS TEXT) || ', its disputes ' || CAST(SUM(had) AS TEXT) || '; taken ' || CAST(SUM(taken) AS TEXT) || ', posted ' ||
				CAST(SUM(opened) AS TEXT) || '; given back ' || CAST(SUM(won) AS TEXT) || ', posted ' || CAST(SUM(restored) AS TEXT) FROM (
			SELECT id, disputed_amount AS shown, 0 AS had, 0 AS taken, 0 AS opened, 0 AS won, 0 AS restored FROM payins WHERE merchant_id = $1 AND disputed_amount > 0
			UNION ALL SELECT payin_id, 0, CASE WHEN status IN ` + disputesHaving + ` THEN taken - returned ELSE 0 END, taken, 0,
				CASE WHEN status IN ` + disputesHaving + ` THEN returned ELSE taken END, 0 FROM disputes WHERE merchant_id = $1
			UNION ALL SELECT subject_id, 0, 0, 0, CASE WHEN kind = '` + string(ledger.DisputeOpened) + `' THEN amount ELSE 0 END, 0,
				CASE WHEN kind = '` + string(ledger.DisputeWon) + `' THEN -amount ELSE 0 END FROM postings
				WHERE merchant_id = $1 AND account = 'disputed' AND kind IN ('` + string(ledger.DisputeOpened) + `', '` + string(ledger.DisputeWon) + `')
			UNION ALL SELECT subject_id, 0, 0, 0, 0, 0, -amount FROM postings
				WHERE merchant_id = $1 AND account LIKE 'clearing:%' AND kind = '` + string(ledger.ChargebackReversed) + `') AS pair
			GROUP BY id HAVING SUM(shown) <> SUM(had) OR SUM(taken) <> SUM(opened) OR SUM(won) <> SUM(restored)`},

	{name: "refunded", proves: "the refunded amount of each pay-in is what its refunds paid; refunds and chargebacks are never more than what was received, but for refunds that have a case; more than the amount was paid only if it was given back before",
		count: countPayins + " AND refunded_amount > 0",
		defects: `WITH parts AS (SELECT p.payin_id, SUM(CASE WHEN p.outcome = 'paid' AND p.surplus = 0 THEN p.amount - p.unapplied ELSE 0 END) AS refunded,
				SUM(CASE WHEN p.outcome <> 'paid' THEN 0 WHEN p.surplus = 1 THEN p.unapplied ELSE p.amount END) AS given,
				SUM(CASE WHEN p.outcome IN ('paid', 'taken_back') AND p.surplus = 0 THEN p.amount - p.unapplied ELSE 0 END) AS ever
				FROM refund_parts p WHERE p.merchant_id = $1 GROUP BY p.payin_id),
			lost AS (SELECT payin_id, SUM(taken - returned) AS amount FROM disputes WHERE merchant_id = $1 AND status = 'LOST' GROUP BY payin_id),
			received AS (SELECT payin_id, SUM(amount) AS amount FROM receipts WHERE merchant_id = $1 AND length(payin_id) > 0 GROUP BY payin_id)
			SELECT i.id, i.status || ': refunded ' || CAST(i.refunded_amount AS TEXT) || ', refunds ' || CAST(coalesce(p.refunded, 0) AS TEXT) || ', given back or lost ' ||
				CAST(coalesce(p.given, 0) + coalesce(d.amount, 0) AS TEXT) || ' of ' || CAST(coalesce(v.amount, 0) AS TEXT)
				FROM payins i LEFT JOIN parts p ON p.payin_id = i.id LEFT JOIN lost d ON d.payin_id = i.id LEFT JOIN received v ON v.payin_id = i.id
				WHERE i.merchant_id = $1 AND (i.refunded_amount <> coalesce(p.refunded, 0) OR coalesce(p.given, 0) + coalesce(d.amount, 0) > coalesce(v.amount, 0)
					AND p.payin_id IS NOT NULL OR i.paid_amount - i.amount > coalesce(p.ever, 0))`},
}
