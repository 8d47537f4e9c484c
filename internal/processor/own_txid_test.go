package processor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// withTxID is a dynamic code with another order's txid.
func withTxID(code string) string {
	text := strings.Replace(code[:len(code)-4], "62070503***", "62290525"+strings.Repeat("Z", 25), 1)
	return text + fmt.Sprintf("%04X", brcode.CRC16(text))
}

// A processor that chooses txids itself may have any in a dynamic code, but not in a static
// one, nor another amount.
func TestOwnTxIDs(t *testing.T) {
	t.Parallel()
	fixed, cheaper := static(), dynamic()
	fixed.TxID, cheaper.Amount = strings.Repeat("Z", 25), amount-1
	foreign := withTxID(encode(t, dynamic()))
	for name, want := range map[string]struct {
		code string
		own  bool
		ok   bool
	}{
		"dynamic, its own":        {foreign, true, true},
		"dynamic, of another":     {foreign, false, false},
		"static, of another":      {encode(t, fixed), true, false},
		"dynamic, another amount": {encode(t, cheaper), true, false},
		"dynamic, without a txid": {encode(t, dynamic()), true, true},
	} {
		r := order(payment.PIX)
		charge := processor.Charge{PIX: &payment.PIXDetail{QRCode: want.code, TxID: ourID, ExpiresAt: expires}}
		if err := processor.CheckCharge(&processor.Profile{OwnTxIDs: want.own}, &r, &charge); (err == nil) != want.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := order(payment.PIX)
	charge := processor.Charge{Amount: amount + 1, PIX: &payment.PIXDetail{QRCode: encode(t, dynamic()), ExpiresAt: expires}}
	if err := processor.CheckCharge(&processor.Profile{}, &r, &charge); err == nil {
		t.Error("a charge of another amount is shown")
	}
}
