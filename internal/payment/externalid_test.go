package payment_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/payment"
)

// The derivation must never change: if an order is looked up years later and from
// a restored backup, its processor must recognise the id. The vectors were
// computed independently, with Python's hashlib.
func TestExternalIDNeverChanges(t *testing.T) {
	t.Parallel()
	const (
		none         = "00000000-0000-0000-0000-000000000000"
		installation = "0190a3f2-6b1c-7c00-8a55-0123456789ab"
		merchant     = "0190a3f2-6b1d-7d11-9b66-fedcba987654"
	)
	for _, v := range []struct {
		installation string
		number       int64
		merchant     string
		operation    payment.Operation
		reference    string
		want         string
	}{
		{installation, 1, merchant, payment.OperationPayin, "order-1", "00001ihtrIPd0ZubfafOGFbEbpuxefV5"},
		{installation, 1, merchant, payment.OperationPayout, "order-1", "00001cgo412hTzrS45C6C45ek8xTZZG0"},
		{installation, 2, merchant, payment.OperationPayin, "order-1", "000021Xc2IPd0ZubfafOGFbEbpuxefV5"},
		{installation, 1, installation, payment.OperationPayin, "order-1", "00001Kx8WwbbCgdtRwa6M8hON1EZTFP8"},
		{merchant, 1, merchant, payment.OperationPayin, "order-1", "00001b4aMHREGsGDxM7goR2a5tjhkylp"},
		{installation, payment.MerchantNumberMax, merchant, payment.OperationPayin, "pedido 7 – ção 🙂", "zzzzz0Qoat1MEASFlccgQgUOvAutzIvJ"},
		{installation, 62, merchant, payment.OperationPayin, strings.Repeat("x", 128), "00010lRASUxomf50bAAuD5FPOQn2Ar3w"},
		{none, 0, none, payment.OperationPayout, "", "00000R0vYn2rZBB2uR75lBDHg87Jcs3n"},
	} {
		ids := payment.ExternalIDs{Installation: id(t, v.installation)}
		for i := range ids.Key {
			ids.Key[i] = byte(i)
		}
		got := ids.New(v.number, id(t, v.merchant), v.operation, v.reference)
		if got != v.want {
			t.Errorf("merchant %d, %s %q: %s, want %s", v.number, v.operation, v.reference, got, v.want)
		}
	}
}

// Orders that differ in anything have different ids, including the part in a
// static BR Code. All are compared with all, as two random ones hardly ever
// differ in only one thing.
func TestExternalIDIsUniquePerOrder(t *testing.T) {
	t.Parallel()
	ids := []payment.ID{{}, {1}, {0: 1, 15: 1}}
	complete, static, orders := map[string]bool{}, map[string]bool{}, 0
	for _, installation := range ids {
		for _, merchant := range ids {
			for number := range int64(4) {
				for _, operation := range []payment.Operation{payment.OperationPayin, payment.OperationPayout, payment.OperationRefund, payment.OperationPublicPayin} {
					for _, reference := range []string{"", "a", "b", "ab", "\x00a", "a\x00", "payin", "A"} {
						x := (&payment.ExternalIDs{Installation: installation}).New(number, merchant, operation, reference)
						if len(x) != payment.ExternalIDLength || strings.Trim(x, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
							t.Fatalf("%q is not 32 letters and digits", x)
						}
						complete[x], static[x[:payment.ExternalIDStaticLength]] = true, true
						orders++
					}
				}
			}
		}
	}
	if len(complete) != orders || len(static) != orders {
		t.Errorf("%d orders have %d ids, and %d in static codes", orders, len(complete), len(static))
	}
}

func TestMerchantNumberRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(0, payment.MerchantNumberMax).Draw(t, "number")
		ids := payment.ExternalIDs{Installation: anyID.Draw(t, "installation")}
		external := ids.New(number, anyID.Draw(t, "merchant"), payment.OperationPayin, rapid.String().Draw(t, "reference"))
		for length := payment.ExternalIDStaticLength; length <= len(external); length++ {
			for _, read := range []func(string) (int64, error){payment.MerchantNumber, ids.MerchantNumber} {
				if got, err := read(external[:length]); err != nil || got != number {
					t.Fatalf("%s: %d, %v; want %d", external[:length], got, err, number)
				}
			}
		}
	})
	good := strings.Repeat("0", payment.ExternalIDLength)
	for _, bad := range []string{"", good[:payment.ExternalIDStaticLength-1], good + "0", good[:31] + "-", "-" + good[1:], good[:30] + "é", good[:31] + "\x00", good[:31] + "~"} {
		if n, err := payment.MerchantNumber(bad); !errors.Is(err, payment.ErrExternalID) {
			t.Errorf("%q: %d, %v", bad, n, err)
		}
	}
}

// Ids of another installation, and ids with one changed character among the first 25,
// are not this installation's. The rest does not fit into a static code.
func TestForeignIDsAreRecognised(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ours := payment.ExternalIDs{Installation: payment.ID{1}, Key: [payment.ExternalIDKeyLength]byte{1}}
		other := payment.ExternalIDs{Installation: payment.ID{1}, Key: [payment.ExternalIDKeyLength]byte{2}}
		number := rapid.Int64Range(0, payment.MerchantNumberMax).Draw(t, "number")
		id := ours.New(number, anyID.Draw(t, "merchant"), payment.OperationPayin, "r")
		if n, err := other.MerchantNumber(id); !errors.Is(err, payment.ErrExternalID) || n != 0 {
			t.Fatalf("%s of another installation is of merchant %d, %v", id, n, err)
		}
		at := rapid.IntRange(0, payment.ExternalIDStaticLength-1).Draw(t, "position")
		letters := strings.ReplaceAll("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", id[at:at+1], "")
		to := rapid.SampledFrom([]byte(letters)).Draw(t, "character")
		changed := id[:at] + string(to) + id[at+1:]
		for _, text := range []string{changed, changed[:payment.ExternalIDStaticLength]} {
			if n, err := ours.MerchantNumber(text); !errors.Is(err, payment.ErrExternalID) {
				t.Fatalf("%s is of merchant %d, %v; the order's id is %s", text, n, err, id)
			}
		}
	})
}

func id(t *testing.T, text string) (id payment.ID) {
	t.Helper()
	if err := id.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return id
}
