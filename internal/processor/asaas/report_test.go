package asaas

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

func TestTransferReports(t *testing.T) {
	t.Parallel()
	const e2e = `"endToEndIdentifier":"E9999999920261120183000000000001"`
	done := transferJSON("PENDING", "DONE", `"endToEndIdentifier":null`, e2e)
	for name, want := range map[string]struct {
		list   string
		lookup processor.Lookup
		state  processor.TransferState
		amount money.Cents
		id     string
	}{
		"none":                    {listJSON(), processor.NotFound, "", 0, ""},
		"of others":               {listJSON(transferJSON(ref, "another"), transferJSON(`"`+ref+`"`, "null")), processor.NotFound, "", 0, ""},
		"pending":                 {listJSON(transferJSON()), processor.Found, processor.TransferProcessing, 10_00, "t-1"},
		"failed, then done":       {listJSON(strings.Replace(done, "t-1", "t-2", 1), transferJSON("PENDING", "FAILED")), processor.Found, processor.TransferPaid, 10_00, "t-2"},
		"failed, then pending":    {listJSON(transferJSON("t-1", "t-2"), transferJSON("PENDING", "CANCELLED")), processor.Found, processor.TransferProcessing, 10_00, "t-2"},
		"on two pages":            {listJSON(done, done), processor.Found, processor.TransferPaid, 10_00, "t-1"},
		"done twice":              {listJSON(strings.Replace(done, "t-1", "t-2", 1), done), processor.Found, processor.TransferPaid, 20_00, "t-1"},
		"one that proves nothing": {listJSON(done, transferJSON("t-1", "t-2", "PENDING", "NEW")), processor.LookupUnknown, "", 0, ""},
		"no hasMore":              {`{"data":[]}`, processor.LookupUnknown, "", 0, ""},
		"more without end":        {`{"hasMore":true,"data":[` + transferJSON(ref, "another") + `]}`, processor.LookupUnknown, "", 0, ""},
	} {
		a := &answerer{answers: map[string]string{"GET /transfers": "200 " + want.list}}
		got := openAnswerer(t, a).FindTransfer(t.Context(), processor.Ref{ExternalID: ref, Since: start})
		if got.Lookup != want.lookup || got.State != want.state || got.Amount != want.amount || got.ProcessorID != want.id || (got.Lookup == processor.LookupUnknown) != (got.Cause != nil) {
			t.Errorf("%s: %+v", name, got)
		}
		if !strings.Contains(a.asked[0], "dateCreated%5Bge%5D=2026-11-20") {
			t.Errorf("%s: asked %v", name, a.asked)
		}
	}
	for name, text := range hostile {
		a := &answerer{answers: map[string]string{"GET /transfers": text, "GET /transfers/t-1": text}}
		for _, r := range []processor.Ref{{ExternalID: ref}, {ExternalID: ref, ProcessorID: "t-1"}} {
			if got := openAnswerer(t, a).FindTransfer(t.Context(), r); got.Lookup != processor.LookupUnknown || got.Cause == nil {
				t.Errorf("%s, %+v: %+v", name, r, got)
			}
		}
	}
}

// A row that cannot be read stops no other: it is listed as such if it may be of an order of
// ours, and makes a look-up unknown only if it may be the one that is searched for.
func TestUnreadableRows(t *testing.T) {
	t.Parallel()
	other := strings.Repeat("9", 32)
	broken := transferJSON("10.00", `"10.00"`)
	for name, want := range map[string]struct {
		row        string
		lookup     processor.Lookup
		unreadable int
	}{
		"of another program":  {strings.Replace(broken, ref, "pedido 1", 1), processor.Found, 0},
		"without a reference": {strings.Replace(broken, `"`+ref+`"`, "null", 1), processor.Found, 0},
		"cut text":            {strings.Replace(strings.Replace(broken, ref, other, 1), "{", `{"description":"\ud83d",`, 1), processor.Found, 1},
		"of another order":    {strings.Replace(broken, ref, other, 1), processor.Found, 1},
		"of this order":       {broken, processor.LookupUnknown, 1},
		"a wrong reference":   {strings.Replace(broken, `"`+ref+`"`, "7", 1), processor.LookupUnknown, 1},
		"no object":           {"7", processor.LookupUnknown, 1},
	} {
		a := &answerer{answers: map[string]string{
			"GET /transfers": "200 " + listJSON(transferJSON(), want.row),
			"GET /payments":  "200 " + listJSON(strings.Replace(want.row, "t-1", "pay_1", 1)),
		}}
		p := openAnswerer(t, a)
		if got := p.QueryTransfer(t.Context(), ref); got.Lookup != want.lookup {
			t.Errorf("%s: %+v", name, got)
		}
		for _, feed := range []processor.Feed{processor.FeedTransfers, processor.FeedPayments} {
			page, err := p.Read(t.Context(), feed, "2026-11-20|0|0|")
			n := 0
			for _, fact := range page.Facts {
				if fact.Unreadable != nil && fact.Unreadable.Cause == processor.InvalidValues {
					n++
				}
			}
			if err != nil || n != want.unreadable {
				t.Errorf("%s, %s: %+v, %v", name, feed, page, err)
			}
		}
	}
}

// A transfer is looked up by its id. If it failed and Asaas asks for consent, the list may have
// another one of the payout.
func TestTransferByID(t *testing.T) {
	t.Parallel()
	const e2e = `"endToEndIdentifier":"E9999999920261120183000000000001"`
	failed, done := transferJSON("PENDING", "FAILED"), transferJSON("PENDING", "DONE", `"endToEndIdentifier":null`, e2e)
	other := strings.Replace(done, "t-1", "t-2", 1)
	const none = `404 {"errors":[{"code":"not_found","description":""}]}`
	for name, want := range map[string]struct {
		byID, list, validation string
		id                     string
		state                  processor.TransferState
	}{
		"done":                        {"200 " + done, "", "on", "t-1", processor.TransferPaid},
		"failed, without consent":     {"200 " + failed, "", "off", "t-1", processor.TransferFailed},
		"failed, and another is done": {"200 " + failed, listJSON(other, failed), "on", "t-2", processor.TransferPaid},
		"failed, and the list lags":   {"200 " + failed, listJSON(), "on", "t-1", processor.TransferFailed},
		"not found, but listed":       {none, listJSON(other), "on", "t-2", processor.TransferPaid},
		"not found":                   {none, listJSON(), "on", "", ""},
		"failed, and no list":         {"200 " + failed, html, "on", "", ""},
		"another payout's":            {"200 " + strings.Replace(done, ref, "another", 1), "", "on", "", ""},
	} {
		a := &answerer{answers: map[string]string{"GET /transfers/t-1": want.byID, "GET /transfers": "200 " + want.list}}
		got := openAnswerer(t, a, SettingValidation, want.validation).FindTransfer(t.Context(), processor.Ref{ExternalID: ref, ProcessorID: "t-1", Since: start})
		if got.ProcessorID != want.id || got.State != want.state || (got.Lookup == processor.Found) != (want.id != "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A list whose filter by day is ignored is read until its rows are older than that day, if it
// begins with the newest.
func TestListWithoutFilter(t *testing.T) {
	t.Parallel()
	row := func(day string) string { return transferJSON(ref, "another", "2026-11-20", day) }
	for name, want := range map[string]struct {
		days []string
		ends bool
	}{
		"newest first, older":    {[]string{"2026-11-10", "2026-11-09"}, true},
		"newest first, some new": {[]string{"2026-11-20", "2026-11-09"}, false},
		"oldest first":           {[]string{"2026-11-09", "2026-11-10"}, false},
		"one day":                {[]string{"2026-11-09", "2026-11-09"}, false},
	} {
		var list []string
		for _, day := range want.days {
			list = append(list, row(day))
		}
		a := &answerer{answers: map[string]string{"GET /transfers": `200 {"hasMore":true,"data":[` + strings.Join(list, ",") + `]}`}}
		got := openAnswerer(t, a).FindTransfer(t.Context(), processor.Ref{ExternalID: ref, Since: start})
		if (got.Lookup == processor.NotFound) != want.ends || want.ends && len(a.asked) != 1 {
			t.Errorf("%s: %+v after %d calls", name, got, len(a.asked))
		}
	}
}

func TestRefundReports(t *testing.T) {
	t.Parallel()
	refund := func(status, value, description string) string {
		return `{"dateCreated":"2026-11-20 15:30:00","status":"` + status + `","value":` + value + `,"description":` + description + `}`
	}
	ours := `"` + ref + `"`
	for name, want := range map[string]struct {
		refunds string
		lookup  processor.Lookup
		state   processor.TransferState
		amount  money.Cents
	}{
		"null":                {"null", processor.NotFound, "", 0},
		"none":                {"[]", processor.NotFound, "", 0},
		"of the panel":        {"[" + refund("DONE", "1.00", "null") + "]", processor.NotFound, "", 0},
		"pending":             {"[" + refund("PENDING", "1.00", ours) + "]", processor.Found, processor.TransferProcessing, 1_00},
		"done":                {"[" + refund("DONE", "1.00", ours) + "]", processor.Found, processor.TransferPaid, 1_00},
		"canceled":            {"[" + refund("CANCELLED", "1.00", ours) + "]", processor.Found, processor.TransferFailed, 1_00},
		"canceled, then done": {"[" + refund("CANCELLED", "1.00", ours) + "," + refund("DONE", "1.00", ours) + "]", processor.Found, processor.TransferPaid, 1_00},
		"done, then canceled": {"[" + refund("DONE", "1.00", ours) + "," + refund("CANCELLED", "1.00", ours) + "]", processor.Found, processor.TransferPaid, 1_00},
		"done twice":          {"[" + refund("DONE", "1.00", ours) + "," + refund("DONE", "1.00", ours) + "]", processor.Found, processor.TransferPaid, 2_00},
		"an unknown status":   {"[" + refund("SENT", "1.00", ours) + "]", processor.LookupUnknown, "", 0},
		"a wrong amount":      {"[" + refund("DONE", "0", ours) + "]", processor.LookupUnknown, "", 0},
	} {
		a := &answerer{answers: map[string]string{"GET /payments/pay_1": "200 " + paymentJSON(`"refunds":null`, `"refunds":`+want.refunds)}}
		got := openAnswerer(t, a).QueryRefund(t.Context(), "pay_1", ref)
		if got.Lookup != want.lookup || got.State != want.state || got.Amount != want.amount {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, text := range hostile {
		a := &answerer{answers: map[string]string{"GET /payments/pay_1": text, "POST /payments/pay_1/refund": text}}
		p := openAnswerer(t, a)
		if got := p.QueryRefund(t.Context(), "pay_1", ref); got.Lookup != processor.LookupUnknown || got.Cause == nil {
			t.Errorf("%s: %+v", name, got)
		}
		if got := p.Refund(t.Context(), processor.RefundRequest{ExternalID: ref, PaymentID: "pay_1", Amount: 1_00}, willing); got.Outcome != processor.Unknown || got.Cause == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	a := &answerer{answers: map[string]string{"POST /payments/pay_1/refund": "200 " + paymentJSON(`"refunds":null`, `"refunds":[`+refund("PENDING", "1.00", `"other"`)+`]`)}}
	if got := openAnswerer(t, a).Refund(t.Context(), processor.RefundRequest{ExternalID: ref, PaymentID: "pay_1", Amount: 1_00}, willing); got.Outcome != processor.Unknown {
		t.Errorf("without our id: %+v", got)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	request := processor.CancelRequest{ExternalID: ref, ProcessorID: "pay_1", Method: payment.PIX}
	for name, want := range map[string]struct {
		get, del string
		outcome  processor.Outcome
		notFound bool
	}{
		"deleted":         {"200 " + paymentJSON(), `200 {"deleted":true,"id":"pay_1"}`, processor.Done, false},
		"before":          {"200 " + paymentJSON(`"deleted":false`, `"deleted":true`), "", processor.Done, false},
		"paid":            {"200 " + paymentJSON(`"status":"PENDING"`, `"status":"RECEIVED","paymentDate":"2026-11-20"`), "", processor.Refused, false},
		"never made":      {`404 {"errors":[{"code":"not_found","description":""}]}`, "", processor.Unknown, true},
		"paid meanwhile":  {"200 " + paymentJSON(), "400 " + refusal, processor.Unknown, false},
		"another id":      {"200 " + paymentJSON(), `200 {"deleted":true,"id":"pay_2"}`, processor.Unknown, false},
		"not deleted":     {"200 " + paymentJSON(), `200 {"deleted":false,"id":"pay_1"}`, processor.Unknown, false},
		"later":           {"200 " + paymentJSON(), "429 {}", processor.Later, false},
		"another's order": {"200 " + paymentJSON(ref, "another"), "", processor.Unknown, false},
	} {
		listed := "200 " + listJSON(strings.TrimPrefix(want.get, "200 "))
		if want.notFound {
			listed = "200 " + listJSON()
		}
		for by, list := range map[string]string{"listed": listed, "by id": "500 " + html} {
			a := &answerer{answers: map[string]string{"GET /payments": list, "GET /payments/pay_1": want.get, "DELETE /payments/pay_1": want.del}}
			if got := openAnswerer(t, a).CancelCharge(t.Context(), request, willing); got.Outcome != want.outcome || got.NotFound != want.notFound {
				t.Errorf("%s, %s: %+v", name, by, got)
			}
		}
	}
	two := "200 " + listJSON(paymentJSON(), paymentJSON("pay_1", "pay_2"))
	a := &answerer{answers: map[string]string{"GET /payments": two, "DELETE /payments/pay_1": `200 {"deleted":true,"id":"pay_1"}`, "DELETE /payments/pay_2": `200 {"deleted":true,"id":"pay_2"}`}}
	if got := openAnswerer(t, a).CancelCharge(t.Context(), request, willing); got.Outcome != processor.Done || len(a.asked) != 3 {
		t.Errorf("requested twice: %+v after %v", got, a.asked)
	}
}

// A list shows one instalment a row, and not how many there are.
func TestListedInstallments(t *testing.T) {
	t.Parallel()
	for installment, want := range map[string]int{"": 1, "i-1": 0} {
		v := wirePayment{
			ID: "pay_1", BillingType: string(payment.CreditCard), Status: statusDeposit, Value: 10_00, ConfirmedDate: "2026-11-20",
			ExternalReference: ref, Installment: installment,
		}
		facts := paymentFacts(processor.FeedPayments, start, &v)
		if len(facts) != 1 || facts[0].Payment == nil || facts[0].Payment.Card == nil || facts[0].Payment.Card.Installments != want {
			t.Errorf("installment %q: %+v", installment, facts)
		}
	}
}
