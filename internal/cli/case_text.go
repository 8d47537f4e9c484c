package cli

import (
	"regexp"

	"github.com/porteira/porteira/internal/store"
)

// casePair is a kind of cases, and a reason of it or "".
type casePair struct {
	kind   store.CaseKind
	reason store.CaseReason
}

// caseTexts describe cases and what to do, in English. A name in braces is replaced by
// the parameter.
var caseTexts = map[casePair]string{
	{store.CaseOverpaid, ""}:                          "More was paid than the order's amount. The surplus is in the merchant's unapplied account: ask the merchant whom it belongs to, then apply it, return it or write it off.",
	{store.CaseOverpaid, store.ReasonDisputed}:        "The payer disputes money beyond the order's amount that was written off before, so it is in the merchant's unapplied account again; the dispute took its amount from the merchant. If the dispute is lost, apply it; if it is won, it may be written off again.",
	{store.CaseOverpaid, store.ReasonGivenBack}:       "Money beyond the order's amount that was written off before was given back at the processor: the platform paid it, not the merchant.",
	{store.CaseUnmatchedReceipt, ""}:                  "Processor {processor} received a payment that named no order of this gateway when it came: {externalId}. It is in the platform's unidentified account: find its owner. After a restored backup its order may be missing, or have been requested again since: porteira case show then names the merchant and the pay-in, which stays unpaid until you apply the money to it.",
	{store.CaseUnmatchedReceipt, store.ReasonSamePix}: "Processor {processor} reports a Pix for order {externalId} that account {bookedAt} has too: it has the same endToEndId, so the order does not get it twice. It is in the platform's unidentified account. Are both accounts contracts of one account at the bank? Then drain this one." + compareStatement,
	{store.CaseCharge, ""}:                            "Processor {processor} answered order {externalId} with a charge that is not the order's or is invalid: {field} {problem}. The payer is not shown it, and the order stays unpaid: contact the processor before anything else is charged there.",
	{store.CaseChargeOpen, ""}:                        "The order was canceled or has expired, and processor {processor} does not cancel its charge {externalId}: the payer can still pay it. Attempts continue once a day: cancel it at the processor.",
	{store.CasePayinProcessing, ""}:                   "Processor {processor} has had payment {externalId} in analysis for days: neither paid nor refused. Look-ups continue once a day: contact the processor's support with the externalId.",
	{store.CaseDispute, ""}:                           "The processor reports a dispute of an order in status {status}." + compareStatement,
	{store.CaseDispute, store.ReasonMoreThanReceived}: "The processor reports a dispute of {reported} cents, more than is left of what was received for the order. Only the rest was set aside: compare the processor's statement.",
	{store.CaseDisputeDeadline, ""}:                   "A dispute at processor {processor}, {externalId}, can be defended until {respondBy}, and has no defense (days left: {days} or less). Ask the merchant for its defense.",
	{store.CaseDisputeOpen, ""}:                       "Processor {processor} has not decided the dispute {externalId} for four months, and its money stays set aside: contact the processor's support.",
	{store.CaseDisputeAnswer, ""}:                     "The merchant answered dispute {externalId}: {action}. Processor {processor} has not received the answer: {cause}. Give it at the processor's panel: porteira dispute files has the documents.",
	{store.CaseAccountRefused, ""}:                    "The processor refuses the credentials of account {account} since {since}, so the gateway has suspended it: nothing is sent, and held money stays held. Replace them with porteira account rotate, or have the processor accept them: the account is then resumed by itself.",
	{store.CasePayoutFound, ""}:                       "The processor {processor} lists transfer {externalId}, and no payout has it: a restored backup lacks it. Its money was taken from the merchant's balance. Ask the merchant to send the same payout request again: the payout then gets this transfer, also after this case was resolved.",
	{store.CasePayoutFound, store.ReasonPaidTwice}:    "The processor {processor} paid payout {payout} twice: this is the second transfer, {externalId}. Its money was taken from the merchant's balance. Compare both transfers in the processor's statement.",
	{store.CaseFeedEntry, ""}:                         "Account {processor} has an entry in its list of {feed} that cannot be read: {cause}. It is not booked; the entries after it are. After a restored backup, the account's payouts wait while such an entry of the list of transfers is open: find it in the processor's statement.",
	{store.CaseAccountFrozen, ""}:                     "The payouts and refunds of account {processor} wait since the gateway's last start, which may have been on an older copy of its database, and somebody has proposed to end that by hand. Compare the processor's statement with this list of cases and with the merchants' orders before you confirm it: a payout that the database lacks may leave again. The case closes by itself once the lists have been read.",
	{store.CaseDamaged, ""}:                           "A row of the table {table} cannot be opened or processed, or was changed outside the gateway. It is skipped, and its money stays where it is. porteira verify lists all such rows. Check the retired master keys, and who can write to the database. Restore the row from a backup.",
	{store.CaseDamaged, store.ReasonChangedOutside}:   "The work on the payout has stopped: somebody changed its row or its approval in the database, outside the gateway. Its money stays held. Find out who can write to the database; porteira verify lists all such rows. If it was sent, its transfer may be paid: look at the processor. Restore the row from a backup, or end the payout as it ended there.",
	{store.CaseWebhook, ""}:                           "All attempts to deliver event {event} failed. Fix the receiver, then redeliver the event.",
	{store.CaseEndpoint, ""}:                          "A webhook endpoint of the merchant has only failed since {since}, so it was disabled. Its events are kept: it gets them in order once the merchant enables it.",

	{store.CaseAccountCertificate, ""}: "The certificate of account {account} expires on {end}: after that its processor cannot be called. Get another one from the processor, and replace it with porteira account rotate --secret certificate=@FILE.",

	{store.CasePayoutUnknown, store.ReasonNoAnswer}:        "The processor does not report the outcome. The money stays held and look-ups continue: contact the processor's support with the externalId.",
	{store.CasePayoutUnknown, store.ReasonStillProcessing}: "The processor has accepted it, and still reports hours later that it is processing. The money stays held and look-ups continue: contact the processor's support with the externalId.",
	{store.CasePayoutUnknown, store.ReasonNotIdempotent}:   "The processor may have paid it, but reports \"not found\" and does not deduplicate requests. Check the processor's statement.",
	{store.CasePayoutUnknown, store.ReasonTooOld}:          "It was not found, and was first sent too long ago: the processor may not recognise its id any more, and pay it twice. Check the processor's statement.",
	{store.CasePayoutUnknown, store.ReasonIDInUse}:         "The processor reports that it already has this externalId, but does not find it. Contact the processor's support.",
	{store.CasePayoutWaiting, ""}:                          "The processor has not taken it for an hour or more, could not be reached, or answered 'later' eight times: no balance there, too many requests, maintenance, or an outage. It is sent again until the processor takes it.",
	{store.CasePayoutWaiting, store.ReasonDebt}:            "It is from before the database was restored, and its merchant owed {owed} cents when this case was opened: transfers that the backup lacks took more than the merchant had. It is sent once the merchant owes nothing: its pay-ins repay the debt. If it is given up, its own money repays it.",
	{store.CasePayoutWaiting, store.ReasonPersonOnly}:      "Processor {processor} does not take it: its account wants each transfer confirmed by a person, with a code. Switch that off in its panel; at Asaas this is the critical authorization (autorização crítica), and docs/processors/asaas.md says what replaces it. The payout is then sent within half an hour.",
	{store.CasePayoutUnknown, store.ReasonOtherContents}:   "It was already sent with different contents, so it is not sent again. Compare the processor's records with this order.",

	{store.CaseRefundUnknown, ""}:                       "The outcome of refund {externalId} at {processor} cannot be found out: {cause}. Later parts of the refund that were not sent wait for this one. The money stays held: check the processor's statement, and contact its support with the externalId.",
	{store.CaseRefundUnknown, store.ReasonOtherPayment}: "Processor {processor} gave another payment back as refund {externalId}: {reported}. A restored backup may lack that refund. The money stays held: compare the processor's statement.",
	{store.CaseRefundUnknown, store.ReasonUnconfirmed}:  "Processor {processor} has accepted refund {externalId}, and pays it once a person has confirmed it in its panel: confirm or cancel it there. The money stays held meanwhile.",
	{store.CaseRefundUnknown, store.ReasonOtherPart}:    "Refund {externalId} at {processor} was not sent: an earlier part of it had a case, and the processor may have given the money of both back. Its money stays held: compare the processor's statement.",

	{store.CaseRefundWaiting, store.ReasonRefundDebt}:       "Refund {externalId} is from before the database was restored, and its merchant owed {owed} cents when this case was opened: what the backup lacks took more than the merchant had. It is sent once the merchant owes nothing: its pay-ins repay the debt. If it is given up, its own money repays it.",
	{store.CaseRefundWaiting, store.ReasonRefundPersonOnly}: "Processor {processor} does not take refund {externalId}: its account wants each one confirmed by a person, with a code. Switch that off in its panel; at Asaas this is the critical authorization (autorização crítica), and docs/processors/asaas.md says what replaces it. The refund is then sent within half an hour.",
	{store.CaseRefundWaiting, ""}:                           "Processor {processor} has not taken refund {externalId} for an hour or more, could not be reached, or answered 'later' eight times: no balance there, too many requests, maintenance, or an outage. It is sent again until the processor takes it.",
	{store.CaseRefundUnexpected, ""}:                        "Processor {processor} gave money back that was not paid for the order, or more than that: {externalId}. It was taken from the merchant's available balance, a shortfall from owed; nothing was taken if the money named no order and was assigned or written off before.",

	{store.CaseContradiction, store.ReasonOtherAmount}:       "The processor reports another amount: {reported} cents." + compareStatement,
	{store.CaseContradiction, store.ReasonPaidAfterRelease}:  "The processor reports that it paid, but the held money had already been released: status {status}. The merchant's payouts are stopped." + compareStatement,
	{store.CaseContradiction, store.ReasonReturnedTooMuch}:   "The processor reports a returned amount below zero or larger than the amount sent: {reported} cents." + compareStatement,
	{store.CaseContradiction, store.ReasonFailedAfterPaid}:   "The processor reported the payment, and later a failure." + compareStatement,
	{store.CaseContradiction, store.ReasonUnconfirmedChange}: "Processor {processor} lists a later change of {externalId}, but does not confirm it." + compareStatement,

	{store.CaseNotice, store.ReasonInvalidPayment}:     "Processor {processor} lists a payment of {externalId} without an id or an amount." + compareStatement,
	{store.CaseNotice, store.ReasonOrderDamaged}:       "Processor {processor} lists a payment of {externalId}, and the row of that order cannot be opened or processed: the payment is not booked. Repair the row, then apply the payment again.",
	{store.CaseNotice, store.ReasonUnknownTransfer}:    "Processor {processor} reports a transfer that no payout of this gateway has: {externalId}." + compareStatement,
	{store.CaseNotice, store.ReasonUnsupportedSubject}: "Notice {notice} of {processor} is about a subject that this version does not support: {externalId}. Compare the processor's statement with its clearing account.",
	{store.CaseNotice, store.ReasonUnknownRefund}:      "Processor {processor} has a refund that nobody requested here, and no list of refunds: {externalId}. It is not booked: compare the processor's statement.",
	{store.CaseNotice, store.ReasonUnreadable}:         "Notice {notice} of {processor} cannot be read.",
	{store.CaseNotice, store.ReasonNotConfirmed}:       "Notice {notice} of {processor} was not confirmed by the processor in any attempt.",
}

const compareStatement = " Nothing was posted: compare the processor's statement."

// caseText describes a case and what to do; "" if another version opened it.
func caseText(v *store.Case) string {
	text, ok := caseTexts[casePair{v.Kind, store.CaseReason(v.Params["cause"])}]
	if !ok {
		text = caseTexts[casePair{v.Kind, v.Params.Reason()}]
	}
	text = parameter.ReplaceAllStringFunc(text, func(name string) string {
		return v.Params[name[1:len(name)-1]]
	})
	if text != "" && v.Params.Reason() == store.ReasonPaidAfterRelease && v.Params["reported"] != "" {
		text += " It reports another amount than that of the payout, which is the amount of this case: that is what paid and write-off book."
	}
	if text != "" && v.StopsAccount != "" && v.ClosedAt.IsZero() {
		text += " Account " + v.StopsAccount + " sends no payouts until this is resolved."
	}
	return text
}

var parameter = regexp.MustCompile(`{[a-zA-Z]+}`)

// resolutionOf is a resolution of a kind of cases.
type resolutionOf struct {
	kind store.CaseKind
	how  store.Resolution
}

// resolutionTexts say what a resolution does.
var resolutionTexts = map[resolutionOf]string{
	{store.CaseOverpaid, store.ResolvedApply}:            "pays the pay-in --order with it; without --order it becomes available",
	{store.CaseOverpaid, store.ResolvedReturn}:           "gives it back to its payer, as a refund of that payment",
	{store.CaseRefundUnknown, store.ResolvedPaid}:        "the refund was paid: its money leaves",
	{store.CaseRefundUnknown, store.ResolvedRelease}:     "the refund was not paid and will not be: its money is released",
	{store.CaseRefundUnknown, store.ResolvedResend}:      "the processor does not have it: it is sent again with the same id",
	{store.CaseRefundUnknown, store.ResolvedDismiss}:     "the outcome is known, and was compared with the statement",
	{store.CaseRefundWaiting, store.ResolvedRelease}:     "gives the refund up: it becomes FAILED and its money is released",
	{store.CaseRefundUnexpected, store.ResolvedDismiss}:  "the statement was compared",
	{store.CaseOverpaid, store.ResolvedWriteOff}:         "the platform keeps the money",
	{store.CasePayoutWaiting, store.ResolvedRelease}:     "gives the payout up: it becomes FAILED and its money is available again",
	{store.CasePayoutFound, store.ResolvedDismiss}:       "there was one transfer only: the merchant has its money back",
	{store.CasePayoutFound, store.ResolvedAdopt}:         "the transfer is the merchant's, which bears it",
	{store.CasePayoutFound, store.ResolvedWriteOff}:      "the platform bears it, and the merchant has its money back",
	{store.CaseAccountFrozen, store.ResolvedCompared}:    "the processor's transfers were compared: payouts and refunds of the account continue",
	{store.CaseAccountRefused, store.ResolvedDismiss}:    "closes the case; the account stays suspended until the credentials are accepted",
	{store.CaseCharge, store.ResolvedDismiss}:            "closes the case; the order stays unpaid until it expires",
	{store.CaseChargeOpen, store.ResolvedDismiss}:        "ends the attempts to cancel it; a payment that arrives is booked",
	{store.CasePayinProcessing, store.ResolvedRelease}:   "the processor refused it: the order becomes FAILED",
	{store.CaseUnmatchedReceipt, store.ResolvedApply}:    "gives it to --merchant and pays the pay-in --order with it; without --order it becomes available",
	{store.CaseUnmatchedReceipt, store.ResolvedWriteOff}: "the platform keeps the money",

	{store.CaseAccountCertificate, store.ResolvedDismiss}: "closes the case; the next one opens nearer to the end",

	{store.CasePayoutUnknown, store.ResolvedPaid}:    "the payout was paid: it is COMPLETED and its money leaves",
	{store.CasePayoutUnknown, store.ResolvedRelease}: "the payout was not paid and will not be: it is FAILED and its money is available again",
	{store.CasePayoutUnknown, store.ResolvedResend}:  "the processor does not have it: it is sent again with the same id",

	{store.CaseContradiction, store.ResolvedPaid}:     "the money left: it is booked, after a release from available and then as debt",
	{store.CaseContradiction, store.ResolvedRelease}:  "the money did not leave, or came back: it is available again",
	{store.CaseContradiction, store.ResolvedWriteOff}: "the money left, and the platform bears it",
	{store.CaseContradiction, store.ResolvedRetry}:    "the processor is queried again, and the change is booked if it confirms it",
	{store.CaseContradiction, store.ResolvedDismiss}:  "the ledger is right: nothing is booked",

	{store.CaseNotice, store.ResolvedRetry}:      "the notice is applied again",
	{store.CaseNotice, store.ResolvedDismiss}:    "closes the case; nothing is booked",
	{store.CaseFeedEntry, store.ResolvedRetry}:   "the list is read again from this entry on; if it is still invalid, it gets a new case",
	{store.CaseFeedEntry, store.ResolvedDismiss}: "the entry was compared, and nothing is to be booked",
	{store.CaseDispute, store.ResolvedDismiss}:   "the statement was compared, and nothing is to be booked",

	{store.CaseDisputeDeadline, store.ResolvedDismiss}: "the merchant knows, or will not defend it",
	{store.CaseDisputeOpen, store.ResolvedDismiss}:     "the processor is still deciding",
	{store.CaseDisputeAnswer, store.ResolvedDismiss}:   "the answer was given to the processor, or it is too late",

	{store.CaseWebhook, store.ResolvedRetry}:    "the event is delivered again, with the complete schedule",
	{store.CaseWebhook, store.ResolvedDismiss}:  "the event is not delivered",
	{store.CaseEndpoint, store.ResolvedDismiss}: "the endpoint stays disabled until its merchant enables it",
	{store.CaseDamaged, store.ResolvedRetry}:    "the row was repaired: its work continues",
	{store.CaseDamaged, store.ResolvedPaid}:     "the row cannot be restored, and the payout was paid: it is COMPLETED and its money leaves",
	{store.CaseDamaged, store.ResolvedRelease}:  "the row cannot be restored, and the payout was not paid and will not be: it is FAILED and its money is available again",
}
