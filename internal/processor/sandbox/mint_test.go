package sandbox

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/boleto"
	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// TestMintedCodesAreValidAndWorthless: whatever a merchant is called, the code
// decodes, says what is to be paid, and cannot be paid.
func TestMintedCodesAreValidAndWorthless(t *testing.T) {
	r := newRig(t, nil)
	rapid.Check(t, func(rt *rapid.T) {
		request := r.chargeRequest(payment.PIX)
		request.Amount = money.Cents(rapid.Int64Range(1, int64(money.Max)).Draw(rt, "amount"))
		request.MerchantName = rapid.String().Draw(rt, "name")
		request.MerchantCity = rapid.String().Draw(rt, "city")
		charge, ok := r.adapter.Mint(request)
		if !ok {
			rt.Fatalf("not minted: %+v", request)
		}
		if charge.PIX.TxID != request.ExternalID || !charge.PIX.ExpiresAt.Equal(request.ExpiresAt) {
			rt.Errorf("charge: %+v", charge.PIX)
		}
		code, err := brcode.Decode(charge.PIX.QRCode)
		if err != nil {
			rt.Fatalf("decode %q: %v", charge.PIX.QRCode, err)
		}
		if code.Kind() != brcode.KindDynamic || code.Amount() != int64(request.Amount) {
			rt.Errorf("code: %+v", code)
		}
		host, path, _ := strings.Cut(code.URL(), "/")
		if !strings.HasSuffix(host, ".invalid") || !strings.HasSuffix(path, "/"+request.ExternalID) {
			rt.Errorf("address %q", code.URL())
		}
		if !strings.HasPrefix(code.MerchantName(), "SEM VALOR") || code.City() == "" {
			rt.Errorf("name %q, city %q", code.MerchantName(), code.City())
		}
	})
}

func TestMintedBillsAreValidAndWorthless(t *testing.T) {
	r := newRig(t, nil)
	numbers := make(map[string]bool)
	for i := range 200 {
		request := r.chargeRequest(payment.Boleto)
		request.Amount = money.Cents(1 + i*49_999_999)
		due := start.AddDate(0, 0, i*2)
		request.DueDate = due.Format(time.DateOnly)
		charge, ok := r.adapter.Mint(request)
		if !ok {
			t.Fatalf("not minted: %+v", request)
		}
		bill, barcode, err := boleto.ParseLine(charge.Boleto.DigitableLine)
		if err != nil || barcode != charge.Boleto.Barcode {
			t.Fatalf("line %q: %v", charge.Boleto.DigitableLine, err)
		}
		day, err := boleto.Due(bill.Factor, start)
		if err != nil || day.Format(time.DateOnly) != request.DueDate {
			t.Errorf("due %v, want %s (%v)", day, request.DueDate, err)
		}
		if bill.Bank != "999" || bill.Amount != int64(request.Amount) || !strings.HasPrefix(bill.FreeField, charge.Boleto.OurNumber) {
			t.Errorf("bill %+v, our number %s", bill, charge.Boleto.OurNumber)
		}
		if numbers[charge.Boleto.OurNumber] {
			t.Errorf("two bills with number %s", charge.Boleto.OurNumber)
		}
		numbers[charge.Boleto.OurNumber] = true
		code, err := brcode.Decode(charge.Boleto.PIXQRCode)
		if err != nil || code.Amount() != bill.Amount {
			t.Errorf("Pix of the bill: %+v, %v", code, err)
		}
	}
}

func TestBillPaidByPix(t *testing.T) {
	r := newRig(t, nil)
	request := r.chargeRequest(payment.Boleto)
	r.pay(request, Payment{})
	r.pay(request, Payment{Method: payment.PIX})
	paid := r.adapter.QueryCharge(t.Context(), request.ExternalID).Payments
	if len(paid) != 2 || paid[0].EndToEndID != "" || paid[1].EndToEndID != paid[1].ID || len(paid[1].ID) != 32 {
		t.Errorf("payments: %+v", paid)
	}
}

// TestMintNeedsABankNearby: a charge is minted only where no call could have
// gone wrong.
func TestMintNeedsABankNearby(t *testing.T) {
	r := newRig(t, nil)
	mints := func() bool { _, ok := r.adapter.Mint(r.chargeRequest(payment.PIX)); return ok }
	if !mints() {
		t.Error("bank in process: not minted")
	}
	r.arm(OpTransfer, Refuse)
	if !mints() {
		t.Error("fault on transfer: not minted")
	}
	r.arm(OpCharge, NotifyNever)
	if mints() {
		t.Error("fault on charge: minted")
	}
	if answer := r.adapter.Charge(t.Context(), r.chargeRequest(payment.PIX)); answer.Outcome != processor.Done || !mints() {
		t.Errorf("fault is used up: not minted (%+v)", answer)
	}
	r.arm(OpCharge, Refuse)
	if err := r.control.Disarm(t.Context()); err != nil || !mints() {
		t.Errorf("faults cleared: not minted (%v)", err)
	}
	r.listen()
	if mints() {
		t.Error("bank far away: minted")
	}
	seeded := newRig(t, func(o *BankOptions) { o.Faults = FaultProfile{PerMille: 1} })
	if _, ok := seeded.adapter.Mint(seeded.chargeRequest(payment.PIX)); ok {
		t.Error("faults by seed: minted")
	}
}

func BenchmarkMint(b *testing.B) {
	for _, method := range []payment.Method{payment.PIX, payment.Boleto} {
		b.Run(string(method), func(b *testing.B) {
			r := newBenchRig(b, "")
			request := processor.ChargeRequest{
				ExternalID: "0000A1234567890123456789abcdefgh", Method: method, Amount: 12_345,
				ExpiresAt: start.Add(time.Hour), DueDate: "2026-11-30", MerchantName: "Padaria São João", MerchantCity: "São Paulo",
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := r.adapter.Mint(request); !ok {
					b.Fatal("not minted")
				}
			}
		})
	}
}
