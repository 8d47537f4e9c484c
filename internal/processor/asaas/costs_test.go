package asaas

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// refundCost is what the sandbox charges for a refund.
const refundCost = "0.30"

// statementServer is Asaas' statement, of which it answers pages, the oldest entry first.
type statementServer struct {
	rows  []string
	days  []string
	asked int
}

func (s *statementServer) add(kind, value, day string) {
	s.rows = append(s.rows, fmt.Sprintf(`{"object":"financialTransaction","id":"ftn_%d","type":%q,"value":%s,"date":%q}`, len(s.rows), kind, value, day))
	s.days = append(s.days, day)
}

// RoundTrip implements [http.RoundTripper].
func (s *statementServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked++
	q := r.URL.Query()
	var list []string
	for i, row := range s.rows {
		if s.days[i] >= q.Get("startDate") {
			list = append(list, row)
		}
	}
	offset, err := strconv.Atoi(q.Get("offset"))
	if err != nil || r.URL.Path != "/v3/financialTransactions" || q.Get("order") != "asc" {
		return nil, fmt.Errorf("asked for %s", r.URL)
	}
	from := min(offset, len(list))
	to := min(from+pageSize, len(list))
	body := fmt.Sprintf(`{"object":"list","hasMore":%v,"data":[%s]}`, to < len(list), strings.Join(list[from:to], ","))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {jsonType}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1}, nil
}

// readCostsOf reads the statement to its end, and returns the ids of costs with their amounts.
func readCostsOf(t *testing.T, p *Processor, cursor string) (costs []string, next string) {
	t.Helper()
	for page := (processor.Page{Next: cursor, More: true}); page.More; next = page.Next {
		var err error
		page, err = p.Read(t.Context(), processor.FeedCosts, page.Next)
		must(t, err)
		for _, f := range page.Facts {
			if f.Cost == nil {
				costs = append(costs, "unreadable")
				continue
			}
			costs = append(costs, f.Cost.ID+" "+f.Cost.Amount.Decimal())
		}
	}
	return costs, next
}

// Fees that no report of a payment has are costs, and what was given back of them. An entry that
// cannot be read hides no other.
func TestCosts(t *testing.T) {
	t.Parallel()
	s := &statementServer{}
	for _, row := range [][2]string{
		{"PAYMENT_RECEIVED", "100.00"}, {"PAYMENT_FEE", "-0.99"}, {"TRANSFER", "-10.00"}, {"TRANSFER_FEE", "-0.45"}, {"REFUND_REQUEST_FEE", "-0.30"},
		{"REFUND_REQUEST_FEE_REVERSAL", "0.30"}, {"PIX_TRANSACTION_DEBIT_FEE", "-2"}, {"PROMOTIONAL_CODE_CREDIT", "0.10"}, {"PAYMENT_FEE_REVERSAL", "0.99"},
		{"TRANSFER_FEE", `"-0.45"`}, {"INSTANT_TEXT_MESSAGE_FEE", "-0.55"}, {"TRANSFER_FEE", "-99999999999.99"},
	} {
		s.add(row[0], row[1], today)
	}
	_, clock := env.Virtual(start, 1)
	got, _ := readCostsOf(t, openDriver(t, s, clock), cursor{day: today}.String())
	want := []string{"ftn_3 0.45", "ftn_4 0.30", "ftn_5 -0.30", "ftn_6 2.00", "ftn_7 -0.10", "ftn_8 -0.99", "unreadable", "ftn_10 0.55", "unreadable"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A pass goes on where the last one ended, so a day with many entries is read once, and once more
// when it is over.
func TestCostsAreReadOn(t *testing.T) {
	t.Parallel()
	s := &statementServer{}
	for range 1000 {
		s.add("PAYMENT_RECEIVED", "1.00", today)
	}
	_, clock := env.Virtual(start, 1)
	p := openDriver(t, s, clock, SettingBudget, "1000000")
	_, at := readCostsOf(t, p, p.Feeds()[processor.FeedCosts].From(clock.Now().Add(-24*time.Hour)))
	if s.asked > 12 {
		t.Errorf("%d requests of 1000 entries", s.asked)
	}
	s.asked = 0
	for n := range 10 {
		s.add("TRANSFER_FEE", "-0.45", today)
		var got []string
		if got, at = readCostsOf(t, p, at); !slices.Contains(got, fmt.Sprintf("ftn_%d 0.45", 1000+n)) {
			t.Errorf("the fee is not in %q", got)
		}
		clock.Advance(5 * time.Minute)
	}
	if s.asked > 10 {
		t.Errorf("%d requests of 10 entries", s.asked)
	}
	s.add("TRANSFER_FEE", "-0.46", today) // late, or in another place
	clock.Advance(24 * time.Hour)
	_, at = readCostsOf(t, p, at)
	got, _ := readCostsOf(t, p, at)
	if len(got) != 11 {
		t.Errorf("a day later: %q", got)
	}
}

// The balance is what Asaas has credited; the rest of the card payments, less fees and refunds, is
// to come.
func TestBalance(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	pix, card := chargeOf, chargeOf
	pix.ExternalID, card.ExternalID, card.Method, card.Installments, card.Amount = h.newID(), h.newID(), payment.CreditCard, 3, 100_00
	for _, r := range []processor.ChargeRequest{pix, card} {
		if a := h.driver.Charge(t.Context(), r, willing); a.Outcome != processor.Done {
			t.Fatalf("%+v", a)
		}
		h.pay(r.ExternalID)
	}
	first := h.payments(card.ExternalID)[0].ID
	h.call(http.MethodPost, "/v3/payments/"+first+"/refund", `{"value":10.00,"description":"painel"}`)
	h.elapse(t)
	want := processor.Balance{
		Amount: 10_00 - 9 - 30, ToCome: 100_00 - 10_00 - 3*(49+99), LastDay: "2027-02-24", // three times 32 days later
	}
	got, err := h.driver.Balance(t.Context())
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	h.clock.Advance(100 * 24 * time.Hour)
	all := got.Amount + got.ToCome
	if got, err = h.driver.Balance(t.Context()); err != nil || got.Amount != all || got.ToCome != 0 || got.LastDay != "" {
		t.Errorf("after all was credited: %+v, %v, want %s", got, err, all.Decimal())
	}
}

// A payment is credited on its creditDate, which Asaas names before; a confirmed one is not yet, of any method.
func TestCreditDate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status, day string
		credited    bool
	}{
		{"CONFIRMED", "", false}, {"CONFIRMED", "2026-12-22", false}, {"CONFIRMED", "2026-11-20", false},
		{"CHARGEBACK_REQUESTED", "", false}, {"CHARGEBACK_REQUESTED", "2026-12-22", false}, {"CHARGEBACK_REQUESTED", "2026-11-20", true},
	} {
		for _, method := range []string{"BOLETO", "CREDIT_CARD"} {
			v := wirePayment{Status: c.status, BillingType: method, CreditDate: c.day}
			if got := v.credited("2026-11-20"); got != c.credited {
				t.Errorf("%s %s, creditDate %q: %v", c.status, method, c.day, got)
			}
		}
	}
}
