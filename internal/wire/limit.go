package wire

import (
	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

type limitsView struct {
	Payin  map[payment.Method]limits.Range `json:"payin"`
	Payout payoutLimitsView                `json:"payout"`
}

type payoutLimitsView struct {
	limits.Payout

	UsedToday   *money.Cents `json:"usedToday,omitempty"`
	UsedTonight *money.Cents `json:"usedTonight,omitempty"`
}

// reasonMax bounds the reason of a rejection, in characters.
const reasonMax = 500

// DecodeRejection decodes the body of POST /payout/{id}/reject: the reason, or "" if it was
// not sent.
func DecodeRejection(body []byte) (string, *problem.Error) {
	var reason Field[string]
	err := decode(body, func(body value) {
		for v := range body.children() {
			if v.name() == "reason" {
				reason = v.text()
			} else {
				v.failUnknown()
			}
		}
		if reason.Set {
			body.r.errs.text(At("", "reason"), reason.V, reasonMax)
		}
	})
	return reason.V, err
}

// Limits is the answer of GET /limits: the limits of a merchant, and what its payouts have
// used of those of the present day and night.
func Limits(l *limits.Limits, used *limits.Usage) ([]byte, error) {
	v := limitsView{Payin: l.Payin, Payout: payoutLimitsView{Payout: l.Payout}}
	if v.Payin == nil {
		v.Payin = map[payment.Method]limits.Range{}
	}
	if l.Payout.PerDay != nil {
		v.Payout.UsedToday = &used.Day.Amount
	}
	if l.Payout.PerNight != nil {
		v.Payout.UsedTonight = &used.Night.Amount
	}
	return json.Marshal(&v, json.Deterministic(true))
}
