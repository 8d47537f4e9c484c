package checker

// Parts of corrupting statements.
const (
	ofDone     = " WHERE payout_id = (SELECT id FROM payouts WHERE reference_id = 'out-done')"
	ofSent     = " WHERE payout_id = (SELECT id FROM payouts WHERE reference_id = 'out-sent')"
	addPosting = "INSERT INTO postings (entry_number, entry_hash, number, merchant_id, entry_id, line, kind, subject_id, account, amount, balance_after, created_at, part_id) "
	addSend    = "INSERT INTO payout_sends (merchant_id, payout_id, number, processor, body_hash, node, deadline, outcome, evidence, created_at, ended_at) "
	addCharge  = `INSERT INTO charges (merchant_id, payin_id, number, account, state, may_exist, next_at, attempts, claimed_by, first_sent_at, sent_at, outcome, cause,
		processor_id, created_at, updated_at) `
	restOfCharge = ", 1, 0, '', 0, 0, '', '', '', 1, 1 "
	addEvent     = "INSERT INTO events (merchant_id, number, id, type, subject_id, version, body, created_at) "
	addConsent   = "INSERT INTO consents (account, external_id, transfer_id, state, created_at) "
	addDelivery  = "INSERT INTO deliveries (merchant_id, id, event_number, subject_id, url, state, attempts, schedule_step, next_at, claimed_by, case_id, created_at, updated_at, endpoint_id, restarts) "
	addCase      = "INSERT INTO cases (merchant_id, id, kind, subject_id, amount, params, resolution, created_at, closed_at, stops_payouts, stops_account) "
	addReceipt   = "INSERT INTO receipts (merchant_id, id, payin_id, processor, external_id, order_id, end_to_end_id, amount, applied, cost, entry_number, paid_at, created_at) "
	addPayin     = `INSERT INTO payins (merchant_id, id, external_id, reference_id, method, amount, status, version, processor, processor_id, webhook_url,
		webhook_disabled, details, personal, fingerprint, paid_amount, refunded_amount, disputed_amount, unapplied_amount, fee, end_to_end_id, late, failure, expires_at, paid_at, next_at, created_at, updated_at) `
	restOfPayin = `processor, processor_id, webhook_url, webhook_disabled, details, personal, fingerprint, paid_amount, refunded_amount, disputed_amount, unapplied_amount, fee, end_to_end_id, late,
		failure, expires_at, paid_at, next_at, created_at, updated_at FROM payins WHERE reference_id = 'in-open'`
	cancelOpen = "UPDATE payins SET status = 'CANCELED', version = version + 1, next_at = 0 WHERE reference_id = 'in-open'"
)

// entryOf posts an entry of two lines about the order of a reference ("" for none), with
// its balances.
func entryOf(kind, reference, from, to, amount string) []string {
	subject := "$1"
	if reference != "" {
		subject = "(SELECT id FROM payins WHERE reference_id = '" + reference + "' UNION ALL SELECT id FROM payouts WHERE reference_id = '" + reference + "')"
	}
	var list []string
	for i, account := range []string{from, to} {
		change, line := "- "+amount, "0"
		if i == 1 {
			change, line = "+ "+amount, "1"
		}
		list = append(list,
			addPosting+"SELECT 0, '', 0, merchant_id, $1, "+line+", '"+kind+"', "+subject+", account, 0 "+change+", balance "+change+
				", 1, '' FROM balances WHERE account = '"+account+"'",
			"UPDATE balances SET balance = balance "+change+", postings = postings + 1 WHERE account = '"+account+"'")
	}
	return list
}

// corruptions are changes that no gateway makes; each breaks at least the rule that it
// names. {pending} and {number} are the public id and the number of an event that is not
// delivered yet.
var corruptions = []struct {
	name      string
	invariant Invariant
	words     string
	sql       []string
}{
	{"a posting is rewritten", Ledger, "posting", []string{"UPDATE postings SET amount = amount + 1 WHERE kind = 'payout_paid'"}},
	{"a posting is deleted", Ledger, "was deleted", []string{"DELETE FROM postings WHERE kind = 'payout_paid'"}},
	{"an entry of two kinds", Ledger, "does not continue it", append(entryOf("payout_held", "out-new", "available", "held", "5"),
		addPosting+"SELECT 0, '', -1, merchant_id, $1, 2, 'funded', id, 'available', 1, 1, 1, '' FROM payouts WHERE reference_id = 'out-new'")},
	{"one cent too many", Ledger, "sums to 1", []string{
		addPosting + "SELECT 0, '', 0, merchant_id, $1, 0, 'funded', merchant_id, account, 1, balance + 1, 1, '' FROM balances WHERE account = 'available'",
		"UPDATE balances SET balance = balance + 1, postings = postings + 1 WHERE account = 'available'"}},
	{"a balance without postings", Ledger, "its postings sum to", []string{
		"UPDATE balances SET balance = balance + 1, postings = postings + 1 WHERE account = 'available'"}},
	{"a balance written twice", Ledger, "balance held is written with", []string{"UPDATE balances SET balance = balance WHERE account = 'held'"}},
	{"a balance deleted", Ledger, "balance", []string{"DELETE FROM balances WHERE account = 'fees' OR account = 'held'"}},
	{"a number of the statement missing", Ledger, "has the number 0, not", entryOf("payout_held", "out-new", "available", "held", "5")},
	{"a posting that its balance does not count", Ledger, "postings, not", append(entryOf("payout_held", "out-new", "available", "held", "5"),
		"UPDATE balances SET postings = postings + 1 WHERE account = 'held'")},
	{"a posting with a wrong balance", Ledger, "whose posting says", []string{
		addPosting + "SELECT 0, '', 0, merchant_id, $1, 0, 'funded', merchant_id, account, 1, balance, 1, '' FROM balances WHERE account = 'available'"}},
	{"an entry without a subject", Ledger, "which is not an order", entryOf("payout_held", "", "available", "held", "5")},
	{"an entry continued later", Ledger, "in a later commit", []string{
		addPosting + "SELECT 0, '', 0, merchant_id, entry_id, 2, kind, subject_id, account, 1, 1, 1, '' FROM postings WHERE kind = 'payout_paid' AND line = 0"}},

	{"a charge that begins made", SingleCharge, "begins as made", []string{
		addCharge + "SELECT merchant_id, id, 1, processor, 'made', 1" + restOfCharge + "FROM payins WHERE reference_id = 'in-open'"}},
	{"a second charge", SingleCharge, "charge 2 at bank begins as wanted", []string{
		addCharge + "SELECT merchant_id, id, 2, processor, 'wanted', 1" + restOfCharge + "FROM payins WHERE reference_id = 'in-made'"}},
	{"a charge at another account", SingleCharge, "charge 1 at other begins as", []string{
		addCharge + "SELECT merchant_id, id, 1, 'other', 'wanted', 1" + restOfCharge + "FROM payins WHERE reference_id = 'in-open'"}},
	{"a charge of a payout", SingleCharge, "which is not a pay-in", []string{
		addCharge + "SELECT merchant_id, id, 1, processor, 'wanted', 1" + restOfCharge + "FROM payouts WHERE reference_id = 'out-new'"}},
	{"a charge renumbered", SingleCharge, "was never recorded", []string{"UPDATE charges SET number = 7"}},
	{"a charge made again", SingleCharge, "changes from made to wanted", []string{"UPDATE charges SET state = 'wanted', next_at = 1"}},
	{"a claimed charge that cannot exist", SingleCharge, "is claimed, and may not exist", []string{"UPDATE charges SET claimed_by = merchant_id, may_exist = 0"}},
	{"a made charge that is due", Progress, "is made, and due", []string{"UPDATE charges SET next_at = 1"}},
	{"a charge neither due nor claimed", Progress, "claimed: false", []string{"UPDATE charges SET state = 'cancel'"}},
	{"an ended charge that is due", Progress, "its charge is ended, due at 1", []string{"UPDATE charges SET state = 'ended', next_at = 1"}},
	{"a pay-in that waits for nothing", Progress, "it waits for its charge, which is ended", []string{"UPDATE charges SET state = 'ended'"}},
	{"canceled and charged", Progress, "its charge is made", []string{
		"UPDATE payins SET status = 'CANCELED', version = version + 1, next_at = 0 WHERE reference_id = 'in-made'"}},

	{"a second send while one is undecided", SingleTransfer, "begins while send 1 is accepted", []string{
		addSend + "SELECT merchant_id, payout_id, 2, processor, body_hash, node, deadline, 'intent', '', created_at, 0 FROM payout_sends" + ofSent}},
	{"a send of other contents", SingleTransfer, "has other contents", []string{
		"UPDATE payout_sends SET outcome = 'not_found'" + ofSent,
		addSend + "SELECT merchant_id, payout_id, 2, processor, node, node, deadline, 'intent', '', created_at, 0 FROM payout_sends" + ofSent}},
	{"a send to another processor", SingleTransfer, "goes to processor other", []string{
		addSend + "SELECT merchant_id, payout_id, 2, 'other', body_hash, node, deadline, 'intent', '', created_at, 0 FROM payout_sends" + ofSent}},
	{"an accepted send becomes not sent", SingleTransfer, "changes from accepted to not_sent", []string{"UPDATE payout_sends SET outcome = 'not_sent'" + ofSent}},
	{"a decided send becomes unknown", SingleTransfer, "changes from paid to unknown", []string{"UPDATE payout_sends SET outcome = 'unknown'" + ofDone}},
	{"a send deleted", SingleTransfer, "send", []string{"DELETE FROM payout_sends" + ofSent}},
	{"the contents of a send rewritten", SingleTransfer, "was rewritten", []string{"UPDATE payout_sends SET body_hash = node" + ofSent}},
	{"a later deadline", SingleTransfer, "gets a later deadline", []string{"UPDATE payout_sends SET deadline = deadline + 1" + ofSent}},
	{"an earlier deadline of a decided send", SingleTransfer, "gets a later deadline, or another outcome", []string{"UPDATE payout_sends SET deadline = deadline - 1" + ofDone}},
	{"completed without proof", SingleTransfer, "nothing proves the status", []string{
		"UPDATE payouts SET status = 'COMPLETED', step = 'done', next_at = 0, version = version + 1 WHERE reference_id = 'out-sent'"}},
	{"released without proof", SingleTransfer, "nothing proves the status", append(entryOf("payout_released", "out-sent", "held", "available", "700"),
		"UPDATE payouts SET status = 'FAILED', step = 'done', next_at = 0, version = version + 1 WHERE reference_id = 'out-sent'")},
	{"a send that begins paid", SingleTransfer, "send 1 begins as paid", []string{
		addSend + "SELECT merchant_id, id, 1, processor, fingerprint, id, 1, 'paid', '', 1, 1 FROM payouts WHERE reference_id = 'out-new'"}},
	{"a send without a payout", SingleTransfer, "which is not a payout", []string{"UPDATE payout_sends SET payout_id = $1" + ofSent}},
	{"a send renumbered", SingleTransfer, "was never recorded", []string{"UPDATE payout_sends SET number = 7" + ofSent}},
	{"sending, but not claimed", Progress, "is being sent", []string{"UPDATE payouts SET step = 'intent' WHERE reference_id = 'out-sent'"}},
	{"final and due", Progress, "step done is due", []string{"UPDATE payouts SET next_at = 1 WHERE reference_id = 'out-done'"}},
	{"sending without an intent", SingleTransfer, "step is intent", []string{
		"UPDATE payouts SET status = 'PROCESSING', step = 'intent', next_at = 0, claimed_by = id, version = version + 1 WHERE reference_id = 'out-new'"}},
	{"a second consent", SingleTransfer, "consent to T2 after that to T1", []string{
		"UPDATE consents SET external_id = 'x'",
		addConsent + "SELECT processor, external_id, 'T2', 'given', 1 FROM payouts WHERE reference_id = 'out-asked'"}},
	{"consent to a payout that is not sent", SingleTransfer, "but the payout is not being sent", []string{
		addConsent + "SELECT processor, external_id, 'T9', 'given', 1 FROM payouts WHERE reference_id = 'out-waiting'"}},
	{"a payout that is not paid without a question", SingleTransfer, "is said to be paid without a question", []string{
		addConsent + "SELECT processor, external_id, '', 'not_asked', 1 FROM payouts WHERE reference_id = 'out-waiting'"}},
	{"an unknown consent", SingleTransfer, "the consent is \"maybe\"", []string{
		addConsent + "SELECT processor, external_id, 'T9', 'maybe', 1 FROM payouts WHERE reference_id = 'out-waiting'"}},
	{"a consent at a bank that does not ask", SingleTransfer, "does not ask", []string{
		addConsent + "SELECT processor, external_id, 'T9', 'given', 1 FROM payouts WHERE reference_id = 'out-sent'"}},
	{"a consent deleted", SingleTransfer, "consent", []string{"DELETE FROM consents"}},
	{"canceled after it was sent", SingleTransfer, "is undecided", []string{
		"UPDATE payouts SET status = 'CANCELED', step = 'done', next_at = 0, version = version + 1 WHERE reference_id = 'out-sent'"}},

	{"a hold released twice", Amounts, "entries payout_released sum to 800", entryOf("payout_released", "out-failed", "held", "available", "400")},
	{"a hold without a payout", Amounts, "in flight sum to", entryOf("payout_held", "out-done", "available", "held", "1")},
	{"more held than there was", Amounts, "available is -", entryOf("payout_held", "out-new", "available", "held", "10000000")},
	{"debt beside available money", Amounts, "is owed while", []string{
		addPosting + "SELECT 0, '', 0, merchant_id, $1, 0, 'dispute_opened', id, 'owed', -5, -5, 1, '' FROM payins WHERE reference_id = 'in-paid'",
		addPosting + "SELECT 0, '', 0, merchant_id, $1, 1, 'dispute_opened', (SELECT id FROM payins WHERE reference_id = 'in-paid'), account, 5, balance + 5, 1, '' FROM balances WHERE account = 'disputed'"}},
	{"a dispute won without an entry", Amounts, "open disputes sum to 0", []string{"UPDATE disputes SET status = 'WON'"}},
	{"a paid amount decreased", Amounts, "paid amount changes from 10000 to 9999", []string{"UPDATE payins SET paid_amount = 9999, version = version + 1 WHERE reference_id = 'in-paid'"}},
	{"refunded with too little", Amounts, "5 of 10000 is refunded", []string{
		"UPDATE payins SET status = 'REFUNDED', refunded_amount = 5, version = version + 1 WHERE reference_id = 'in-paid'"}},
	{"partially refunded with all", Amounts, "10000 of 10000 is refunded", []string{
		"UPDATE payins SET status = 'PARTIALLY_REFUNDED', refunded_amount = paid_amount, version = version + 1 WHERE reference_id = 'in-paid'"}},
	{"paid and refunded at once", States, "paid and refunded", []string{
		"UPDATE payins SET paid_amount = 2, refunded_amount = 1, version = version + 1 WHERE reference_id = 'in-open'"}},
	{"a returned amount decreased", Amounts, "returned amount changes from 5 to 4", []string{
		"UPDATE payouts SET returned_amount = 5, version = version + 1 WHERE reference_id = 'out-done'",
		"UPDATE payouts SET returned_amount = 4, version = version + 1 WHERE reference_id = 'out-done'"}},
	{"paid in the same version", States, "in the same version", []string{"UPDATE payins SET paid_amount = amount WHERE reference_id = 'in-open'"}},
	{"paid without a receipt", Incoming, "receipts say 0", []string{
		"UPDATE payins SET paid_amount = amount, status = 'PAID', next_at = 0, version = version + 1 WHERE reference_id = 'in-open'"}},
	{"more returned than was sent", Amounts, "2001 of 2000 is returned", []string{
		"UPDATE payouts SET returned_amount = 2001, version = version + 1 WHERE reference_id = 'out-done'"}},
	{"returned without an entry", Amounts, "entries payout_returned sum to 0, not 5", []string{
		"UPDATE payouts SET returned_amount = 5, version = version + 1 WHERE reference_id = 'out-done'"}},

	{"an order deleted", SingleOrder, "was deleted", []string{"DELETE FROM payins WHERE reference_id = 'in-open'"}},
	{"a reference rewritten", SingleOrder, "was rewritten", []string{"UPDATE payins SET reference_id = 'x' WHERE reference_id = 'in-open'"}},
	{"an amount rewritten", SingleOrder, "was rewritten", []string{"UPDATE payouts SET amount = amount + 1 WHERE reference_id = 'out-new'"}},
	{"an external id rewritten", SingleOrder, "was rewritten", []string{"UPDATE payouts SET external_id = 'x' WHERE reference_id = 'out-new'"}},
	{"two orders of one reference", SingleOrder, "belongs to order", []string{
		addPayin + "SELECT merchant_id, $1, 'x' || substr(external_id, 2), reference_id, method, amount, status, version, " + restOfPayin}},
	{"an external id of two orders", SingleOrder, "external id", []string{
		addPayin + "SELECT $1, id, external_id, reference_id, method, amount, status, version, " + restOfPayin}},
	{"an id rewritten", SingleOrder, "was never created", []string{"UPDATE payins SET id = $1 WHERE reference_id = 'in-open'"}},
	{"an order that begins paid", States, "begins with", []string{
		addPayin + "SELECT merchant_id, $1, 'x' || substr(external_id, 2), 'other', method, amount, 'PAID', version, " + restOfPayin}},

	{"a final status left", States, "must not change to COMPLETED", []string{"UPDATE payouts SET status = 'COMPLETED', version = version + 1 WHERE reference_id = 'out-failed'"}},
	{"a status without a version", States, "in the same version", []string{"UPDATE payins SET status = 'CANCELED', next_at = 0 WHERE reference_id = 'in-open'"}},
	{"a version skipped", States, "version changes from 1 to 3", []string{"UPDATE payins SET status = 'CANCELED', version = version + 2, next_at = 0 WHERE reference_id = 'in-open'"}},
	{"a version decreased", States, "version changes from", []string{"UPDATE payins SET version = version - 1 WHERE reference_id = 'in-paid'"}},
	{"late without a reason", States, "late is true", []string{"UPDATE payins SET late = 1 WHERE reference_id = 'in-paid'"}},
	{"late, paid in time", States, "late is true", []string{
		"UPDATE payins SET status = 'EXPIRED', version = version + 1, next_at = 0, updated_at = expires_at WHERE reference_id = 'in-open'",
		"UPDATE payins SET status = 'PAID', version = version + 1, late = 1, paid_at = expires_at - 1 WHERE reference_id = 'in-open'"}},
	{"a dispute that begins won", States, "begins as WON", []string{
		"INSERT INTO disputes (merchant_id, id, payin_id, processor, external_id, payment_id, return_id, kind, reason, amount, taken, taken_from, returned, lost, status, version, blocked, accepted, respond_by, submitted_at, closed_at, remind_at, created_at, updated_at) SELECT merchant_id, $1, id, 'bank', 'D', '', '', 'MED', '', 1, 0, '', 0, 0, 'WON', 1, 0, 0, 0, 0, 0, 0, 1, 1 FROM payins WHERE reference_id = 'in-paid'"}},
	{"a dispute of another id", States, "was never opened", []string{"UPDATE disputes SET id = $1"}},
	{"disputed without a dispute", States, "0 is in open disputes", []string{"UPDATE payins SET status = 'DISPUTED', version = version + 1 WHERE reference_id = 'in-paid'"}},
	{"a dispute reversed while open", States, "changes from OPEN to REVERSED", []string{"UPDATE disputes SET status = 'REVERSED'"}},
	{"a dispute rewritten", States, "dispute", []string{"UPDATE disputes SET amount = amount + 1"}},
	{"canceled and still queued", States, "step is queued", []string{
		"UPDATE payouts SET status = 'CANCELED', version = version + 1 WHERE reference_id = 'out-new'"}},

	{"a change without an event", Events, "has no event payin.canceled", []string{cancelOpen}},
	{"an event without a change", Events, "reports no change", []string{
		addEvent + "SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, type, subject_id, version, body, created_at FROM events WHERE number = 1"}},
	{"a gap in the numbers", Events, "has number", []string{
		addEvent + "SELECT merchant_id, (SELECT max(number) + 2 FROM events), $1, type, subject_id, version, body, created_at FROM events WHERE number = 1"}},
	{"the wrong event", Events, "has no event payin.canceled", []string{cancelOpen,
		addEvent + "SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, 'payin.expired', id, version, personal, created_at FROM payins WHERE reference_id = 'in-open'"}},
	{"the sealed value of another column", Events, "not sealed for this row and column", []string{cancelOpen,
		addEvent + "SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, 'payin.canceled', id, version, personal, created_at FROM payins WHERE reference_id = 'in-open'"}},
	{"an event without a subject", Events, "which is not an order", []string{
		addEvent + "SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, type, $1, version, body, created_at FROM events WHERE number = 1"}},
	{"the end of no batch", Events, "which is not a batch", []string{
		addEvent + "SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, 'payout_batch.completed', $1, version, body, created_at FROM events WHERE number = 1"}},
	{"a body that is too short", Events, "not sealed for this row and column", []string{cancelOpen,
		addEvent + "SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, 'payin.canceled', id, version, id, created_at FROM payins WHERE reference_id = 'in-open'"}},
	{"pay-in events enabled again", Events, "enabled again", []string{
		"UPDATE payins SET webhook_disabled = 1 WHERE reference_id = 'in-open'", "UPDATE payins SET webhook_disabled = 0 WHERE reference_id = 'in-open'"}},
	{"payout events enabled again", Events, "enabled again", []string{
		"UPDATE payouts SET webhook_disabled = 1 WHERE reference_id = 'out-new'", "UPDATE payouts SET webhook_disabled = 0 WHERE reference_id = 'out-new'"}},
	{"a second delivery later", Events, "is not in the event's commit", []string{
		addDelivery + "SELECT merchant_id, $1, event_number, subject_id, url, 'pending', 0, 0, 1, claimed_by, case_id, 1, 1, endpoint_id, 0 FROM deliveries WHERE event_number = 1"}},
	{"delivered and due", Events, "delivered, but due", []string{"UPDATE deliveries SET next_at = 1 WHERE event_number = 1"}},
	{"a delivery of another id", Events, "was never created", []string{"UPDATE deliveries SET id = $1 WHERE event_number = 1"}},
	{"an attempt without a delivery", Events, "which is not a delivery", []string{
		"INSERT INTO delivery_attempts (merchant_id, delivery_id, number, status, latency, error, response, created_at, ended_at) SELECT id, $1, 1, 0, 0, '', '', 1, 0 FROM merchants WHERE name = 'shop'"}},
	{"an event rewritten", Events, "was rewritten", []string{"UPDATE events SET body = id WHERE number = 1"}},
	{"an event deleted", Events, "was deleted", []string{"DELETE FROM events WHERE number = 1"}},
	{"an event sent again without a request", Events, "changes from delivered to pending", []string{
		"UPDATE deliveries SET state = 'pending', next_at = 1 WHERE event_number = 1"}},
	{"delivered without an attempt", Events, "is delivered after 0 attempts", []string{"UPDATE deliveries SET state = 'delivered', next_at = 0 WHERE state = 'pending'"}},
	{"exhausted too soon", Events, "is exhausted after 0 attempts", []string{"UPDATE deliveries SET state = 'exhausted', next_at = 0 WHERE state = 'pending'"}},
	{"disabled without a 410", Events, "is disabled after 0 attempts", []string{"UPDATE deliveries SET state = 'disabled', next_at = 0 WHERE state = 'pending'"}},
	{"events disabled without a 410", Events, "no receiver answered 410", []string{"UPDATE payouts SET webhook_disabled = 1 WHERE reference_id = 'out-new'"}},
	{"a delivery neither due nor claimed", Progress, "claimed: false", []string{"UPDATE deliveries SET next_at = 0 WHERE state = 'pending'"}},
	{"a delivery to another URL", Events, "goes to https://elsewhere.example", []string{"UPDATE deliveries SET url = 'https://elsewhere.example'"}},
	{"a delivery deleted", Events, "was deleted", []string{"DELETE FROM deliveries WHERE state = 'pending'"}},
	{"an attempt without a claim", Events, "by no node that had claimed it", []string{
		"INSERT INTO delivery_attempts (merchant_id, delivery_id, number, status, latency, error, response, created_at, ended_at) SELECT merchant_id, id, 1, 0, 0, '', '', 1, 0 FROM deliveries WHERE state = 'pending'"}},
	{"an attempt at another time", Events, "by no node that had claimed it", []string{
		"UPDATE deliveries SET claimed_by = merchant_id, next_at = 0, attempts = 1, updated_at = 2 WHERE state = 'pending'",
		"INSERT INTO delivery_attempts (merchant_id, delivery_id, number, status, latency, error, response, created_at, ended_at) SELECT merchant_id, id, 1, 0, 0, '', '', 1, 0 FROM deliveries WHERE state = 'pending'",
		"UPDATE deliveries SET claimed_by = '', next_at = 1 WHERE state = 'pending'"}},
	{"a claimed delivery claimed again", Events, "is claimed for attempt 1, and becomes attempt 2", []string{
		"UPDATE deliveries SET claimed_by = merchant_id, next_at = 0, attempts = 1 WHERE state = 'pending'",
		"UPDATE deliveries SET attempts = 2 WHERE state = 'pending'"}},
	{"a claim that counts no attempt", Events, "counts 0 attempts, but made 1", []string{
		"UPDATE deliveries SET claimed_by = merchant_id, next_at = 0 WHERE state = 'pending'"}},
	{"an interrupted attempt without a record", Events, "counts 1 attempts, but made 0", []string{
		"UPDATE deliveries SET claimed_by = merchant_id, next_at = 0, attempts = 1 WHERE state = 'pending'",
		"UPDATE deliveries SET claimed_by = '', next_at = 1 WHERE state = 'pending'"}},
	{"an attempt miscounted", Events, "counts 2 attempts, but made 1", []string{"UPDATE deliveries SET attempts = 2 WHERE event_number = 1"}},
	{"an attempt rewritten", Events, "is changed", []string{"UPDATE delivery_attempts SET status = 204"}},
	{"an attempt deleted", Events, "is changed", []string{"DELETE FROM delivery_attempts"}},

	{"a payment booked twice", SingleReceipt, "has receipts", []string{
		addReceipt + "SELECT merchant_id, $1, payin_id, processor, external_id, order_id, end_to_end_id, amount, applied, cost, entry_number, paid_at, created_at FROM receipts WHERE external_id = 'A'"}},
	{"a receipt without a claim", SingleReceipt, "claimed is false", []string{
		addReceipt + "SELECT merchant_id, $1, payin_id, processor, 'Z', order_id, end_to_end_id, amount, applied, cost, entry_number, paid_at, created_at FROM receipts WHERE external_id = 'A'"}},
	{"a claim without a receipt", SingleReceipt, "stored is false", []string{
		"INSERT INTO receipt_claims (processor, external_id, merchant_id, receipt_id) SELECT 'bank', 'Z', id, $1 FROM merchants WHERE name = 'shop'"}},
	{"a receipt of another payment", SingleReceipt, "is claimed as Y", []string{
		"INSERT INTO receipt_claims (processor, external_id, merchant_id, receipt_id) SELECT 'bank', 'Y', id, $1 FROM merchants WHERE name = 'shop'",
		addReceipt + "SELECT merchant_id, $1, payin_id, processor, 'Z', order_id, end_to_end_id, 7, 0, 0, entry_number, paid_at, created_at FROM receipts WHERE external_id = 'A'"}},
	{"a receipt of two payments", SingleReceipt, "claims a second payment", []string{
		"INSERT INTO receipt_claims (processor, external_id, merchant_id, receipt_id) SELECT 'bank', 'Z', merchant_id, id FROM receipts WHERE external_id = 'A'"}},
	{"a receipt of a payout", Incoming, "which is not a pay-in", []string{
		addReceipt + "SELECT merchant_id, $1, id, processor, 'Z', external_id, '', 7, 7, 0, 0, 1, 1 FROM payouts WHERE reference_id = 'out-new'"}},
	{"a receipt that names another order", Incoming, "names", []string{
		addReceipt + "SELECT merchant_id, $1, id, processor, 'Z', 'x', '', 7, 7, 0, 0, 1, 1 FROM payins WHERE reference_id = 'in-open'"}},
	{"a claim deleted", SingleReceipt, "was deleted", []string{"DELETE FROM receipt_claims WHERE external_id = 'A'"}},
	{"a receipt rewritten", SingleReceipt, "was rewritten", []string{"UPDATE receipts SET amount = amount + 1 WHERE external_id = 'A'"}},
	{"a receipt deleted", SingleReceipt, "was deleted", []string{"DELETE FROM receipts WHERE external_id = 'A'"}},
	{"money received without an entry", Incoming, "is booked", []string{
		"INSERT INTO receipt_claims (processor, external_id, merchant_id, receipt_id) SELECT 'bank', 'Z', id, $1 FROM merchants WHERE name = 'shop'",
		addReceipt + "SELECT merchant_id, $1, payin_id, processor, 'Z', order_id, end_to_end_id, 7, 0, 0, entry_number, paid_at, created_at FROM receipts WHERE external_id = 'A'"}},
	{"a surplus without a case", Incoming, "cases report 500 of a surplus of 507", []string{
		"INSERT INTO receipt_claims (processor, external_id, merchant_id, receipt_id) SELECT 'bank', 'Z', id, $1 FROM merchants WHERE name = 'shop'",
		addReceipt + "SELECT merchant_id, $1, payin_id, processor, 'Z', order_id, end_to_end_id, 7, 0, 0, entry_number, paid_at, created_at FROM receipts WHERE external_id = 'A'"}},
	{"money that fits no order without a case", Incoming, "fits no order", []string{
		"INSERT INTO receipt_claims (processor, external_id, merchant_id, receipt_id) SELECT 'bank', 'Z', id, $1 FROM merchants WHERE name = 'shop'",
		addReceipt + "SELECT merchant_id, $1, payin_id, processor, 'Z', order_id, end_to_end_id, 7, 0, 0, entry_number, paid_at, created_at FROM receipts WHERE external_id = 'C'"}},
	{"a notice deleted", Incoming, "notice", []string{"DELETE FROM notices"}},
	{"a notice neither due nor claimed", Progress, "notice bank/n1 is due at 0", []string{"UPDATE notices SET next_at = 0"}},
	{"a notice applied and due", Progress, "is applied, due at", []string{"UPDATE notices SET state = 'applied'"}},
	{"a dead letter without a case", Progress, "no case is opened", []string{"UPDATE notices SET state = 'dead_letter', next_at = 0"}},

	{"a payout neither due nor claimed", Progress, "claimed: false", []string{"UPDATE payouts SET next_at = 0 WHERE reference_id = 'out-sent'"}},
	{"a manual review without a case", Progress, "no case is open", []string{"UPDATE payouts SET step = 'manual_review', next_at = 0 WHERE reference_id = 'out-sent'"}},
	{"a pay-in that never expires", Progress, "is due at 0", []string{"UPDATE payins SET next_at = 0 WHERE reference_id = 'in-open'"}},
	{"a case about damage that no fault made", Progress, "is damaged, but none was", []string{
		addCase + `SELECT merchant_id, $1, 'damaged', id, 0, '{"table":"payouts"}', '', 1, 0, 0, '' FROM payouts WHERE reference_id = 'out-new'`}},
	{"a case deleted", Progress, "was deleted", []string{"DELETE FROM cases"}},
	{"a case rewritten", Progress, "was rewritten", []string{"UPDATE cases SET amount = 0"}},
	{"a case closed twice", Progress, "after it was closed", []string{"UPDATE cases SET closed_at = 1", "UPDATE cases SET closed_at = 2"}},
	{"a case opened again", Progress, "after it was closed", []string{"UPDATE cases SET closed_at = 1", "UPDATE cases SET closed_at = 0"}},
	{"a case of another id", Progress, "was never opened", []string{"UPDATE cases SET id = $1 WHERE kind = 'overpaid'"}},
	{"a case about a surplus closed without an entry", Incoming, "cases report 0 of a surplus of 500", []string{"UPDATE cases SET closed_at = 1, resolution = 'proof' WHERE kind = 'overpaid'"}},
	{"a case about money of no order closed without an entry", Incoming, "0 of 0 is returned, cases report 0", []string{
		"UPDATE cases SET closed_at = 1, resolution = 'proof' WHERE kind = 'unmatched_receipt'"}},
	{"a resolution rewritten", Progress, "after it was closed", []string{
		addCase + "SELECT merchant_id, $1, 'payout_unknown', id, amount, '{\"reason\":\"x\"}', 'proof', 1, 1, 0, '' FROM payouts WHERE reference_id = 'out-done'",
		"UPDATE cases SET resolution = 'replaced' WHERE kind = 'payout_unknown'"}},
	{"a case with unreadable parameters", Progress, "has parameters", []string{
		addCase + "SELECT merchant_id, $1, 'contradiction', id, amount, 'prose', '', 1, 0, 0, '' FROM payouts WHERE reference_id = 'out-new'"}},
	{"the parameters of a case rewritten", Progress, "was rewritten", []string{"UPDATE cases SET params = '{\"reason\":\"x\"}'"}},
	{"exhausted without a case", Progress, "is exhausted, but has no open case", []string{"UPDATE deliveries SET state = 'exhausted', next_at = 0 WHERE state = 'pending'"}},
	{"a step of the schedule skipped", Events, "changes from schedule step 0 to 2", []string{"UPDATE deliveries SET schedule_step = 2 WHERE state = 'pending'"}},
	{"a schedule that begins again", Events, "changes from schedule step 1 to 0", []string{"UPDATE deliveries SET schedule_step = 0 WHERE event_number = 1"}},
	{"an expiry moved", States, "the expiry changes", []string{"UPDATE payins SET expires_at = expires_at + 1, next_at = next_at + 1 WHERE reference_id = 'in-open'"}},
}
