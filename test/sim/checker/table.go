package checker

// tableID names a watched table.
type tableID int64

const (
	payinTable tableID = iota
	payoutTable
	sendTable
	postingTable
	balanceTable
	eventTable
	deliveryTable
	attemptTable
	receiptTable
	claimTable
	disputeTable
	noticeTable
	caseTable
	foundTable
	chargeTable
	consentTable
	receivableTable
	refundTable
	partTable
	approvalTable
)

// watchedTable is a table of the gateway whose changes are logged.
type watchedTable struct {
	name         string
	merchant, id string // columns that name a row; "" if the table has none
	columns      func(*columns)
	unread       []string // fixed columns that the checker does not read
	unchecked    []string // columns that may change in any way

	// If a row is deleted or a fixed column is written again, this invariant is
	// broken about this thing.
	invariant Invariant
	thing     string
}

// tables are all watched tables, by their ids.
var tables = [...]watchedTable{
	payinTable: {
		name: "payins", merchant: "merchant_id", id: "id", columns: func(c *columns) { c.payin(&orderRow{}) },
		unread: []string{"personal", "fingerprint", "created_at"}, unchecked: []string{"processor_id", "end_to_end_id", "disputed_amount"},
		invariant: SingleOrder, thing: "pay-in",
	},
	payoutTable: {
		name: "payouts", merchant: "merchant_id", id: "id", columns: func(c *columns) { c.payout(&orderRow{}) },
		unread:    []string{"pix_key_type", "beneficiary", "fingerprint", "idempotency_key"},
		unchecked: []string{"processor_id", "approval", "approval_mac", "counters", "sent_at", "completed_at"},
		invariant: SingleOrder, thing: "payout",
	},
	sendTable: {
		name: "payout_sends", merchant: "merchant_id", id: "payout_id", columns: func(c *columns) { c.send(&sendRow{}) },
		invariant: SingleTransfer, thing: "send",
	},
	postingTable: {
		name: "postings", merchant: "merchant_id", id: "entry_id", columns: func(c *columns) { c.posting(&postingRow{}) },
		unread:    []string{"entry_number", "entry_hash", "part_id"}, // verify proves the chain
		invariant: Ledger, thing: "posting",
	},
	balanceTable: {
		name: "balances", merchant: "merchant_id", columns: func(c *columns) { c.balance(&balanceRow{}) },
		unchecked: []string{"entry_number", "entry_hash", "entry_at"},
		invariant: Ledger, thing: "balance",
	},
	eventTable: {
		name: "events", merchant: "merchant_id", id: "id", columns: func(c *columns) { c.event(&eventRow{}) },
		invariant: Events, thing: "event",
	},
	deliveryTable: {
		name: "deliveries", merchant: "merchant_id", id: "id", columns: func(c *columns) { c.delivery(&deliveryRow{}) },
		unread: []string{"created_at"}, unchecked: []string{"restarts"}, invariant: Events, thing: "delivery",
	},
	attemptTable: {
		name: "delivery_attempts", merchant: "merchant_id", id: "delivery_id", columns: func(c *columns) { c.attempt(&attemptRow{}) },
		unchecked: []string{"latency", "response"},
		invariant: Events, thing: "attempt",
	},
	receiptTable: {
		name: "receipts", merchant: "merchant_id", id: "id", columns: func(c *columns) { c.receipt(&receiptRow{}) },
		unchecked: []string{"paid_at", "cost", "entry_number"},
		invariant: SingleReceipt, thing: "receipt",
	},
	claimTable: {
		name: "receipt_claims", merchant: "merchant_id", id: "receipt_id", columns: func(c *columns) { c.claim(&claimRow{}) },
		invariant: SingleReceipt, thing: "claim of receipt",
	},
	disputeTable: {
		name: "disputes", merchant: "merchant_id", id: "id", columns: func(c *columns) { c.dispute(&disputeRow{}) },
		unread:    []string{"processor", "payment_id", "kind"},
		unchecked: []string{"reason", "lost", "blocked", "return_id", "accepted", "respond_by", "submitted_at", "closed_at", "remind_at"},
		invariant: States, thing: "dispute",
	},
	noticeTable: {
		name: "notices", columns: func(c *columns) { c.notice(&noticeRow{}) },
		unread: []string{"source", "headers", "body", "received_at"}, unchecked: []string{"attempts", "last_error", "applied_at"},
		invariant: Incoming, thing: "notice",
	},
	caseTable: {
		name: "cases", merchant: "merchant_id", id: "id", columns: func(c *columns) { c.reviewCase(&caseRow{}) },
		unread:    []string{"stops_payouts", "stops_account"},
		invariant: Progress, thing: "case",
	},
	foundTable: {
		name: "found_transfers", merchant: "merchant_id", id: "id", columns: func(c *columns) { c.foundTransfer(&foundRow{}) },
		unread: []string{"payout_id"}, unchecked: []string{"written_off", "next_at", "lookups"},
		invariant: SingleTransfer, thing: "found transfer",
	},
	receivableTable: {
		name: "receivables", merchant: "merchant_id", id: "id", columns: func(c *columns) { c.receivable(&receivableRow{}) },
		invariant: Amounts, thing: "receivable",
	},
	refundTable: {
		name: "refunds", merchant: "merchant_id", id: "id", columns: func(c *columns) { c.refund(&orderRow{}) },
		unread: []string{"created_at"}, unchecked: []string{"reason", "fingerprint", "completed_at"},
		invariant: SingleOrder, thing: "refund",
	},
	partTable: {
		name: "refund_parts", merchant: "merchant_id", id: "refund_id", columns: func(c *columns) { c.refundPart(&partRow{}) },
		unread:    []string{"created_at"},
		unchecked: []string{"processor_id", "laters", "lookups", "first_at", "until_at", "not_found_at", "history", "updated_at"},
		invariant: SingleRefund, thing: "part of refund",
	},
	approvalTable: {
		name: "approvals", merchant: "merchant_id", id: "payout_id", columns: func(c *columns) { c.approval(&approvalRow{}) },
		unread: []string{"reason", "mac"}, invariant: LimitsHold, thing: "approval",
	},
	chargeTable: {
		name: "charges", merchant: "merchant_id", id: "payin_id", columns: func(c *columns) { c.charge(&chargeRow{}) },
		unread:    []string{"created_at"},
		unchecked: []string{"attempts", "first_sent_at", "sent_at", "cause", "processor_id", "updated_at"},
		invariant: SingleCharge, thing: "charge",
	},
	consentTable: {
		name: "consents", columns: func(c *columns) { c.consent(&consentRow{}) },
		invariant: SingleTransfer, thing: "consent",
	},
}
