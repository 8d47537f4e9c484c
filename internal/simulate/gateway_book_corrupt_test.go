package simulate

// Pieces of corrupting statements.
const (
	ofDone      = " WHERE payout_id = (SELECT id FROM payouts WHERE reference_id = 'out-done')"
	ofSent      = " WHERE payout_id = (SELECT id FROM payouts WHERE reference_id = 'out-sent')"
	addPosting  = "INSERT INTO postings (merchant_id, entry_id, line, kind, subject_id, account, amount, balance_after, created_at) "
	addSend     = "INSERT INTO payout_sends (merchant_id, payout_id, number, processor, body_hash, node, deadline, outcome, evidence, created_at, ended_at) "
	addEvent    = "INSERT INTO events (merchant_id, number, id, type, subject_id, version, body, created_at) "
	addDelivery = "INSERT INTO deliveries (merchant_id, id, event_number, subject_id, url, state, attempts, next_at, claimed_by, created_at, updated_at) "
	addReceipt  = "INSERT INTO receipts (merchant_id, id, payin_id, processor, external_id, order_id, end_to_end_id, amount, applied, paid_at, created_at) "
	addPayin    = `INSERT INTO payins (merchant_id, id, external_id, reference_id, method, amount, status, version, processor, processor_id, webhook_url,
		webhook_ended, details, personal, fingerprint, paid_amount, refunded_amount, fee, end_to_end_id, late, failure, expires_at, paid_at, next_at, created_at, updated_at) `
	restOfPayin = `processor, processor_id, webhook_url, webhook_ended, details, personal, fingerprint, paid_amount, refunded_amount, fee, end_to_end_id, late,
		failure, expires_at, paid_at, next_at, created_at, updated_at FROM payins WHERE reference_id = 'in-open'`
	cancelOpen = "UPDATE payins SET status = 'CANCELED', version = version + 1, next_at = 0 WHERE reference_id = 'in-open'"
)

// entryOf books an entry of two lines about the order of a reference ("" for
// nobody), with its balances.
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
			addPosting+"SELECT merchant_id, $1, "+line+", '"+kind+"', "+subject+", account, 0 "+change+", balance "+change+
				", 1 FROM balances WHERE account = '"+account+"'",
			"UPDATE balances SET balance = balance "+change+", version = version + 1 WHERE account = '"+account+"'")
	}
	return list
}

// corruptions are what the database could be made to say; each breaks at least
// the rule that it names.
var corruptions = []struct {
	name, invariant, says string
	sql                   []string
}{
	{"a posting is rewritten", "I1", "posting", []string{"UPDATE postings SET amount = amount + 1 WHERE kind = 'payout_paid'"}},
	{"a posting is deleted", "I1", "was deleted", []string{"DELETE FROM postings WHERE kind = 'payout_paid'"}},
	{"an entry of two kinds", "I1", "does not continue it", append(entryOf("payout_held", "out-new", "available", "held", "5"),
		addPosting+"SELECT merchant_id, $1, 2, 'funded', id, 'available', 1, 1, 1 FROM payouts WHERE reference_id = 'out-new'")},
	{"one cent from nowhere", "I1", "adds up to 1", []string{
		addPosting + "SELECT merchant_id, $1, 0, 'funded', merchant_id, account, 1, balance + 1, 1 FROM balances WHERE account = 'available'",
		"UPDATE balances SET balance = balance + 1, version = version + 1 WHERE account = 'available'"}},
	{"a balance that its postings do not make", "I1", "its postings add up to", []string{
		"UPDATE balances SET balance = balance + 1, version = version + 1 WHERE account = 'available'"}},
	{"a balance written beside another", "I1", "from version", []string{"UPDATE balances SET balance = balance WHERE account = 'available'"}},
	{"a balance deleted", "I1", "balance", []string{"DELETE FROM balances WHERE account = 'fees' OR account = 'held'"}},
	{"a posting that forgets the one before", "I1", "stands at", []string{
		addPosting + "SELECT merchant_id, $1, 0, 'funded', merchant_id, account, 1, balance, 1 FROM balances WHERE account = 'available'"}},
	{"an entry of no recipe", "I1", "of no recipe", entryOf("gift", "in-paid", "clearing:fake", "available", "5")},
	{"debit and credit swapped", "I1", "may not move", entryOf("payout_held", "out-new", "held", "available", "5")},
	{"an entry about nothing", "I1", "which is no order", entryOf("payout_held", "", "available", "held", "5")},
	{"an entry that goes on later", "I1", "in a later commit", []string{
		addPosting + "SELECT merchant_id, entry_id, 2, kind, subject_id, account, 1, 1, 1 FROM postings WHERE kind = 'payout_paid' AND line = 0"}},
	{"money cleared with another processor", "I1", "clears with", []string{
		addPosting + "SELECT merchant_id, $1, 0, 'payout_paid', id, 'clearing:other', 1, 1, 1 FROM payouts WHERE reference_id = 'out-new'",
	}},

	{"a second send while one is undecided", "I3", "begins while send 1 is accepted", []string{
		addSend + "SELECT merchant_id, payout_id, 2, processor, body_hash, node, deadline, 'intent', '', created_at, 0 FROM payout_sends" + ofSent}},
	{"a send of other contents", "I3", "has other contents", []string{
		"UPDATE payout_sends SET outcome = 'not_found'" + ofSent,
		addSend + "SELECT merchant_id, payout_id, 2, processor, node, node, deadline, 'intent', '', created_at, 0 FROM payout_sends" + ofSent}},
	{"a send to another processor", "I3", "goes to other", []string{
		addSend + "SELECT merchant_id, payout_id, 2, 'other', body_hash, node, deadline, 'intent', '', created_at, 0 FROM payout_sends" + ofSent}},
	{"an accepted payout called not sent", "I3", "goes from accepted to not_sent", []string{"UPDATE payout_sends SET outcome = 'not_sent'" + ofSent}},
	{"a decided send in doubt again", "I3", "goes from paid to unknown", []string{"UPDATE payout_sends SET outcome = 'unknown'" + ofDone}},
	{"a send forgotten", "I3", "send", []string{"DELETE FROM payout_sends" + ofSent}},
	{"what was sent is rewritten", "I3", "was rewritten", []string{"UPDATE payout_sends SET body_hash = node" + ofSent}},
	{"a send that may leave for longer", "I3", "has a later deadline", []string{"UPDATE payout_sends SET deadline = deadline + 1" + ofSent}},
	{"a decided send redated", "I3", "has a later deadline", []string{"UPDATE payout_sends SET deadline = deadline - 1" + ofDone}},
	{"completed without proof", "I3", "nothing proves it", []string{
		"UPDATE payouts SET status = 'COMPLETED', step = 'done', next_at = 0, version = version + 1 WHERE reference_id = 'out-sent'"}},
	{"released by a clock", "I3", "nothing proves it", append(entryOf("payout_released", "out-sent", "held", "available", "700"),
		"UPDATE payouts SET status = 'FAILED', step = 'done', next_at = 0, version = version + 1 WHERE reference_id = 'out-sent'")},
	{"a send that begins paid", "I3", "send 1 begins as paid", []string{
		addSend + "SELECT merchant_id, id, 1, processor, fingerprint, id, 1, 'paid', '', 1, 1 FROM payouts WHERE reference_id = 'out-new'"}},
	{"a send of no payout", "I3", "which is no payout", []string{"UPDATE payout_sends SET payout_id = $1" + ofSent}},
	{"a send renumbered", "I3", "was never recorded", []string{"UPDATE payout_sends SET number = 7" + ofSent}},
	{"in hand, and not claimed", "I11", "is being sent", []string{"UPDATE payouts SET step = 'intent' WHERE reference_id = 'out-sent'"}},
	{"final, and due", "I11", "step done is due", []string{"UPDATE payouts SET next_at = 1 WHERE reference_id = 'out-done'"}},
	{"sending without an intent", "I3", "step is intent", []string{
		"UPDATE payouts SET status = 'PROCESSING', step = 'intent', next_at = 0, claimed_by = id, version = version + 1 WHERE reference_id = 'out-new'"}},
	{"canceled after it was sent", "I3", "is undecided", []string{
		"UPDATE payouts SET status = 'CANCELED', step = 'done', next_at = 0, version = version + 1 WHERE reference_id = 'out-sent'"}},

	{"a hold released twice", "I4", "entries payout_released add up to 800", entryOf("payout_released", "out-failed", "held", "available", "400")},
	{"a hold without a payout", "I4", "payouts in flight are", entryOf("payout_held", "out-done", "available", "held", "1")},
	{"more held than there was", "I4", "available stands at -", entryOf("payout_held", "out-new", "available", "held", "10000000")},
	{"debt beside available money", "I4", "is owed while", []string{
		addPosting + "SELECT merchant_id, $1, 0, 'dispute_opened', id, 'owed', -5, -5, 1 FROM payins WHERE reference_id = 'in-paid'",
		addPosting + "SELECT merchant_id, $1, 1, 'dispute_opened', (SELECT id FROM payins WHERE reference_id = 'in-paid'), account, 5, balance + 5, 1 FROM balances WHERE account = 'disputed'"}},
	{"a dispute that ends without its money", "I4", "open disputes are 0", []string{"UPDATE disputes SET state = 'won'"}},
	{"a paid order of which less is paid", "I4", "paid goes from 10000 to 9999", []string{"UPDATE payins SET paid_amount = 9999, version = version + 1 WHERE reference_id = 'in-paid'"}},
	{"refunded in part, and in whole", "I4", "5 of 10000 is refunded", []string{
		"UPDATE payins SET status = 'REFUNDED', refunded_amount = 5, version = version + 1 WHERE reference_id = 'in-paid'"}},
	{"refunded all, and in part", "I4", "10000 of 10000 is refunded", []string{
		"UPDATE payins SET status = 'PARTIALLY_REFUNDED', refunded_amount = paid_amount, version = version + 1 WHERE reference_id = 'in-paid'"}},
	{"paid and refunded at once", "I6", "paid and refunded", []string{
		"UPDATE payins SET paid_amount = 2, refunded_amount = 1, version = version + 1 WHERE reference_id = 'in-open'"}},
	{"returned less than before", "I4", "returned goes from 5 to 4", []string{
		"UPDATE payouts SET returned_amount = 5, version = version + 1 WHERE reference_id = 'out-done'",
		"UPDATE payouts SET returned_amount = 4, version = version + 1 WHERE reference_id = 'out-done'"}},
	{"paid in silence", "I6", "in the same version", []string{"UPDATE payins SET paid_amount = amount WHERE reference_id = 'in-open'"}},
	{"paid without money", "I10", "receipts say 0", []string{
		"UPDATE payins SET paid_amount = amount, status = 'PAID', next_at = 0, version = version + 1 WHERE reference_id = 'in-open'"}},
	{"more returned than was sent", "I4", "2001 of 2000 came back", []string{
		"UPDATE payouts SET returned_amount = 2001, version = version + 1 WHERE reference_id = 'out-done'"}},
	{"returned, and not booked", "I4", "entries payout_returned add up to 0, not 5", []string{
		"UPDATE payouts SET returned_amount = 5, version = version + 1 WHERE reference_id = 'out-done'"}},

	{"an order deleted", "I5", "was deleted", []string{"DELETE FROM payins WHERE reference_id = 'in-open'"}},
	{"a reference rewritten", "I5", "was rewritten", []string{"UPDATE payins SET reference_id = 'x' WHERE reference_id = 'in-open'"}},
	{"an amount rewritten", "I5", "was rewritten", []string{"UPDATE payouts SET amount = amount + 1 WHERE reference_id = 'out-new'"}},
	{"an external id rewritten", "I5", "was rewritten", []string{"UPDATE payouts SET external_id = 'x' WHERE reference_id = 'out-new'"}},
	{"two orders of one reference", "I5", "belongs to order", []string{
		addPayin + "SELECT merchant_id, $1, 'x' || substr(external_id, 2), reference_id, method, amount, status, version, " + restOfPayin}},
	{"an external id of two orders", "I5", "external id", []string{
		addPayin + "SELECT $1, id, external_id, reference_id, method, amount, status, version, " + restOfPayin}},
	{"another id", "I5", "was never created", []string{"UPDATE payins SET id = $1 WHERE reference_id = 'in-open'"}},
	{"an order that begins paid", "I6", "begins with", []string{
		addPayin + "SELECT merchant_id, $1, 'x' || substr(external_id, 2), 'other', method, amount, 'PAID', version, " + restOfPayin}},

	{"a final status left", "I6", "may not go to COMPLETED", []string{"UPDATE payouts SET status = 'COMPLETED', version = version + 1 WHERE reference_id = 'out-failed'"}},
	{"a status without a version", "I6", "in the same version", []string{"UPDATE payins SET status = 'CANCELED', next_at = 0 WHERE reference_id = 'in-open'"}},
	{"a version too many", "I6", "goes from version 1 to 3", []string{"UPDATE payins SET status = 'CANCELED', version = version + 2, next_at = 0 WHERE reference_id = 'in-open'"}},
	{"a version that goes back", "I6", "goes from version", []string{"UPDATE payins SET version = version - 1 WHERE reference_id = 'in-paid'"}},
	{"late, and not", "I6", "late is true", []string{"UPDATE payins SET late = 1 WHERE reference_id = 'in-paid'"}},
	{"a dispute that begins won", "I6", "begins as won", []string{
		"INSERT INTO disputes (merchant_id, id, payin_id, processor, external_id, amount, state, created_at, updated_at) SELECT merchant_id, $1, id, 'fake', 'D', 1, 'won', 1, 1 FROM payins WHERE reference_id = 'in-paid'"}},
	{"a dispute of another id", "I6", "was never opened", []string{"UPDATE disputes SET id = $1"}},
	{"disputed by nobody", "I6", "has 0 open disputes", []string{"UPDATE payins SET status = 'DISPUTED', version = version + 1 WHERE reference_id = 'in-paid'"}},
	{"a dispute that turns", "I6", "goes from open to reversed", []string{"UPDATE disputes SET state = 'reversed'"}},
	{"a dispute rewritten", "I6", "dispute", []string{"UPDATE disputes SET amount = amount + 1"}},
	{"done, and still queued", "I6", "step is queued", []string{
		"UPDATE payouts SET status = 'CANCELED', version = version + 1 WHERE reference_id = 'out-new'"}},

	{"a change without news", "I7", "has no event payin.canceled", []string{cancelOpen}},
	{"news without a change", "I7", "tells of no change", []string{
		addEvent + "SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, type, subject_id, version, body, created_at FROM events WHERE number = 1"}},
	{"a gap in the numbers", "I7", "has number", []string{
		addEvent + "SELECT merchant_id, (SELECT max(number) + 2 FROM events), $1, type, subject_id, version, body, created_at FROM events WHERE number = 1"}},
	{"the wrong news", "I7", "has no event payin.canceled", []string{cancelOpen,
		addEvent + "SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, 'payin.expired', id, version, personal, created_at FROM payins WHERE reference_id = 'in-open'"}},
	{"news in another's words", "I7", "not sealed for this place", []string{cancelOpen,
		addEvent + "SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, 'payin.canceled', id, version, personal, created_at FROM payins WHERE reference_id = 'in-open'"}},
	{"news of nothing", "I7", "which is no order", []string{
		addEvent + "SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, type, $1, version, body, created_at FROM events WHERE number = 1"}},
	{"news of no words", "I7", "not sealed for this place", []string{cancelOpen,
		addEvent + "SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, 'payin.canceled', id, version, id, created_at FROM payins WHERE reference_id = 'in-open'"}},
	{"news that begin again", "I7", "begin again", []string{
		"UPDATE payins SET webhook_ended = 1 WHERE reference_id = 'in-open'", "UPDATE payins SET webhook_ended = 0 WHERE reference_id = 'in-open'"}},
	{"payout news that begin again", "I7", "begin again", []string{
		"UPDATE payouts SET webhook_ended = 1 WHERE reference_id = 'out-new'", "UPDATE payouts SET webhook_ended = 0 WHERE reference_id = 'out-new'"}},
	{"a second delivery later", "I7", "is not in the event's commit", []string{
		addDelivery + "SELECT merchant_id, $1, event_number, subject_id, url, 'pending', 0, 1, claimed_by, 1, 1 FROM deliveries WHERE event_number = 1"}},
	{"delivered, and due", "I7", "delivered and due", []string{"UPDATE deliveries SET next_at = 1 WHERE event_number = 1"}},
	{"a delivery of another id", "I7", "was never created", []string{"UPDATE deliveries SET id = $1 WHERE event_number = 1"}},
	{"an attempt of no delivery", "I7", "which is no delivery", []string{
		"INSERT INTO delivery_attempts (merchant_id, delivery_id, number, status, latency, error, response, created_at, ended_at) SELECT id, $1, 1, 0, 0, '', '', 1, 0 FROM merchants WHERE name = 'shop'"}},
	{"news rewritten", "I7", "was rewritten", []string{"UPDATE events SET body = id WHERE number = 1"}},
	{"news deleted", "I7", "was deleted", []string{"DELETE FROM events WHERE number = 1"}},
	{"news sent again unasked", "I7", "goes from delivered to pending", []string{
		"UPDATE deliveries SET state = 'pending', next_at = 1 WHERE event_number = 1"}},
	{"called delivered", "I7", "is delivered after 0 attempts", []string{"UPDATE deliveries SET state = 'delivered', next_at = 0 WHERE state = 'pending'"}},
	{"given up too soon", "I7", "is exhausted after 0 attempts", []string{"UPDATE deliveries SET state = 'exhausted', next_at = 0 WHERE state = 'pending'"}},
	{"ended, and wanted", "I7", "is ended after 0 attempts", []string{"UPDATE deliveries SET state = 'ended', next_at = 0 WHERE state = 'pending'"}},
	{"news ended by nobody", "I7", "no receiver answered 410", []string{"UPDATE payouts SET webhook_ended = 1 WHERE reference_id = 'out-new'"}},
	{"news in nobody's hand", "I11", "in hand: false", []string{"UPDATE deliveries SET next_at = 0 WHERE state = 'pending'"}},
	{"a delivery to another address", "I7", "was rewritten", []string{"UPDATE deliveries SET url = 'https://elsewhere.example'"}},
	{"a delivery deleted", "I7", "was deleted", []string{"DELETE FROM deliveries WHERE state = 'pending'"}},
	{"an attempt that nobody made", "I7", "by nobody who had it in hand", []string{
		"INSERT INTO delivery_attempts (merchant_id, delivery_id, number, status, latency, error, response, created_at, ended_at) SELECT merchant_id, id, 1, 0, 0, '', '', 1, 0 FROM deliveries WHERE state = 'pending'"}},
	{"an attempt of another time", "I7", "by nobody who had it in hand", []string{
		"UPDATE deliveries SET claimed_by = merchant_id, next_at = 0, attempts = 1, updated_at = 2 WHERE state = 'pending'",
		"INSERT INTO delivery_attempts (merchant_id, delivery_id, number, status, latency, error, response, created_at, ended_at) SELECT merchant_id, id, 1, 0, 0, '', '', 1, 0 FROM deliveries WHERE state = 'pending'",
		"UPDATE deliveries SET claimed_by = '', next_at = 1 WHERE state = 'pending'"}},
	{"a delivery taken out of a hand", "I7", "in hand for attempt 1, and becomes attempt 2", []string{
		"UPDATE deliveries SET claimed_by = merchant_id, next_at = 0, attempts = 1 WHERE state = 'pending'",
		"UPDATE deliveries SET attempts = 2 WHERE state = 'pending'"}},
	{"a hand that counts no attempt", "I7", "counts 0 attempts of 1", []string{
		"UPDATE deliveries SET claimed_by = merchant_id, next_at = 0 WHERE state = 'pending'"}},
	{"an attempt cut off that is forgotten", "I7", "counts 1 attempts of 0", []string{
		"UPDATE deliveries SET claimed_by = merchant_id, next_at = 0, attempts = 1 WHERE state = 'pending'",
		"UPDATE deliveries SET claimed_by = '', next_at = 1 WHERE state = 'pending'"}},
	{"an attempt miscounted", "I7", "counts 2 attempts of 1", []string{"UPDATE deliveries SET attempts = 2 WHERE event_number = 1"}},
	{"an attempt rewritten", "I7", "is changed", []string{"UPDATE delivery_attempts SET status = 204"}},
	{"an attempt deleted", "I7", "is changed", []string{"DELETE FROM delivery_attempts"}},

	{"a payment booked twice", "I9", "has receipts", []string{
		addReceipt + "SELECT merchant_id, $1, payin_id, processor, external_id, order_id, end_to_end_id, amount, applied, paid_at, created_at FROM receipts WHERE external_id = 'A'"}},
	{"a receipt without a claim", "I9", "claimed is false", []string{
		addReceipt + "SELECT merchant_id, $1, payin_id, processor, 'Z', order_id, end_to_end_id, amount, applied, paid_at, created_at FROM receipts WHERE external_id = 'A'"}},
	{"a claim without a receipt", "I9", "receipt is false", []string{
		"INSERT INTO receipt_claims (processor, external_id, merchant_id, receipt_id) SELECT 'fake', 'Z', id, $1 FROM merchants WHERE name = 'shop'"}},
	{"a receipt of another payment", "I9", "is claimed as Y", []string{
		"INSERT INTO receipt_claims (processor, external_id, merchant_id, receipt_id) SELECT 'fake', 'Y', id, $1 FROM merchants WHERE name = 'shop'",
		addReceipt + "SELECT merchant_id, $1, payin_id, processor, 'Z', order_id, end_to_end_id, 7, 0, paid_at, created_at FROM receipts WHERE external_id = 'A'"}},
	{"a receipt of two payments", "I9", "claims a second payment", []string{
		"INSERT INTO receipt_claims (processor, external_id, merchant_id, receipt_id) SELECT 'fake', 'Z', merchant_id, id FROM receipts WHERE external_id = 'A'"}},
	{"a receipt of a payout", "I10", "which is no pay-in", []string{
		addReceipt + "SELECT merchant_id, $1, id, processor, 'Z', external_id, '', 7, 7, 1, 1 FROM payouts WHERE reference_id = 'out-new'"}},
	{"a receipt that names another order", "I10", "names", []string{
		addReceipt + "SELECT merchant_id, $1, id, processor, 'Z', 'x', '', 7, 7, 1, 1 FROM payins WHERE reference_id = 'in-open'"}},
	{"a claim given up", "I9", "was deleted", []string{"DELETE FROM receipt_claims WHERE external_id = 'A'"}},
	{"a receipt rewritten", "I9", "was rewritten", []string{"UPDATE receipts SET amount = amount + 1 WHERE external_id = 'A'"}},
	{"a receipt deleted", "I9", "was deleted", []string{"DELETE FROM receipts WHERE external_id = 'A'"}},
	{"money received, and not booked", "I10", "is booked", []string{
		"INSERT INTO receipt_claims (processor, external_id, merchant_id, receipt_id) SELECT 'fake', 'Z', id, $1 FROM merchants WHERE name = 'shop'",
		addReceipt + "SELECT merchant_id, $1, payin_id, processor, 'Z', order_id, end_to_end_id, 7, 0, paid_at, created_at FROM receipts WHERE external_id = 'A'"}},
	{"a surplus that nobody is told of", "I10", "a person is told of 500", []string{
		"INSERT INTO receipt_claims (processor, external_id, merchant_id, receipt_id) SELECT 'fake', 'Z', id, $1 FROM merchants WHERE name = 'shop'",
		addReceipt + "SELECT merchant_id, $1, payin_id, processor, 'Z', order_id, end_to_end_id, 7, 0, paid_at, created_at FROM receipts WHERE external_id = 'A'"}},
	{"money of a stranger that nobody is told of", "I10", "fits no order", []string{
		"INSERT INTO receipt_claims (processor, external_id, merchant_id, receipt_id) SELECT 'fake', 'Z', id, $1 FROM merchants WHERE name = 'shop'",
		addReceipt + "SELECT merchant_id, $1, payin_id, processor, 'Z', order_id, end_to_end_id, 7, 0, paid_at, created_at FROM receipts WHERE external_id = 'C'"}},
	{"a notice deleted", "I10", "notice", []string{"DELETE FROM notices"}},
	{"a notice in nobody's hand", "I11", "notice fake/n1 is due at 0", []string{"UPDATE notices SET next_at = 0"}},
	{"a notice applied, and due", "I11", "is applied, due at", []string{"UPDATE notices SET state = 'applied'"}},
	{"a notice given up in silence", "I11", "nobody is told", []string{"UPDATE notices SET state = 'stuck', next_at = 0"}},

	{"a payout in nobody's hand", "I11", "in hand: false", []string{"UPDATE payouts SET next_at = 0 WHERE reference_id = 'out-sent'"}},
	{"a payout for a person who does not know", "I11", "nobody is told", []string{"UPDATE payouts SET step = 'person', next_at = 0 WHERE reference_id = 'out-sent'"}},
	{"a pay-in that never expires", "I11", "is due at 0", []string{"UPDATE payins SET next_at = 0 WHERE reference_id = 'in-open'"}},
	{"an exception deleted", "I11", "exception", []string{"DELETE FROM exceptions"}},
	{"an exception rewritten", "I11", "exception", []string{"UPDATE exceptions SET amount = 0"}},
	{"an exception closed twice", "I11", "closed twice", []string{"UPDATE exceptions SET closed_at = 1", "UPDATE exceptions SET closed_at = 2"}},
}

// newsWords are what the news of a canceled in-open could say; the first are as
// they should be.
var newsWords = []struct{ name, says, body string }{
	{"no delivery", "is to be delivered is true", `{"id":"evt_30313233343536373839616263646566","type":"payin.canceled","version":2,
		"data":{"id":"{id}","externalId":"{external}","referenceId":"in-open","status":"CANCELED","amount":5000,"version":2}}`},
	{"no JSON", "is no JSON", `{`},
	{"another event", "says", `{"id":"evt_30313233343536373839616263646567","type":"payin.canceled","version":2,
		"data":{"id":"{id}","externalId":"{external}","referenceId":"in-open","status":"CANCELED","amount":5000,"version":2}}`},
	{"another status", "says", `{"id":"evt_30313233343536373839616263646566","type":"payin.canceled","version":2,
		"data":{"id":"{id}","externalId":"{external}","referenceId":"in-open","status":"PENDING","amount":5000,"version":2}}`},
	{"another version", "says", `{"id":"evt_30313233343536373839616263646566","type":"payin.canceled","version":2,
		"data":{"id":"{id}","externalId":"{external}","referenceId":"in-open","status":"CANCELED","amount":5000,"version":1}}`},
	{"another amount", "says", `{"id":"evt_30313233343536373839616263646566","type":"payin.canceled","version":2,
		"data":{"id":"{id}","externalId":"{external}","referenceId":"in-open","status":"CANCELED","amount":5001,"version":2}}`},
	{"paid", "says", `{"id":"evt_30313233343536373839616263646566","type":"payin.canceled","version":2,
		"data":{"id":"{id}","externalId":"{external}","referenceId":"in-open","status":"CANCELED","amount":5000,"paidAmount":1,"version":2}}`},
}
