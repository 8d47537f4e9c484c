package payment

import (
	"slices"
	"strings"
)

// Events of webhook endpoints.
const (
	EventEndpointDisabled EventType = "webhook_endpoint.disabled"
	// EventWebhookTest is sent on request only: it is in no feed.
	EventWebhookTest EventType = "webhook.test"
)

// EventTypes lists every type that the feed of a merchant may have.
var EventTypes = []EventType{
	EventPayinCreated, EventPayinProcessing, EventPayinPaid, EventPayinExpired, EventPayinCanceled, EventPayinFailed,
	EventPayinPartiallyRefunded, EventPayinRefunded, EventPayinDisputed, EventPayinDisputeWon, EventPayinChargeback,
	EventPayinUnderpaid, EventPayinOverpaid, EventPayinUpdated,
	EventPayoutCreated, EventPayoutProcessing, EventPayoutCompleted, EventPayoutFailed, EventPayoutCanceled, EventPayoutReturned,
	EventRefundCompleted, EventRefundFailed,
	EventDisputeOpened, EventDisputeSubmitted, EventDisputeClosed, EventPayoutBatchCompleted, EventEndpointDisabled,
}

const (
	everyEvent  = "*"
	everyOfNoun = ".*"
)

// IsEventFilter reports whether s selects events: a type, all types of a noun such as
// "payout.*", or "*" for all.
func IsEventFilter(s string) bool {
	if noun, all := strings.CutSuffix(s, everyOfNoun); all {
		return slices.ContainsFunc(EventTypes, func(t EventType) bool { return t.noun() == noun })
	}
	return s == everyEvent || slices.Contains(EventTypes, EventType(s))
}

// noun is the part of a type before the dot.
func (t EventType) noun() string {
	noun, _, _ := strings.Cut(string(t), ".")
	return noun
}

// IsCreation reports whether the event announces the creation of an order. It goes to webhook
// endpoints only, not to the order's own URL: the creator has had the answer.
func (t EventType) IsCreation() bool { return t == EventPayinCreated || t == EventPayoutCreated }

// MatchedBy reports whether one of the filters selects the type.
func (t EventType) MatchedBy(filters []string) bool {
	for _, f := range filters {
		if noun, all := strings.CutSuffix(f, everyOfNoun); f == everyEvent || f == string(t) || all && noun == t.noun() {
			return true
		}
	}
	return false
}
