package apipix

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// TestLimits: amounts, ids, texts, keys and documents at their limits are valid by the official
// file, and arrive to the byte.
func TestLimits(t *testing.T) {
	h := newHarness(t, ProfileEfi)
	charger, sender := h.driver.(processor.Charger), h.driver.(processor.Transferrer)
	for name, r := range map[string]processor.ChargeRequest{
		"one cent, shortest id": {ExternalID: strings.Repeat("a", 26), Amount: 1, Description: ""},
		"most, longest id":      {ExternalID: strings.Repeat("Z", 35), Amount: money.Max, Description: strings.Repeat("ç", 500)},
		"accents and controls":  {ExternalID: strings.Repeat("0", 32), Amount: 99, Description: "Pão\x00 de \"queijo\" \\ \U0001F950\n"},
		"spaces alone":          {ExternalID: strings.Repeat("1", 32), Amount: 100, Description: "   "},
		"a second":              {ExternalID: strings.Repeat("2", 32), Amount: 10, ExpiresAt: start.Add(time.Second)},
		"in the past":           {ExternalID: strings.Repeat("3", 32), Amount: 10, ExpiresAt: start.Add(-time.Second)},
	} {
		r.Method, r.MerchantName, r.MerchantCity = payment.PIX, "Padaria São João", "São Paulo"
		if r.ExpiresAt.IsZero() {
			r.ExpiresAt = start.Add(time.Hour)
		}
		a, profile := charger.Charge(t.Context(), r, willing), h.driver.Profile()
		if a.Outcome != processor.Done {
			t.Errorf("%s: %+v", name, a)
			continue
		}
		if err := processor.CheckCharge(&profile, &r, &a.Charge); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		h.pay(t, r, r.Amount)
		if report := charger.QueryCharge(t.Context(), r.ExternalID); len(report.Payments) != 1 || report.Payments[0].Amount != r.Amount {
			t.Errorf("%s: %+v", name, report)
		}
	}
	for _, id := range []string{"", strings.Repeat("a", 25), strings.Repeat("a", 36), strings.Repeat("a", 25) + "-", strings.Repeat("a", 24) + "ç"} {
		r := chargeRequest()
		r.ExternalID = id
		if a := charger.Charge(t.Context(), r, willing); a.Outcome != processor.NotSent {
			t.Errorf("id %q: %+v", id, a)
		}
	}
	for i, r := range []processor.TransferRequest{
		{KeyType: "CPF", Key: "52998224725", Document: "52998224725", Amount: 1},
		{KeyType: "CNPJ", Key: "12ABC34501DE35", Document: "12ABC34501DE35", Amount: money.Max},
		{KeyType: "CNPJ", Key: "11222333000181", Document: "11222333000181", Amount: 100},
		{KeyType: "PHONE", Key: "+5511999998888", Document: "52998224725", Amount: 1_000},
		{KeyType: "EMAIL", Key: strings.Repeat("a", 64) + "@example.com", Document: "52998224725", Amount: 99},
		{KeyType: "EVP", Key: "123e4567-e89b-12d3-a456-426655440000", Document: "", Amount: 12_345},
	} {
		r.ExternalID, r.Name = h.newID(), "José da Conceição"
		if a := sender.Transfer(t.Context(), r, willing); a.Outcome != processor.Done || a.Report.Amount != r.Amount {
			t.Errorf("transfer %d: %+v", i, a)
			continue
		}
		list, err := h.bank.PeekTransfers(start, h.clock.Now())
		if err != nil || len(list) != i+1 || list[i].PIXKey != r.Key || list[i].Amount != r.Amount || list[i].ExternalID != r.ExternalID {
			t.Errorf("transfer %d arrived as %+v, %v", i, list, err)
		}
	}
}

// TestTokenEndsInFlight: an effect that is answered 401 may have been executed; a query gets a
// new token, and so does the next effect.
func TestTokenEndsInFlight(t *testing.T) {
	h := newHarness(t, ProfileEfi)
	charger := h.driver.(processor.Charger)
	h.face.ForgetTokens()
	if a := charger.Charge(t.Context(), chargeRequest(), willing); a.Outcome != processor.Unknown {
		t.Errorf("charge: %+v", a)
	}
	if report := charger.QueryCharge(t.Context(), hostileID); report.Lookup != processor.NotFound {
		t.Errorf("query: %+v", report)
	}
	h.face.ForgetTokens()
	if report := charger.QueryCharge(t.Context(), hostileID); report.Lookup != processor.NotFound {
		t.Errorf("query with an old token: %+v", report)
	}
	if a := charger.Charge(t.Context(), chargeRequest(), willing); a.Outcome != processor.Done {
		t.Errorf("charge again: %+v", a)
	}
}

// TestSlowAnswer: an answer that comes byte by byte, and never ends, ends with the caller's context.
func TestSlowAnswer(t *testing.T) {
	clock, began := env.NewSystemClock(), make(chan struct{}, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		if strings.HasSuffix(r.URL.Path, "/token") {
			_, _ = w.Write([]byte(`{"access_token":"t","expires_in":60}`))
			return
		}
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case began <- struct{}{}:
			default:
			}
			<-clock.NewTimer(time.Millisecond).C()
		}
	}))
	t.Cleanup(server.Close)
	p := open(t, clock, server.Client().Transport, ProfileEfi, server.URL).(*Efi)
	untilItBegins := func() context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-began
			cancel()
		}()
		return ctx
	}
	if a := p.Transfer(untilItBegins(), transferRequest(), willing); a.Outcome != processor.Unknown {
		t.Errorf("transfer: %+v", a)
	}
	if r := p.QueryTransfer(untilItBegins(), hostileID); r.Lookup != processor.LookupUnknown {
		t.Errorf("query: %+v", r)
	}
}
