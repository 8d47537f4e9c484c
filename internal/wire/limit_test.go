package wire_test

import (
	"testing"

	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/wire"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	all := limits.Default()
	all.Payin = map[payment.Method]limits.Range{payment.PIX: {Minimum: new(money.Cents(1))}, payment.Boleto: {Maximum: new(money.Cents(2))}}
	for _, row := range []struct {
		limits limits.Limits
		want   string
	}{
		{limits.Limits{}, `{"payin":{},"payout":{}}`},
		{all, `{"payin":{"BOLETO":{"maximum":2},"PIX":{"minimum":1}},"payout":{"maximum":1000000,"perDay":5000000,"perNight":100000,` +
			`"newKeyMaximum":100000,"newKeyHours":24,"usedToday":7,"usedTonight":0}}`},
	} {
		got, err := wire.Limits(&row.limits, &limits.Usage{Day: limits.Count{Amount: 7}})
		if err != nil || string(got) != row.want {
			t.Errorf("%s, %v; want %s", got, err, row.want)
		}
	}
}
