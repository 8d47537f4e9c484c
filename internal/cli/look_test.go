package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// seedOrders adds to the first merchant a paid pay-in, a payout of unknown outcome, a refund and two
// events; one of them has a delivery.
func (s *shell) seedOrders() (p payment.Payin, q payment.Payout, r payment.Refund) {
	s.t.Helper()
	opened := s.open()
	m, err := opened.MerchantByNumber(s.t.Context(), 1)
	s.must(err)
	created := time.Unix(1_700_000_000, 0).UTC()
	id := func(n byte) payment.ID {
		v := payment.MinIDAt(created)
		v[15] = n
		return v
	}
	p = payment.Payin{
		Merchant: m.ID, ID: id(1), ReferenceID: "pedido-1", ExternalID: opened.ExternalID(&m, payment.OperationPayin, "pedido-1"), Method: payment.Boleto, Amount: 1990,
		Status: payment.PayinPaid, PaidAmount: 1990, EndToEndID: "E1", Version: 2, Processor: "sandbox", ProcessorID: "pay_1", CreatedAt: created, UpdatedAt: created, PaidAt: created,
	}
	p.Details.Boleto = &payment.BoletoDetail{Barcode: strings.Repeat("1", 44), DigitableLine: strings.Repeat("2", 47), OurNumber: "0042", DueDate: "2023-11-20"}
	q = payment.Payout{
		Merchant: m.ID, ID: id(2), ReferenceID: "saque-1", ExternalID: opened.ExternalID(&m, payment.OperationPayout, "saque-1"), Amount: 500, Status: payment.PayoutProcessing,
		Step: payment.StepUnknown, Version: 2, Processor: "sandbox", PIXKeyType: "EMAIL", Approval: payment.ApprovalNone, NextAt: created, SentAt: created, CreatedAt: created, UpdatedAt: created,
		Beneficiary: payment.Beneficiary{Name: "Maria Aparecida", Document: "52998224725", PIXKey: "maria@example.com"},
	}
	r = payment.Refund{
		Merchant: m.ID, ID: id(3), Payin: p.ID, ReferenceID: "devolucao-1", ExternalID: opened.ExternalID(&m, payment.OperationRefund, "devolucao-1"), Origin: payment.RefundByMerchant,
		Amount: 190, Status: payment.RefundProcessing, Version: 1, CreatedAt: created, UpdatedAt: created,
	}
	newPayout, err := opened.NewPayout(q, nil, "")
	s.must(err)
	receipt := payment.Receipt{
		Merchant: m.ID, ID: id(4), Payin: p.ID, Processor: "sandbox", ExternalID: "pay_e2e", OrderID: p.ExternalID, EndToEndID: "E1", Amount: 1990, Applied: 1990, PaidAt: created,
	}
	var needs store.Needs
	needs.Receipts(&receipt)
	needs.InsertPayin(opened.NewPayin(p, payment.PersonalData{Customer: []byte(`{"name":"João Souza","document":"11144477735","email":"joao@example.com","address":{"street":"Rua Um"}}`)}, nil))
	needs.InsertPayout(newPayout)
	needs.FoundTransfer(m.ID, opened.ExternalID(&m, payment.OperationPayout, "lost"))
	_, err = opened.Commit(s.t.Context(), &needs, store.Capacity{}, func(_ *store.Loaded, c *store.Changes) error {
		c.AddReceipt(receipt)
		c.AddRefund(r, nil)
		c.OpenCase(store.Case{Merchant: m.ID, ID: id(5), Kind: store.CasePayoutUnknown, Subject: q.ID, Amount: 500, Params: store.ReasonNoAnswer.With(nil)})
		surplus := payment.Receipt{Merchant: m.ID, ID: id(6), Payin: p.ID, Processor: "sandbox", ExternalID: "pay_again", OrderID: p.ExternalID, EndToEndID: "E2", Amount: 1990, PaidAt: created.Add(time.Minute)}
		c.AddReceipt(surplus)
		c.OpenCase(store.Case{Merchant: m.ID, ID: id(7), Kind: store.CaseOverpaid, Subject: p.ID, Amount: 1990, Params: store.OfReceipt(surplus.ID)})
		found := store.FoundTransfer{Merchant: m.ID, ID: id(8), ExternalID: opened.ExternalID(&m, payment.OperationPayout, "lost"), Processor: "sandbox", EndToEndID: "E3", Total: 700, Amount: 700}
		c.AddFoundTransfer(found)
		c.OpenCase(store.Case{Merchant: m.ID, ID: id(9), Kind: store.CasePayoutFound, Subject: found.ID, Amount: 700, Params: store.Params{
			"processor": "sandbox", "externalId": found.ExternalID, store.ParamEndToEndID: "E3", store.ParamSentAt: "2023-11-14T22:20:00Z", store.ParamPIXKey: "m•••@example.com", store.ParamReceiver: "M•••",
		}})
		return nil
	})
	s.must(err)
	s.must(opened.Close())
	return p, q, r
}

// caseNumber is the id of a seeded case.
func caseNumber(other payment.ID, n byte) string {
	other[15] = n
	return other.String()
}

// Each command to look shows orders of all merchants or of one, with tables that fit a terminal, and
// never personal data in clear text.
func TestLook(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, empty := range []string{"payin list", "payout list", "refund list", "event list", "delivery list", "dispute list"} {
		if out, _ := s.run(0, strings.Fields(empty)...); !strings.HasPrefix(out, "No ") || strings.Count(out, "\n") != 1 {
			t.Errorf("%s without merchants prints %q", empty, out)
		}
	}
	s.run(0, "merchant", "create", "Loja com um nome comprido demais")
	s.run(0, "merchant", "create", "Outra")
	p, q, r := s.seedOrders()
	for _, row := range []struct{ args, want, not string }{
		{"payin list", " " + p.ID.String() + " PAID BOLETO 19.90 sandbox Loja", ""},
		{"payin list --merchant Outra", "No pay-ins.", p.ID.String()},
		{"payin list --status paid --account sandbox", p.ID.String(), ""},
		{"payin list --status expired", "No pay-ins.", ""},
		{"payin list --since 1d", "No pay-ins.", ""},
		{"payin list --since 2023-11-14", p.ID.String(), ""},
		{"payin show " + p.ID.String(), "payer J••• S••• •••.444.777-•• j•••@example.com", "Rua"},
		{"payin show " + p.ID.String(), "digitable line 2222", ""},
		{"payin show " + p.ID.String(), "Payments:\n 2023-11-14 22:13:20Z sandbox R$ 19.90 pay_e2e", ""},
		{"payin show " + p.ID.String(), "refund " + r.ID.String() + " PROCESSING R$ 1.90", ""},
		{"payin show " + p.ID.String() + " --json", `"paymentMethod": "BOLETO"`, "joao@"},
		{"payout list", q.ID.String() + " PROCESSING unknown 5.00 sandb… Loja", ""},
		{"payout list --json", `"pixKey": "m•••@example.com"`, "Aparecida"},
		{"payout show " + q.ID.String(), "step unknown", ""},
		{"payout show " + q.ID.String(), "payout_unknown open", ""},
		{"payout show " + q.ID.String() + " --json", `"step": "unknown"`, "52998224725"},
		{"case show " + caseNumber(p.ID, 7), "\n payment at sandbox, R$ 19.90, 2023-11-14 22:14:20Z\n endToEndId E2\n processor id pay_again\n external id " + p.ExternalID + "\n of or to J••• S••• •••.444.777-•• j•••@example.com\n", "endToEndId E1\n processor"},
		{"case show " + caseNumber(p.ID, 9), "\n transfer at sandbox, R$ 7.00, 2023-11-14 22:20:00Z\n endToEndId E3\n", ""},
		{"case show " + caseNumber(p.ID, 9) + " --json", `"pixKey": "m•••@example.com"`, ""},
		{"case show " + caseNumber(p.ID, 5), "\n transfer at sandbox, R$ 5.00, 2023-11-14 22:13:20Z\n external id " + q.ExternalID + "\n Pix key m•••@example.com\n of or to M••• A••• •••.982.247-••\n", "Aparecida"},
		{"refund list", r.ID.String() + " PROCESSING 1.90 merchant Loja", ""},
		{"refund show " + r.ID.String(), "pay-in " + p.ID.String(), ""},
		{"balance list", "Outra 0.00 0.00 0.00 0.00 0.00 0.00", ""},
		{"balance show Outra", "available R$ 0.00", ""},
		{"balance show platform --json", `"ledger": {}`, ""},
		{"event list", "No events.", ""},
		{"case list --limit 1", "\n1 of 3 open cases. ", ""},
		{"case list --kind overpaid", "\n1 open case. ", "payout_found"},
		{"case list --merchant Outra", "No open cases.\n", ""},
		{"case list --closed", "No closed cases.\n", ""},
		{"case list --all", "\n3 cases. ", ""},
	} {
		out, _ := s.raw(0, strings.Fields(row.args)...)
		if text := strings.Join(strings.FieldsFunc(out, func(c rune) bool { return c == ' ' }), " "); !strings.Contains(text, row.want) || row.not != "" && strings.Contains(text, row.not) {
			t.Errorf("%s prints without %q or with %q\n%s", row.args, row.want, row.not, out)
		}
		if strings.Contains(row.args, " list") && !strings.HasPrefix(row.args, "case") && !strings.Contains(row.args, "json") {
			for line := range strings.Lines(out) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n ")); n > 100 {
					t.Errorf("%s prints %d columns: %s", row.args, n, line)
				}
			}
		}
		if strings.Contains(row.args, "json") && !json.Valid([]byte(out)) {
			t.Errorf("%s prints no JSON:\n%s", row.args, out)
		}
	}
	s.wantRefusals(q.ID.String())
}

// Every id, code and reference finds its order, and says which command shows it.
func TestFind(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	p, q, r := s.seedOrders()
	opened := s.open()
	m := p.Merchant
	_, err := opened.Commit(t.Context(), &store.Needs{}, store.Capacity{}, func(_ *store.Loaded, c *store.Changes) error {
		c.AddSearchTerm(m, p.ID, opened.SearchTerm(m, store.SearchCustomerDocument, "11144477735"))
		c.AddSearchTerm(m, q.ID, opened.SearchTerm(m, store.SearchPIXKey, "maria@example.com"))
		return nil
	})
	s.must(err)
	s.must(opened.Close())
	payin, payout, refund := "porteira payin show "+p.ID.String()+"\n", "porteira payout show "+q.ID.String()+"\n", "porteira refund show "+r.ID.String()+"\n"
	for text, want := range map[string]string{
		p.ID.String(): payin, p.ExternalID: payin, "pedido-1": payin, "E1": payin, "pay_1": payin, "pay_e2e": payin, "0042": payin, "111.444.777-35": payin,
		strings.Repeat("2", 47): payin, strings.Repeat("1", 44): payin, strings.Repeat("22222.22222 ", 4) + "2222222": payin,
		q.ID.String(): payout, q.ExternalID: payout, "saque-1": payout, "Maria@Example.com": payout,
		r.ID.String(): refund, r.ExternalID: refund, "devolucao-1": refund,
		caseNumber(p.ID, 7): "porteira case show " + caseNumber(p.ID, 7) + "\n", caseNumber(p.ID, 8): "porteira case show " + caseNumber(p.ID, 9) + "\n",
		"loja": "porteira balance show Loja\n", "sandbox": "porteira account show sandbox\n",
	} {
		if out, _ := s.raw(0, "find", text); !strings.Contains(out, want) {
			t.Errorf("%q finds\n%s", text, out)
		}
	}
	s.run(0, "merchant", "create", "Outra")
	if out, _ := s.raw(0, "find", "pedido-1", "--merchant", "Loja"); !strings.Contains(out, payin) {
		t.Errorf("in its merchant it is found as\n%s", out)
	}
	s.raw(1, "find", "pedido-1", "--merchant", "Outra")
	if _, stderr := s.raw(1, "find", "nowhere"); !strings.HasPrefix(stderr, "porteira: nothing was found: ") {
		t.Errorf("nothing is found as %q", stderr)
	}
	s.raw(2, "find", " ")
	s.exec("UPDATE payouts SET beneficiary = x'00'")
	if out, stderr := s.raw(1, "find", "saque-1"); !strings.Contains(stderr, "payouts.beneficiary") {
		t.Errorf("a damaged row is found as %q %q", out, stderr)
	}
	if out, _ := s.raw(0, "find", q.ID.String()); !strings.Contains(out, "payout "+q.ID.String()) {
		t.Errorf("a damaged row is found by its id as %q", out)
	}
}

// The Pix key in an event is shown to who says why, and the audit names both.
func TestEventIsRevealed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	opened := s.open()
	m, err := opened.MerchantByNumber(t.Context(), 1)
	s.must(err)
	_, err = opened.Commit(t.Context(), &store.Needs{}, store.Capacity{}, func(_ *store.Loaded, c *store.Changes) error {
		c.AddEvent(payment.Event{Merchant: m.ID, Type: payment.EventPayoutCompleted, Subject: payment.ID{1}}, []byte(`{"pixKey":"maria@example.com","pixKeyType":"EMAIL"}`), "")
		return nil
	})
	s.must(err)
	e, err := opened.EventNumbered(t.Context(), m.ID, 1)
	s.must(err)
	s.must(opened.Close())
	show := []string{"event", "show", payment.PublicEventID(e.ID), "--json"}
	if out, _ := s.raw(0, show...); !strings.Contains(out, "m•••@example.com") || strings.Contains(out, "maria") {
		t.Errorf("it is shown as %s", out)
	}
	s.raw(2, append(show, "--reveal", "--as", "ana")...)
	if out, _ := s.raw(0, append(show, "--reveal", "--as", "ana", "--reason", "complaint")...); !strings.Contains(out, "maria@example.com") {
		t.Errorf("it is revealed as %s", out)
	}
	if audit, _ := s.raw(0, "audit", "list", "--limit", "1", "--json"); !strings.Contains(audit, "reveal") || !strings.Contains(audit, "complaint") || !strings.Contains(audit, e.ID.String()) {
		t.Errorf("the audit has %s", audit)
	}
}

// wantRefusals checks what the commands say about what they cannot show.
func (s *shell) wantRefusals(payout string) {
	t := s.t
	t.Helper()
	for _, row := range []struct {
		args, stderr string
		code         int
	}{
		{"payin show " + payout, "porteira: pay-in " + payout + " not found: porteira find TEXT finds it by any other id\n", 1},
		{"payin show pedido-1", "porteira: \"pedido-1\" is not the id of a pay-in: porteira find TEXT finds it by any other id\n", 2},
		{"payin list --since yesterday", "*", 2},
		{"payin list --account nowhere", "porteira: account \"nowhere\" not found: porteira account list lists all accounts\n", 1},
		{"payin list --status gone", "*", 2},
		{"delivery list --status gone", "*", 2},
		{"event show evt_x", "porteira: \"evt_x\" is not the id of an event: porteira event list shows ids\n", 2},
	} {
		if _, stderr := s.raw(row.code, strings.Fields(row.args)...); row.stderr != "*" && stderr != row.stderr {
			t.Errorf("%s says %q", row.args, stderr)
		}
	}
}

// The list of disputes says if there are more than it shows.
func TestDisputeList(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	s.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 201)
		INSERT INTO disputes SELECT id, CAST(printf('%016d', i) AS BLOB), id, 'sandbox', i, '', '', 'MED', '', 1990, 0, '', 0, 0,
			CASE WHEN i = 1 THEN 'WON' ELSE 'OPEN' END, 1, 0, 0, 0, 0, 0, 0, 5, 5 FROM n, merchants WHERE number = 1`)
	out, _ := s.run(0, "dispute", "list", "--limit", "200")
	if !strings.HasPrefix(out, "CREATED ID KIND STATUS AMOUNT RESPOND BY MERCHANT\n") || strings.Count(out, " MED OPEN 19.90 Loja\n") != 200 ||
		!strings.HasSuffix(out, "\nThe newest 200; there are more: --limit lists them.\n") {
		t.Errorf("disputes are\n%s", out)
	}
	s.exec("UPDATE disputes SET reason = 'not recognised' WHERE status = 'WON'")
	won := strings.Split(first(s.raw(0, "dispute", "list", "--merchant", "Loja", "--status", "won")), "\n")[1]
	id := strings.Fields(won)[2]
	if out, _ = s.run(0, "dispute", "show", id); !strings.Contains(out, "\n merchant \"Loja\", reference \n reason: not recognised\n") {
		t.Errorf("the dispute is\n%s", out)
	}
	if out, _ = s.run(0, "dispute", "list", "--merchant", "Loja", "--status", "open", "--limit", "200"); strings.Count(out, " MED OPEN ") != 200 || strings.Contains(out, "more") {
		t.Errorf("open disputes are\n%s", out)
	}
}

// A merchant with anything open is not closed; the refusal lists it, with the commands that show it.
func TestMerchantIsNotClosed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	s.seedOrders()
	out, errs := s.run(1, "merchant", "close", "Loja")
	want := "WHAT LEFT SEE\npayout PROCESSING 1 porteira payout list --merchant \"Loja\" --status PROCESSING\n" +
		"refund PROCESSING 1 porteira refund list --merchant \"Loja\" --status PROCESSING\nopen case 3 porteira case list --merchant \"Loja\"\n"
	if out != want || !strings.HasPrefix(errs, "porteira: merchant \"Loja\" was not closed: it still has the above") {
		t.Errorf("writes %q and %q, want %q", out, errs, want)
	}
	if out, _ := s.run(1, "merchant", "close", "Loja", "--json"); !strings.Contains(out, `"noun": "refund"`) {
		t.Errorf("JSON %q", out)
	}
	if out, _ := s.run(0, "merchant", "close", "Loja", "--yes", "--as", "Ana", "--reason", "fraud"); !strings.HasPrefix(out, "Closed merchant") || !strings.Contains(out, "open case 3 ") {
		t.Errorf("closed nevertheless: %q", out)
	}
	if out, _ := s.run(0, "merchant", "show", "Loja"); !strings.Contains(out, "closed TIME") {
		t.Errorf("shows %q", out)
	}
	for _, tt := range []struct {
		args string
		code int
		want string // the beginning
	}{
		{"merchant reopen Loja", 2, "porteira: reopening a merchant takes --reason TEXT"},
		{"merchant reopen Loja --reason error", 0, "Reopened merchant \"Loja\": "},
		{"merchant reopen Loja --reason error", 1, "porteira: merchant \"Loja\" is not closed\n"},
		{"merchant close Loja --yes --as Ana", 2, "porteira: --yes takes --reason TEXT"},
	} {
		if out, errs := s.run(tt.code, strings.Fields(tt.args)...); !strings.HasPrefix(out+errs, tt.want) {
			t.Errorf("%s writes %q, want %q", tt.args, out+errs, tt.want)
		}
	}
}
