package simulate

// What may happen, written down a second time from the contract and the docs,
// so that a rule that the gateway gets wrong is not got wrong here as well.

// statusStep is a step of an order's life, and money that it moves: "paid",
// "refunded" and "returned" grow in it, "" leaves them as they are. "charge" is
// what the payer needs to pay, which the processor makes.
type statusStep struct{ from, to, grows string }

// payinSteps names the event of each step that a pay-in may take; "" has none.
var payinSteps = map[statusStep]string{
	{"PENDING", "PROCESSING", ""}:                            "payin.processing",
	{"PENDING", "PAID", "paid"}:                              "payin.paid",
	{"PENDING", "PENDING", "paid"}:                           "payin.underpaid",
	{"PENDING", "EXPIRED", ""}:                               "payin.expired",
	{"PENDING", "CANCELED", ""}:                              "payin.canceled",
	{"PENDING", "FAILED", ""}:                                "payin.failed",
	{"PENDING", "PENDING", ""}:                               "", // a refused card
	{"PENDING", "PENDING", "charge"}:                         "",
	{"EXPIRED", "EXPIRED", "charge"}:                         "", // it was being made meanwhile
	{"CANCELED", "CANCELED", "charge"}:                       "",
	{"FAILED", "FAILED", "charge"}:                           "",
	{"PROCESSING", "PAID", "paid"}:                           "payin.paid",
	{"PROCESSING", "PROCESSING", "paid"}:                     "payin.underpaid",
	{"PROCESSING", "FAILED", ""}:                             "payin.failed",
	{"EXPIRED", "PAID", "paid"}:                              "payin.paid",
	{"EXPIRED", "EXPIRED", "paid"}:                           "payin.underpaid",
	{"CANCELED", "PAID", "paid"}:                             "payin.paid",
	{"CANCELED", "CANCELED", "paid"}:                         "payin.underpaid",
	{"PAID", "PAID", ""}:                                     "payin.overpaid",
	{"PAID", "PARTIALLY_REFUNDED", "refunded"}:               "payin.partially_refunded",
	{"PAID", "REFUNDED", "refunded"}:                         "payin.refunded",
	{"PAID", "DISPUTED", ""}:                                 "payin.disputed",
	{"PARTIALLY_REFUNDED", "PARTIALLY_REFUNDED", ""}:         "payin.overpaid",
	{"PARTIALLY_REFUNDED", "PARTIALLY_REFUNDED", "refunded"}: "payin.partially_refunded",
	{"PARTIALLY_REFUNDED", "REFUNDED", "refunded"}:           "payin.refunded",
	{"PARTIALLY_REFUNDED", "DISPUTED", ""}:                   "payin.disputed",
	{"DISPUTED", "DISPUTED", ""}:                             "payin.overpaid",
	{"DISPUTED", "PAID", ""}:                                 "payin.dispute_won",
	{"DISPUTED", "PARTIALLY_REFUNDED", ""}:                   "payin.dispute_won",
	{"DISPUTED", "CHARGEBACK", ""}:                           "payin.chargeback",
	{"CHARGEBACK", "CHARGEBACK", ""}:                         "payin.overpaid",
	{"CHARGEBACK", "PAID", ""}:                               "payin.dispute_won",
	{"CHARGEBACK", "PARTIALLY_REFUNDED", ""}:                 "payin.dispute_won",
	{"FAILED", "FAILED", ""}:                                 "payin.overpaid",
	{"REFUNDED", "REFUNDED", ""}:                             "payin.overpaid",
}

// payoutSteps is the same for payouts.
var payoutSteps = map[statusStep]string{
	{"PENDING", "PROCESSING", ""}:          "payout.processing",
	{"PENDING", "CANCELED", ""}:            "payout.canceled",
	{"PENDING", "FAILED", ""}:              "payout.failed",
	{"PROCESSING", "COMPLETED", ""}:        "payout.completed",
	{"PROCESSING", "FAILED", ""}:           "payout.failed",
	{"COMPLETED", "RETURNED", "returned"}:  "payout.returned",
	{"COMPLETED", "COMPLETED", "returned"}: "payout.returned",
}

// sendSteps are the outcomes that a send may get, by the one that it has. What
// is not listed is decided for good.
var sendSteps = map[string][]string{
	"intent":   {"accepted", "unknown", "not_sent", "refused", "paid", "failed"},
	"accepted": {"accepted", "refused", "paid", "failed"},
	"unknown":  {"accepted", "refused", "paid", "failed", "not_found"},
	// It waited in a queue of the processor's, and was found after all.
	"not_found": {"accepted", "paid", "failed"},
}

// proven says that the processor has told that it has, or had, the transfer.
func proven(outcome string) bool {
	return outcome == "accepted" || outcome == "paid" || outcome == "failed"
}

// undecided says that a send may have moved money, or may do so yet.
func undecided(outcome string) bool {
	return outcome == "intent" || outcome == "accepted" || outcome == "unknown"
}

// disputeSteps are the states that a dispute may go on to.
var disputeSteps = map[string]string{"open": "won lost", "lost": "reversed"}

// leg is one posting of a recipe.
type leg struct {
	account string
	sign    int64 // of its amount
	always  bool  // else it may be absent
}

// recipeKinds lists the legs of each kind of entry.
var recipeKinds = map[string][]leg{
	"funded":              {{"clearing", -1, true}, {"available", 1, true}},
	"received":            {{"clearing", -1, true}, {"available", 1, false}, {"fees", 1, false}},
	"received_pending":    {{"clearing", -1, true}, {"pending", 1, false}, {"fees", 1, false}},
	"received_unapplied":  {{"clearing", -1, true}, {"unapplied", 1, true}},
	"settled":             {{"pending", -1, true}, {"available", 1, true}},
	"payout_held":         {{"available", -1, true}, {"held", 1, true}},
	"payout_paid":         {{"held", -1, true}, {"clearing", 1, true}, {"fees", 1, false}},
	"payout_released":     {{"held", -1, true}, {"available", 1, true}},
	"payout_returned":     {{"clearing", -1, true}, {"available", 1, true}},
	"refund_held":         {{"available", -1, true}, {"held", 1, true}},
	"refunded":            {{"held", -1, true}, {"clearing", 1, true}},
	"refund_released":     {{"held", -1, true}, {"available", 1, true}},
	"dispute_opened":      {{"available", -1, false}, {"owed", -1, false}, {"disputed", 1, true}},
	"dispute_won":         {{"disputed", -1, true}, {"owed", 1, false}, {"available", 1, false}},
	"charged_back":        {{"disputed", -1, true}, {"clearing", 1, true}},
	"chargeback_reversed": {{"clearing", -1, true}, {"owed", 1, false}, {"available", 1, false}},
	"owed_repaid":         {{"available", -1, true}, {"owed", 1, true}},
}

// webhookAttempts is how often an event is tried before it is given up.
const webhookAttempts = 11
