package review

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Option is a resolution that is possible for a case, and the inputs that it wants.
type Option struct {
	How        store.Resolution
	Persons    int    // 1, or 2: one proposes, another confirms
	Evidence   bool   // required
	EndToEndID bool   // required
	Order      bool   // possible
	Merchant   bool   // required
	Named      *Named // with this merchant and order one person is enough; nil if there is none
}

// rule is one resolution of one kind of cases.
type rule struct {
	Option

	kind    store.CaseKind
	reasons []store.CaseReason // none: any
	param   string             // the case must have it; "": none
	table   string             // the case must be about a row of it; "": any
	// prepare reads data for the operation before its transaction; it may be nil.
	prepare func(ctx context.Context, s *Service, v *Resolve) error
	needs   func(v *Resolve, n *store.Needs)
	// consented: one person is enough if the payout's account asks for our consent to each
	// transfer; see [Resolve.persons].
	consented bool
	// check returns a problem of kind invalid_state if the resolution is not possible
	// now; it may be nil. A proposal is checked too, so that it can be confirmed.
	check func(v *Resolve, l *store.Loaded) error
	// sendOutcomes returns the outcomes of the sends that a decision is based on; nil if it is
	// based on none. If they change, a proposal cannot be confirmed.
	sendOutcomes func(v *Resolve, l *store.Loaded) string
	// effect carries the resolution out; nil if nothing but the case changes.
	effect func(v *Resolve, l *store.Loaded, c *store.Changes) error
}

// endToEndID is the form of the id of a Pix (API Pix, schema EndToEndId).
var endToEndID = regexp.MustCompile(`^E[0-9A-Za-z]{31}$`)

// The options that several kinds share. Two people always decide these:
//   - whether a payout of unknown outcome was paid;
//   - whether to repeat a call that may pay twice;
//   - who owns money that names no order;
//   - whether the platform keeps what a payer paid.
var (
	twoPersons = Option{Persons: 2, Evidence: true}
	paid       = Option{How: store.ResolvedPaid, Persons: 2, Evidence: true, EndToEndID: true}
	release    = with(twoPersons, store.ResolvedRelease)
	resend     = with(twoPersons, store.ResolvedResend)
	apply      = Option{How: store.ResolvedApply, Persons: 1, Order: true}
	assign     = Option{How: store.ResolvedApply, Persons: 2, Evidence: true, Merchant: true, Order: true}
	writeOff   = with(twoPersons, store.ResolvedWriteOff)
	retry      = Option{How: store.ResolvedRetry, Persons: 1}
	dismiss    = Option{How: store.ResolvedDismiss, Persons: 1}
)

func with(o Option, how store.Resolution) Option {
	o.How = how
	return o
}

// rules is every resolution of every kind. A kind without a row cannot be resolved.
var rules = slices.Concat(refundRules, []rule{
	{kind: store.CaseOverpaid, Option: apply, needs: needsOrder, check: checkOrder, effect: applyUnapplied},
	{kind: store.CaseOverpaid, Option: writeOff, needs: needsWriteOff, check: checkWriteOff, effect: writeOffUnapplied},
	{kind: store.CaseUnmatchedReceipt, Option: assign, prepare: findMerchant, needs: needsAssign, check: checkOrder, effect: assignUnidentified},
	{kind: store.CaseUnmatchedReceipt, Option: writeOff, needs: needsBalances, effect: writeOffUnidentified},

	{kind: store.CasePayoutUnknown, Option: paid, prepare: findHeld, needs: needsPayout, check: checkUnknown, sendOutcomes: payoutOutcomes, effect: declarePaid},
	{kind: store.CasePayoutUnknown, Option: release, prepare: findHeld, needs: needsPayout, check: checkUnknown, sendOutcomes: payoutOutcomes, effect: declareNotPaid},
	{
		kind: store.CasePayoutUnknown, reasons: []store.CaseReason{store.ReasonNoAnswer, store.ReasonNotIdempotent}, Option: resend, consented: true,
		prepare: findConsent, needs: needsConsent, check: checkUnknown, sendOutcomes: payoutOutcomes, effect: sendAgain,
	},

	{
		kind: store.CasePayoutWaiting, Option: Option{How: store.ResolvedRelease, Persons: 1, Evidence: true},
		prepare: findHistory, needs: needsPayout, check: checkWaiting, effect: declareNotPaid,
	},

	{kind: store.CaseContradiction, reasons: []store.CaseReason{store.ReasonOtherAmount}, Option: paid, prepare: findHeld, needs: needsPayout, check: checkUnknown, sendOutcomes: payoutOutcomes, effect: declarePaid},
	{kind: store.CaseContradiction, reasons: []store.CaseReason{store.ReasonOtherAmount}, Option: release, prepare: findHeld, needs: needsPayout, check: checkUnknown, sendOutcomes: payoutOutcomes, effect: declareNotPaid},
	{kind: store.CaseContradiction, reasons: []store.CaseReason{store.ReasonOtherAmount}, Option: with(twoPersons, store.ResolvedDismiss), needs: needsPayout, check: checkKnown},
	{
		kind: store.CaseContradiction, reasons: []store.CaseReason{store.ReasonPaidAfterRelease}, Option: Option{How: store.ResolvedPaid, Persons: 1, Evidence: true},
		prepare: findExternalID, needs: needsLate, check: checkReleased, effect: bookLate,
	},
	{
		kind: store.CaseContradiction, reasons: []store.CaseReason{store.ReasonPaidAfterRelease}, Option: writeOff,
		prepare: findExternalID, needs: needsLate, check: checkReleased, effect: writeOffLate,
	},
	{kind: store.CaseContradiction, reasons: []store.CaseReason{store.ReasonPaidAfterRelease}, Option: with(twoPersons, store.ResolvedDismiss)},
	{
		kind: store.CaseContradiction, reasons: []store.CaseReason{store.ReasonFailedAfterPaid}, Option: release,
		prepare: findExternalID, needs: needsLate, check: checkPaid, effect: declareReturned,
	},
	{kind: store.CaseContradiction, reasons: []store.CaseReason{store.ReasonUnconfirmedChange}, Option: retry, effect: retryNotice},
	{
		kind: store.CaseContradiction, Option: dismiss,
		reasons: []store.CaseReason{store.ReasonFailedAfterPaid, store.ReasonReturnedTooMuch, store.ReasonUnconfirmedChange},
	},

	{
		kind: store.CaseNotice, Option: retry, param: "notice", effect: retryNotice, // a listed transfer has none
		reasons: []store.CaseReason{store.ReasonUnknownTransfer, store.ReasonUnreadable, store.ReasonNotConfirmed, store.ReasonOrderDamaged},
	},
	{kind: store.CaseNotice, Option: dismiss},
	{kind: store.CaseFeedEntry, Option: retry, prepare: findHistory, needs: needsFeed, check: checkFeed, effect: readAgain},
	{kind: store.CaseFeedEntry, Option: Option{How: store.ResolvedDismiss, Persons: 1, Evidence: true}},
	{
		kind: store.CaseAccountFrozen, Option: with(twoPersons, store.ResolvedCompared),
		prepare: findHistory, needs: needsTransfers, check: checkFrozen, effect: endWait,
	},
	{kind: store.CaseAccountRefused, Option: dismiss},
	{kind: store.CaseAccountCertificate, Option: dismiss},
	{kind: store.CaseDispute, Option: dismiss},
	{kind: store.CaseDisputeDeadline, Option: dismiss},
	{kind: store.CaseDisputeAnswer, Option: dismiss},
	{kind: store.CaseDisputeOpen, Option: dismiss},
	{kind: store.CasePayoutFound, Option: with(twoPersons, store.ResolvedAdopt)}, // its money is taken already
	{kind: store.CasePayoutFound, Option: writeOff, needs: needsFound, check: checkFound, effect: writeOffFound},
	{
		kind: store.CasePayoutFound, reasons: []store.CaseReason{store.ReasonPaidTwice}, Option: with(twoPersons, store.ResolvedDismiss),
		needs: needsFound, check: checkFound, effect: dismissFound,
	},
	{kind: store.CaseCharge, Option: dismiss},
	{kind: store.CaseChargeOpen, Option: dismiss, needs: needsCharge, effect: endCancels},
	{
		kind: store.CasePayinProcessing, Option: Option{How: store.ResolvedRelease, Persons: 1, Evidence: true},
		needs: needsPayin, check: checkProcessing, effect: failPayin,
	},
	{kind: store.CaseWebhook, Option: retry, prepare: eventOfCase, effect: retryDeliveries},
	{kind: store.CaseWebhook, Option: dismiss},
	{kind: store.CaseEndpoint, Option: dismiss},
	{kind: store.CaseDamaged, Option: retry, prepare: openDamaged, needs: needsDamaged, effect: retryDamaged},
	{kind: store.CaseDamaged, table: "payouts", Option: paid, prepare: findRestoreAndHeld, needs: needsDamagedPayout, check: checkDamaged, sendOutcomes: payoutOutcomes, effect: declarePaid},
	{kind: store.CaseDamaged, table: "payouts", Option: release, prepare: findHeld, needs: needsDamagedPayout, check: checkDamaged, sendOutcomes: payoutOutcomes, effect: declareNotPaid},
})

// matches reports whether the rule is about a case.
func (r *rule) matches(v *store.Case) bool {
	return r.kind == v.Kind && (len(r.reasons) == 0 || slices.Contains(r.reasons, v.Params.Reason())) && (r.param == "" || v.Params[r.param] != "") &&
		(r.table == "" || v.Params["table"] == r.table)
}

func find(v *store.Case, how store.Resolution) (*rule, bool) {
	for i := range rules {
		if rules[i].How == how && rules[i].matches(v) {
			return &rules[i], true
		}
	}
	return nil, false
}

// Possible lists the resolutions of a case. The subject also decides whether one is
// possible now, and by how many people: see [Service.Possible].
func Possible(v *store.Case) []Option {
	var list []Option
	for i := range rules {
		if rules[i].matches(v) {
			list = append(list, rules[i].Option)
		}
	}
	return list
}

// notPossible names the resolutions of a case.
func notPossible(v *store.Case) error {
	var list []string
	for _, o := range Possible(v) {
		list = append(list, string(o.How))
	}
	if len(list) == 0 {
		return problem.New(problem.InvalidState, fmt.Sprintf("A case of kind %s cannot be resolved by a command.", v.Kind))
	}
	return problem.New(problem.InvalidState, fmt.Sprintf("A case of kind %s is resolved with one of: %s.", v.Kind, strings.Join(list, ", ")))
}
