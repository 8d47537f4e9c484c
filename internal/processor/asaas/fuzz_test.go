package asaas

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// FuzzAmount reads any number: what is read is written again as the same amount.
func FuzzAmount(f *testing.F) {
	for _, text := range []string{"0", "0.01", "10", "10.5", "10.50", "1234567890.12", "-3.40", "1e3", "10.001", "", ".", "1.", "99999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseAmount(text)
		if err != nil {
			return
		}
		back, err := a.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseAmount(string(back)); err != nil || again != a {
			t.Fatalf("%q is %d, written %s and read %d, %v", text, a, back, again, err)
		}
		var whole, part int64
		if n, _ := fmt.Sscanf(strings.TrimPrefix(string(back), "-"), "%d.%02d", &whole, &part); n != 2 || max(int64(a), -int64(a)) != whole*100+part {
			t.Fatalf("%q is %d cents, written %s", text, a, back)
		}
	})
}

// checkID fails unless an id can be stored and shown.
func checkID(t *testing.T, id string) {
	t.Helper()
	if !isToken(id) {
		t.Fatalf("id %q", id)
	}
}

// FuzzNotice reads any notice: only the token authenticates it, and its hints are complete.
func FuzzNotice(f *testing.F) {
	f.Add(testToken, []byte(`{"id":"evt_1","event":"PAYMENT_RECEIVED","payment":`+paymentJSON()+`}`))
	f.Add(testToken, []byte(`{"id":"evt_1","event":"TRANSFER_DONE","transfer":`+transferJSON()+`}`))
	f.Add("", []byte(`{"id":"evt_1","event":"PAYMENT_REFUNDED","payment":`+paymentJSON(`"refunds":null`, `"refunds":[{"value":1,"description":"`+ref+`","status":"DONE"}]`)+`}`))
	p := openAnswerer(f, &answerer{})
	f.Fuzz(func(t *testing.T, token string, body []byte) {
		id, err := p.VerifyNotice(http.Header{tokenHeader: {token}}, body, start)
		if err == nil && token != testToken {
			t.Fatalf("accepted with %q", token)
		}
		if err == nil {
			checkID(t, id)
		}
		hints, err := p.ParseNotice(body)
		if err != nil && len(hints) > 0 {
			t.Fatalf("%+v and %v", hints, err)
		}
		for _, h := range hints {
			checkID(t, h.ExternalID)
			switch h.Subject {
			case processor.SubjectRefund:
				checkID(t, h.PaymentID)
			default:
				checkID(t, h.ProcessorID)
			}
			if h.Payment != nil && (!isAmount(h.Payment.Amount) || h.Payment.ID != h.ProcessorID) {
				t.Fatalf("payment %+v", h.Payment)
			}
		}
	})
}

// FuzzQuestion reads any question: what is read is complete.
func FuzzQuestion(f *testing.F) {
	f.Add([]byte(`{"type":"TRANSFER","transfer":` + transferJSON() + `}`))
	f.Add([]byte(`{"type":"TRANSFER","transfer":` + transferJSON("a@example.com", "11987654321") + `}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := readQuestion(body)
		if err != nil {
			return
		}
		checkID(t, q.Transfer)
		if !isAmount(q.Amount) || q.Key == "" && q.OtherKey != "" || q.IsTo("") {
			t.Fatalf("%+v", q)
		}
	})
}

// FuzzAnswer answers every call with anything, as Asaas or a proxy in front of it might. Each
// report is about the request, complete and within bounds, and an error has no content.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		paymentJSON(), transferJSON(), listJSON(paymentJSON()), listJSON(transferJSON()), customers1, pixAnswer, refusal, noErrors, html,
		paymentJSON(`"status":"PENDING"`, `"status":"RECEIVED","paymentDate":"2026-11-20"`), `{"balance":1.00}`, listJSON(`{"id":"ftn_1","type":"TRANSFER_FEE","value":-0.45}`), `{"id":"w","url":"` + gatewayURL + `","enabled":true}`,
	} {
		for _, status := range []int{200, 400, 429} {
			f.Add(status, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 100 || status > 999 {
			return
		}
		_, clock := env.Virtual(start, 1)
		way := roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body)))}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := openDriver(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
				cancel() // no question waits for the end of the pause
			}
			return way(r)
		}), clock)
		checkTransfer(t, p.Transfer(ctx, transferOf, willing), transferOf.Amount)
		checkTransfer(t, p.Refund(ctx, processor.RefundRequest{ExternalID: ref, PaymentID: "pay_1", Amount: 1_00}, willing), 1_00)
		checkReport(t, p.QueryTransfer(ctx, ref))
		checkReport(t, p.QueryRefund(ctx, "pay_1", ref))
		charge := p.QueryCharge(ctx, ref)
		if (charge.Lookup == processor.LookupUnknown) != (charge.Cause != nil) && charge.Lookup != processor.NotFound {
			t.Fatalf("%+v", charge)
		}
		for _, paid := range charge.Payments {
			checkID(t, paid.ID)
			if !isAmount(paid.Amount) || paid.Cost < 0 || paid.Cost > money.Max || paid.ExternalID != ref || paid.PaidAt.After(start) {
				t.Fatalf("%+v", paid)
			}
		}
		if got := p.Charge(ctx, chargeOf, willing); got.Outcome == processor.Done && !got.Registering {
			checkID(t, got.Charge.ProcessorID)
			if got.Charge.Amount != chargeOf.Amount {
				t.Fatalf("%+v", got)
			}
		}
		p.CancelCharge(ctx, processor.CancelRequest{ExternalID: ref, Method: payment.PIX}, willing)
		for feed := range p.Feeds() {
			page, err := p.Read(ctx, feed, "2026-11-20|0|0|")
			if err == nil && (page.Next == "" || page.More == !page.Through.IsZero()) {
				t.Fatalf("%+v", page)
			}
			for _, fact := range page.Facts {
				if fact.Payment != nil && !isAmount(fact.Payment.Amount) || fact.Refund != nil && !isAmount(fact.Refund.Amount) || fact.Transfer != nil && !isAmount(fact.Transfer.Amount) ||
					fact.Cost != nil && (fact.Cost.Amount > money.Max || fact.Cost.Amount < -money.Max) {
					t.Fatalf("%+v", fact)
				}
			}
		}
		_ = p.Install(ctx, gatewayURL)
		p.Inspect(ctx)
		if balance, err := p.Balance(ctx); err == nil && status != http.StatusOK {
			t.Fatalf("%+v", balance)
		}
	})
}

func checkTransfer(t *testing.T, a processor.TransferAnswer, amount money.Cents) {
	t.Helper()
	if a.Cause != nil && (strings.Contains(a.Cause.Error(), "<html>") || strings.Contains(a.Cause.Error(), testKey)) {
		t.Fatalf("the cause has content: %v", a.Cause)
	}
	switch a.Outcome {
	case processor.Done:
		if checkReport(t, a.Report); a.Report.Amount != amount || a.Report.Lookup != processor.Found {
			t.Fatalf("%+v", a)
		}
	case processor.Refused:
		if a.Failure == nil || a.Failure.Code == "" || a.Failure.Message == "" || a.Evidence == "" {
			t.Fatalf("%+v", a)
		}
	}
}

func checkReport(t *testing.T, r processor.TransferReport) {
	t.Helper()
	if r.Lookup != processor.Found {
		return
	}
	if r.State != processor.TransferPaid && r.State != processor.TransferFailed && r.State != processor.TransferProcessing || r.Amount < 1 || r.Evidence == "" {
		t.Fatalf("%+v", r)
	}
}
