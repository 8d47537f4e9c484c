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

// webhookAttempts is after how many attempts a delivery is exhausted.
const webhookAttempts = 11
