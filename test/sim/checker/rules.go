package checker

// The rules, written a second time from the contract and the docs, so that the
// checker does not repeat a mistake of the gateway.

// statusStep is a move of an order and the amount that grows with it: "paid",
// "refunded", "returned", or "" for none. "undone" is a refund that came back. "charge" is the move in which the order gets
// what its payer needs to pay.
type statusStep struct{ from, to, grows string }

// payinSteps are the moves of a pay-in and their events; "" is none. Of alternatives one is
// in the commit.
var payinSteps = map[statusStep]string{
	{"PENDING", "PROCESSING", ""}:                            "payin.processing",
	{"PENDING", "PAID", "paid"}:                              "payin.paid",
	{"PENDING", "PENDING", "paid"}:                           "payin.underpaid",
	{"PENDING", "EXPIRED", ""}:                               "payin.expired",
	{"PENDING", "CANCELED", ""}:                              "payin.canceled",
	{"PENDING", "FAILED", ""}:                                "payin.failed",
	{"PENDING", "PENDING", ""}:                               "", // a refused card
	{"PENDING", "PENDING", "charge"}:                         "", // but see possibleEvents
	{"EXPIRED", "EXPIRED", "charge"}:                         "", // the processor was still making it
	{"PAID", "PAID", "charge"}:                               "", // a copy lacked the order, and its payment was listed first
	{"PARTIALLY_REFUNDED", "PARTIALLY_REFUNDED", "charge"}:   "",
	{"REFUNDED", "REFUNDED", "charge"}:                       "",
	{"DISPUTED", "DISPUTED", "charge"}:                       "",
	{"CHARGEBACK", "CHARGEBACK", "charge"}:                   "",
	{"CANCELED", "CANCELED", "charge"}:                       "",
	{"FAILED", "FAILED", "charge"}:                           "",
	{"PENDING", "PENDING", "refunded"}:                       "payin.partially_refunded|payin.refunded",
	{"PENDING", "PENDING", "undone"}:                         "payin.partially_refunded|payin.updated",
	{"PENDING", "PAID", ""}:                                  "payin.paid", // a refund of it failed
	{"PROCESSING", "PROCESSING", "refunded"}:                 "payin.partially_refunded|payin.refunded",
	{"PROCESSING", "PROCESSING", "undone"}:                   "payin.partially_refunded|payin.updated",
	{"PROCESSING", "PAID", ""}:                               "payin.paid", // a refund of it failed
	{"EXPIRED", "EXPIRED", "refunded"}:                       "payin.partially_refunded|payin.refunded",
	{"EXPIRED", "EXPIRED", "undone"}:                         "payin.partially_refunded|payin.updated",
	{"EXPIRED", "PAID", ""}:                                  "payin.paid", // a refund of it failed
	{"CANCELED", "CANCELED", "refunded"}:                     "payin.partially_refunded|payin.refunded",
	{"CANCELED", "CANCELED", "undone"}:                       "payin.partially_refunded|payin.updated",
	{"CANCELED", "PAID", ""}:                                 "payin.paid", // a refund of it failed
	{"FAILED", "FAILED", "refunded"}:                         "payin.partially_refunded|payin.refunded",
	{"FAILED", "FAILED", "undone"}:                           "payin.partially_refunded|payin.updated",
	{"PAID", "PAID", "undone"}:                               "payin.updated", // of what was given back before
	{"PROCESSING", "PAID", "paid"}:                           "payin.paid",
	{"PROCESSING", "PROCESSING", "paid"}:                     "payin.underpaid",
	{"PROCESSING", "FAILED", ""}:                             "payin.failed",
	{"EXPIRED", "PAID", "paid"}:                              "payin.paid",
	{"EXPIRED", "EXPIRED", "paid"}:                           "payin.underpaid",
	{"CANCELED", "PAID", "paid"}:                             "payin.paid",
	{"CANCELED", "CANCELED", "paid"}:                         "payin.underpaid",
	{"PROCESSING", "PROCESSING", ""}:                         "payin.disputed|payin.dispute_won|payin.chargeback",
	{"EXPIRED", "EXPIRED", ""}:                               "payin.disputed|payin.dispute_won|payin.chargeback",
	{"CANCELED", "CANCELED", ""}:                             "payin.disputed|payin.dispute_won|payin.chargeback",
	{"REFUNDED", "DISPUTED", ""}:                             "payin.disputed", // its surplus
	{"PAID", "PAID", ""}:                                     "payin.overpaid",
	{"PAID", "PARTIALLY_REFUNDED", "refunded"}:               "payin.partially_refunded",
	{"PAID", "REFUNDED", "refunded"}:                         "payin.refunded",
	{"PAID", "DISPUTED", ""}:                                 "payin.disputed",
	{"PARTIALLY_REFUNDED", "PARTIALLY_REFUNDED", ""}:         "payin.overpaid",
	{"PARTIALLY_REFUNDED", "PARTIALLY_REFUNDED", "refunded"}: "payin.partially_refunded",
	{"PARTIALLY_REFUNDED", "REFUNDED", "refunded"}:           "payin.refunded",
	{"PARTIALLY_REFUNDED", "DISPUTED", ""}:                   "payin.disputed",
	{"PARTIALLY_REFUNDED", "PARTIALLY_REFUNDED", "undone"}:   "payin.partially_refunded",
	{"PARTIALLY_REFUNDED", "PAID", "undone"}:                 "payin.updated",
	{"REFUNDED", "PARTIALLY_REFUNDED", "undone"}:             "payin.partially_refunded",
	{"REFUNDED", "PAID", "undone"}:                           "payin.updated",
	{"DISPUTED", "DISPUTED", "refunded"}:                     "payin.partially_refunded|payin.refunded",
	{"CHARGEBACK", "CHARGEBACK", "refunded"}:                 "payin.partially_refunded|payin.refunded",
	{"DISPUTED", "DISPUTED", "undone"}:                       "payin.partially_refunded|payin.updated",
	{"CHARGEBACK", "CHARGEBACK", "undone"}:                   "payin.partially_refunded|payin.updated",
	{"DISPUTED", "REFUNDED", ""}:                             "payin.dispute_won",
	{"CHARGEBACK", "REFUNDED", ""}:                           "payin.dispute_won",
	{"DISPUTED", "DISPUTED", ""}:                             "payin.overpaid|payin.disputed|payin.dispute_won|payin.chargeback",
	{"DISPUTED", "PAID", ""}:                                 "payin.dispute_won",
	{"DISPUTED", "PARTIALLY_REFUNDED", ""}:                   "payin.dispute_won",
	{"DISPUTED", "CHARGEBACK", ""}:                           "payin.chargeback|payin.dispute_won",
	{"CHARGEBACK", "CHARGEBACK", ""}:                         "payin.overpaid|payin.disputed|payin.dispute_won|payin.chargeback",
	{"CHARGEBACK", "PAID", ""}:                               "payin.dispute_won",
	{"CHARGEBACK", "PARTIALLY_REFUNDED", ""}:                 "payin.dispute_won",
	{"FAILED", "FAILED", ""}:                                 "payin.overpaid|payin.disputed|payin.dispute_won|payin.chargeback",
	{"REFUNDED", "REFUNDED", ""}:                             "payin.overpaid",
}

// possibleEvents are the events of moves that may have none: an order that was answered
// without its charge announces it; a refused card announces nothing, but a dispute of a part does.
var possibleEvents = map[statusStep]string{
	{"PENDING", "PENDING", "charge"}: "payin.updated",
	{"PENDING", "PENDING", ""}:       "payin.disputed|payin.dispute_won|payin.chargeback",
}

// payoutSteps are the moves of a payout and their events.
var payoutSteps = map[statusStep]string{
	{"PENDING", "PROCESSING", ""}:          "payout.processing",
	{"PENDING", "CANCELED", ""}:            "payout.canceled",
	{"PENDING", "FAILED", ""}:              "payout.failed",
	{"PROCESSING", "COMPLETED", ""}:        "payout.completed",
	{"PROCESSING", "FAILED", ""}:           "payout.failed",
	{"COMPLETED", "RETURNED", "returned"}:  "payout.returned",
	{"COMPLETED", "COMPLETED", "returned"}: "payout.returned",
}

// refundSteps are the moves of a refund and their events.
var refundSteps = map[statusStep]string{
	{"PENDING", "PROCESSING", ""}:            "",
	{"PENDING", "FAILED", ""}:                "refund.failed",
	{"PROCESSING", "FAILED", ""}:             "refund.failed",
	{"PROCESSING", "FAILED", "refunded"}:     "refund.failed",
	{"PROCESSING", "COMPLETED", "refunded"}:  "refund.completed",
	{"PROCESSING", "PROCESSING", "refunded"}: "",
	{"PROCESSING", "PROCESSING", ""}:         "", // a part failed
	{"PROCESSING", "PROCESSING", "undone"}:   "",
	{"COMPLETED", "FAILED", "undone"}:        "refund.failed",
	{"FAILED", "COMPLETED", "refunded"}:      "refund.completed",
	{"FAILED", "FAILED", "refunded"}:         "refund.failed",
	{"FAILED", "FAILED", "undone"}:           "refund.failed",
}

// stepsOf are the moves of the kinds of orders.
var stepsOf = map[string]map[statusStep]string{Payin: payinSteps, Payout: payoutSteps, Refund: refundSteps}

// sendSteps are the outcomes that may follow an outcome of a send. Those that are not
// listed are final.
var sendSteps = map[string][]string{
	"intent":   {"accepted", "unknown", "not_sent", "later", "refused", "paid", "failed"},
	"accepted": {"accepted", "refused", "paid", "failed"},
	"unknown":  {"accepted", "refused", "paid", "failed", "not_found", "not_sent", "later"},
	// It waited in a queue of the processor, and was found later, or its answer came late.
	"not_found": {"accepted", "paid", "failed", "refused"},
}

// proven means that the processor has reported that it has, or had, the transfer.
func proven(outcome string) bool {
	return outcome == "accepted" || outcome == "paid" || outcome == "failed"
}

// noEffect means that it is proved that a send had and will have no effect.
func noEffect(outcome string) bool { return outcome == "not_sent" || outcome == "later" }

// undecided means that a send may have moved money, or may still do so.
func undecided(outcome string) bool {
	return outcome == "intent" || outcome == "accepted" || outcome == "unknown"
}

// chargeSteps are the states that may follow a state of the work on a charge. Work that is
// canceled may still find the charge of an order that was paid meanwhile.
var chargeSteps = map[string][]string{
	"wanted":   {"made", "ended", "withheld", "cancel", "followed"},
	"withheld": {"wanted", "ended", "cancel", "followed"},
	"made":     {"ended", "cancel", "followed"},
	"followed": {"ended"},
	"cancel":   {"made", "ended"},
	"ended":    {"cancel"}, // a slow process reports that it was made, after another one took over
}

// disputeSteps are the states that may follow a state of a dispute.
var disputeSteps = map[string][]string{
	"OPEN": {"OPEN", "SUBMITTED", "WON", "LOST"}, "SUBMITTED": {"SUBMITTED", "WON", "LOST"}, "WON": {"WON"}, "LOST": {"LOST", "REVERSED"}, "REVERSED": {"REVERSED"},
}

// leg is one posting of a recipe.
type leg struct {
	account string
	sign    int64 // of its amount
	always  bool  // else it may be absent
}

// recipes lists the legs of each kind of entry.
var recipes = map[string][]leg{
	"funded":                {{"clearing", -1, true}, {"available", 1, true}},
	"received":              {{"clearing", -1, true}, {"available", 1, false}, {"fees", 1, false}},
	"received_pending":      {{"clearing", -1, true}, {"pending", 1, false}, {"fees", 1, false}},
	"received_unapplied":    {{"clearing", -1, true}, {"unapplied", 1, true}},
	"received_unidentified": {{"clearing", -1, true}, {"unidentified", 1, true}},
	"cost_booked":           {{"costs", -1, true}, {"clearing", 1, true}},
	"cost_returned":         {{"clearing", -1, true}, {"costs", 1, false}, {"written_off", 1, false}},
	"settled":               {{"pending", -1, true}, {"available", 1, true}},
	"payout_held":           {{"available", -1, true}, {"held", 1, true}},
	"payout_paid":           {{"held", -1, true}, {"clearing", 1, true}, {"fees", 1, false}},
	"payout_released":       {{"held", -1, true}, {"available", 1, true}},
	"payout_returned":       {{"clearing", -1, true}, {"available", 1, true}},
	"refund_held":           {{"pending", -1, false}, {"available", -1, false}, {"unapplied", -1, false}, {"held", 1, true}},
	"refunded":              {{"held", -1, true}, {"clearing", 1, true}},
	"refund_released":       {{"held", -1, true}, {"pending", 1, false}, {"available", 1, false}, {"unapplied", 1, false}},
	"refund_found":          {{"unapplied", -1, false}, {"pending", -1, false}, {"available", -1, false}, {"owed", -1, false}, {"held", 1, true}},
	"refund_taken_back":     {{"clearing", -1, true}, {"pending", 1, false}, {"owed", 1, false}, {"available", 1, false}, {"unapplied", 1, false}},
	"dispute_opened":        {{"pending", -1, false}, {"available", -1, false}, {"owed", -1, false}, {"disputed", 1, true}},
	"dispute_won":           {{"disputed", -1, true}, {"pending", 1, false}, {"owed", 1, false}, {"available", 1, false}},
	"charged_back":          {{"disputed", -1, true}, {"clearing", 1, true}},
	"chargeback_reversed":   {{"clearing", -1, true}, {"pending", 1, false}, {"owed", 1, false}, {"available", 1, false}},
	"owed_repaid":           {{"available", -1, true}, {"owed", 1, true}},
	"fee_refunded":          {{"fees", -1, true}, {"owed", 1, false}, {"available", 1, false}},
	"fee_recharged":         {{"available", -1, false}, {"owed", -1, false}, {"fees", 1, true}},
	"unidentified_returned": {{"unidentified", -1, true}, {"clearing", 1, true}},
	"unidentified_back":     {{"clearing", -1, true}, {"unidentified", 1, true}},

	"payout_found":   {{"available", -1, false}, {"owed", -1, false}, {"clearing", 1, true}},
	"payout_adopted": {{"clearing", -1, true}, {"owed", 1, false}, {"available", 1, false}},
	"found_returned": {{"clearing", -1, true}, {"owed", 1, false}, {"available", 1, false}},

	"unapplied_applied":     {{"unapplied", -1, true}, {"available", 1, false}, {"pending", 1, false}, {"fees", 1, false}},
	"unapplied_released":    {{"unapplied", -1, true}, {"available", 1, true}},
	"unapplied_written_off": {{"unapplied", -1, true}, {"written_off", 1, true}},
	"unapplied_back":        {{"written_off", -1, true}, {"unapplied", 1, true}},
	"unidentified_moved":    {{"unidentified", -1, true}, {"clearing", 1, true}},
	"unidentified_arrived":  {{"clearing", -1, true}, {"unapplied", 1, true}},
	"unidentified_kept":     {{"unidentified", -1, true}, {"written_off", 1, true}},
	"payout_paid_late":      {{"available", -1, false}, {"owed", -1, false}, {"clearing", 1, true}, {"fees", 1, false}},
	"payout_written_off":    {{"written_off", -1, true}, {"clearing", 1, true}},
	"found_written_off":     {{"written_off", -1, true}, {"owed", 1, false}, {"available", 1, false}},
	"payout_recovered":      {{"clearing", -1, true}, {"written_off", 1, true}},
}

// webhookAttempts is after how many attempts a delivery is exhausted.
const webhookAttempts = 11

// caseRule is the subject of a kind of case.
type caseRule struct {
	subject     string   // the kind of its subject: "order", Payin, Payout, "receipt", "found transfer" or "" for none
	params      []string // that it always has; of alternatives, "notice|externalId", one
	resolutions []string // how it may be closed
}

var caseRules = map[string]caseRule{
	"overpaid":            {subject: Payin, resolutions: []string{"proof"}},
	"unmatched_receipt":   {subject: "receipt", params: []string{"processor", "externalId"}, resolutions: []string{"proof"}},
	"payout_unknown":      {subject: Payout, params: []string{"reason"}, resolutions: []string{"proof", "replaced", "paid", "release", "resend"}},
	"payin_processing":    {subject: Payin, params: []string{"processor", "externalId"}, resolutions: []string{"proof"}},
	"payout_waiting":      {subject: Payout, resolutions: []string{"proof", "repaid", "canceled"}},
	"contradiction":       {subject: "order", params: []string{"reason"}, resolutions: []string{"replaced", "paid", "write-off"}},
	"notice":              {params: []string{"reason", "processor", "notice|externalId"}, resolutions: []string{"retry"}},
	"charge_differs":      {subject: Payin, params: []string{"processor", "externalId", "field"}, resolutions: []string{"proof"}},
	"charge_not_canceled": {subject: Payin, params: []string{"processor", "externalId"}, resolutions: []string{"proof"}},
	"dispute_unexpected":  {subject: Payin, params: []string{"status|reason"}, resolutions: []string{"replaced", "proof"}},
	"dispute_deadline":    {subject: "dispute", params: []string{"processor", "externalId", "days", "respondBy"}, resolutions: []string{"replaced", "proof"}},
	"dispute_open":        {subject: "dispute", params: []string{"processor", "externalId"}, resolutions: []string{"proof"}},
	"dispute_answer":      {subject: "dispute", params: []string{"processor", "externalId", "action", "cause"}, resolutions: []string{"replaced", "proof"}},
	"payout_found":        {subject: "found transfer", params: []string{"processor", "externalId"}, resolutions: []string{"requested"}},
	"feed_entry":          {subject: "entry", params: []string{"processor", "feed", "cursor", "cause"}},
	"account_frozen":      {subject: "account", params: []string{"processor", "history"}, resolutions: []string{"proof"}},
	"damaged":             {subject: "order", params: []string{"table"}, resolutions: []string{"retry"}},
	"refund_unknown":      {subject: Refund, params: []string{"processor", "externalId", "cause"}, resolutions: []string{"proof", "replaced", "paid", "release", "resend"}},
	"refund_waiting":      {subject: Refund, params: []string{"processor", "externalId"}, resolutions: []string{"proof"}},
	"refund_unexpected":   {subject: "pay-in or receipt", params: []string{"processor", "externalId"}, resolutions: []string{"proof"}}, // only of a receipt
	"webhook_exhausted":   {subject: "order", params: []string{"event"}, resolutions: []string{"delivered", "disabled"}},
	"webhook_endpoint":    {subject: "endpoint", params: []string{"since"}, resolutions: []string{"requested"}},
}
