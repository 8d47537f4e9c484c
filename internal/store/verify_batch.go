package store

// batchChecks are the checks of batches of payouts. $1 is the merchant.
var batchChecks = []check{
	{name: "batches", proves: "each batch has the payouts and the amount that it was accepted with, and is complete only if all are final",
		count: "SELECT count(*) FROM payout_batches WHERE merchant_id = $1",
		defects: `SELECT id, 'says ' || CAST(SUM(said) AS TEXT) || ' payouts of ' || CAST(SUM(said_amount) AS TEXT) || ', has ' || CAST(SUM(found) AS TEXT) ||
				' of ' || CAST(SUM(amount) AS TEXT) || ', ' || CAST(SUM(open) AS TEXT) || ' in flight, complete: ' || CAST(SUM(complete) AS TEXT) FROM (
			SELECT id, items AS said, amount AS said_amount, 0 AS found, 0 AS amount, 0 AS open, CASE WHEN completed_at > 0 THEN 1 ELSE 0 END AS complete
				FROM payout_batches WHERE merchant_id = $1
			UNION ALL SELECT p.batch_id, 0, 0, CASE WHEN b.id IS NULL OR p.id < b.first_id OR p.id > b.last_id THEN 0 ELSE 1 END, p.amount,
				CASE WHEN p.status IN ` + payoutsInFlight + ` THEN 1 ELSE 0 END, 0 FROM payouts p
				LEFT JOIN payout_batches b ON b.merchant_id = $1 AND b.id = p.batch_id WHERE p.merchant_id = $1 AND length(p.batch_id) > 0) AS pair
			GROUP BY id HAVING SUM(said) <> SUM(found) OR SUM(said_amount) <> SUM(amount) OR (SUM(complete) > 0 AND SUM(open) > 0)`},
}
