package apipix

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/apipixface"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// byPath answers requests by the end of their path; others are answered 404.
type byPath map[string]*foreign

// RoundTrip implements [http.RoundTripper].
func (b byPath) RoundTrip(r *http.Request) (*http.Response, error) {
	for end, f := range b {
		if strings.HasSuffix(r.URL.Path, end) {
			return f.RoundTrip(r)
		}
	}
	return standard(404, "NaoEncontrado", "").RoundTrip(r)
}

func infractionJSON(id, status, value, until string) string {
	return fmt.Sprintf(`{"idInfracao":%s,"endToEndId":%q,"protocolo":"7","valor":%s,"razao":"FRAUD","status":%q,"dadosAnalise":{"prazoFinalizacao":%q}}`, id, hostileE2E, value, status, until)
}

func infractionsAnswer(page, pages int, entries ...string) *foreign {
	return &foreign{status: 200, contentType: jsonType, body: fmt.Sprintf(`{"parametros":{"paginacao":{"paginaAtual":%d,"quantidadeDePaginas":%d}},"infracoes":[%s]}`,
		page, pages, strings.Join(entries, ","))}
}

// medReturn is a return of a payment by the MED.
func medReturn(id, value, status string) pixReturn {
	return pixReturn{ID: id, ReturnID: "D" + id, Value: value, Nature: natureFraud, Status: status}
}

// An infraction is one dispute, with the return that it leads to; other returns are disputes of
// their own.
func TestDisputesOfInfractions(t *testing.T) {
	t.Parallel()
	paidAt := start.Add(-time.Hour)
	until := start.Add(5 * 24 * time.Hour).Format(time.RFC3339)
	for name, c := range map[string]struct {
		status, value string
		returns       []pixReturn
		later         time.Duration
		state         processor.DisputeState
		amount, lost  int64
		others        int
	}{
		"open":                      {status: "ABERTA", value: `"100.00"`, state: processor.DisputeOpen, amount: 100_00},
		"of all":                    {status: "ABERTA", value: `"123.45"`, state: processor.DisputeOpen, amount: 123_45},
		"of more than all":          {status: "ABERTA", value: `"200.00"`, state: processor.DisputeOpen, amount: 123_45},
		"an amount that is unclear": {status: "ABERTA", value: `100`, state: processor.DisputeOpen, amount: 123_45},
		"no amount":                 {status: "ABERTA", value: `null`, state: processor.DisputeOpen, amount: 123_45},
		"defended":                  {status: "EM_DEFESA", value: `"100.00"`, state: processor.DisputeOpen, amount: 100_00},
		"being returned":            {status: "ACEITA", value: `"100.00"`, returns: []pixReturn{medReturn("a", "100.00", statusProcessing)}, state: processor.DisputeOpen, amount: 100_00},
		"accepted":                  {status: "ACEITA", value: `"100.00"`, state: processor.DisputeOpen, amount: 100_00},
		"returned":                  {status: "ACEITA", value: `"100.00"`, returns: []pixReturn{medReturn("a", "100.00", statusReturned)}, state: processor.DisputeLost, amount: 100_00, lost: 100_00},
		"returned more":             {status: "ACEITA", value: `"100.00"`, returns: []pixReturn{medReturn("a", "110.00", statusReturned)}, state: processor.DisputeLost, amount: 100_00, lost: 110_00},
		"returned in part":          {status: "ACEITA", value: `"100.00"`, returns: []pixReturn{medReturn("a", "30.00", statusReturned)}, state: processor.DisputeLost, amount: 100_00, lost: 30_00},
		"returned in two parts": {
			status: "ACEITA", value: `"100.00"`, returns: []pixReturn{medReturn("a", "30.00", statusReturned), medReturn("b", "20.00", statusReturned)},
			state: processor.DisputeLost, amount: 100_00, lost: 30_00, others: 1,
		},
		"not returned":            {status: "ACEITA", value: `"100.00"`, returns: []pixReturn{medReturn("a", "100.00", statusFailed)}, state: processor.DisputeWon, amount: 100_00},
		"not returned in 90 days": {status: "ACEITA", value: `"100.00"`, later: refundWindow, state: processor.DisputeWon, amount: 100_00},
		"rejected":                {status: "REJEITADA", value: `"100.00"`, state: processor.DisputeWon, amount: 100_00},
		"canceled":                {status: "CANCELADA_EFI", value: `"100.00"`, state: processor.DisputeWon, amount: 100_00},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v infraction
			if err := unmarshal(jsontext.Value(infractionJSON(`"i-1"`, c.status, c.value, until)), &v); err != nil || !v.valid() {
				t.Fatalf("%+v, %v", v, err)
			}
			p := pix{EndToEndID: hostileE2E, TxID: hostileID, Value: "123.45", Time: formatTime(paidAt), Returns: c.returns}
			list, ok := p.disputesOf([]infraction{v}, start.Add(c.later))
			if !ok || len(list) != 1+c.others {
				t.Fatalf("%+v, %v", list, ok)
			}
			d := list[0]
			if d.ID != "infracao-i-1" || d.PaymentID != hostileE2E || d.Kind != payment.KindMED || d.Reason != "FRAUD" || d.RespondBy.Format(time.RFC3339) != until {
				t.Errorf("dispute %+v", d)
			}
			if d.State != c.state || int64(d.Amount) != c.amount || int64(d.Lost) != c.lost {
				t.Errorf("dispute %+v, want %s, %d, lost %d", d, c.state, c.amount, c.lost)
			}
			if back := c.returns; len(back) > 0 && d.ReturnID != back[0].name(hostileE2E) || len(back) == 0 && d.ReturnID != "" {
				t.Errorf("it led to the return %q", d.ReturnID)
			}
			for _, d := range list[1:] {
				if d.State != processor.DisputeLost || d.Amount != 20_00 || strings.HasPrefix(d.ID, infractionPrefix) {
					t.Errorf("the other return is %+v", d)
				}
			}
		})
	}
}

// The return belongs to the infraction that was accepted, not to another one of the payment.
func TestReturnOfOneOfTwoInfractions(t *testing.T) {
	t.Parallel()
	read := func(id, status string) infraction {
		var v infraction
		if err := unmarshal(jsontext.Value(infractionJSON(id, status, `"100.00"`, "")), &v); err != nil || !v.valid() {
			t.Fatalf("%+v, %v", v, err)
		}
		return v
	}
	p := pix{EndToEndID: hostileE2E, TxID: hostileID, Value: "123.45", Time: formatTime(start.Add(-time.Hour)), Returns: []pixReturn{medReturn("a", "100.00", statusReturned)}}
	for _, first := range []string{infractionOpen, infractionDefended, infractionRejected, infractionCanceled} {
		list, ok := p.disputesOf([]infraction{read(`"i-1"`, first), read(`"i-2"`, infractionAccepted)}, start)
		if !ok || len(list) != 2 {
			t.Fatalf("%+v, %v", list, ok)
		}
		for _, d := range list {
			if lost := d.ID == "infracao-i-2"; lost != (d.State == processor.DisputeLost) {
				t.Errorf("the first is %s: %s is %s", first, d.ID, d.State)
			}
		}
	}
}

// While several infractions of a payment are undecided, a return is not taken for that of one of
// them: it may turn out to be of another one, and the money would be taken twice.
func TestReturnOfUndecidedInfractions(t *testing.T) {
	t.Parallel()
	p := pix{EndToEndID: hostileE2E, TxID: hostileID, Value: "123.45", Time: formatTime(start.Add(-time.Hour)), Returns: []pixReturn{medReturn("a", "50.00", statusReturned)}}
	lost := map[string]bool{}
	for _, statuses := range [][2]string{{infractionOpen, infractionOpen}, {infractionDefended, infractionOpen}, {infractionOpen, infractionAccepted}, {infractionRejected, infractionAccepted}} {
		var list []infraction
		for i, status := range statuses {
			var v infraction
			if err := unmarshal(jsontext.Value(infractionJSON(fmt.Sprintf(`"i-%d"`, i+1), status, `"50.00"`, "")), &v); err != nil {
				t.Fatal(err)
			}
			list = append(list, v)
		}
		disputes, ok := p.disputesOf(list, start)
		if !ok || len(disputes) != 2 {
			t.Fatalf("%v: %+v, %v", statuses, disputes, ok)
		}
		for _, d := range disputes {
			if d.State == processor.DisputeLost {
				lost[d.ID] = true
			}
		}
	}
	if len(lost) != 1 || !lost["infracao-i-2"] {
		t.Errorf("one return, lost: %v", lost)
	}
}

// paidCharge is an answer about a charge that was paid.
func paidCharge() string {
	members := goodCharge()
	members["status"], members["pix"] = `"CONCLUIDA"`, "["+goodPayment+"]"
	return object(members)
}

// With any answer to the list of infractions, the payments of a charge are reported, and the other
// lists are read on.
func TestInfractionsAreNotNeeded(t *testing.T) {
	t.Parallel()
	paid := paidCharge()
	open := infractionJSON("17", "ABERTA", `"123.45"`, "")
	for name, c := range map[string]struct {
		answer                        *foreign
		disputes, changes, unreadable int
		incomplete                    bool
	}{
		"a dispute":            {infractionsAnswer(0, 1, open), 1, 1, 0, false},
		"a list without pages": {&foreign{status: 200, contentType: jsonType, body: `{"infracoes":[` + open + `]}`}, 1, 1, 0, false},
		"a list alone":         {&foreign{status: 200, contentType: jsonType, body: `[` + open + `]`}, 1, 1, 0, false},
		"an unknown status":    {infractionsAnswer(0, 1, infractionJSON("17", "NOVA", `"1.00"`, ""), open), 1, 1, 1, false},
		"no permission":        {standard(403, "AcessoNegado", ""), 0, 0, 0, false},
		"no such route":        {standard(404, "NaoEncontrado", ""), 0, 0, 0, false},
		"another form":         {&foreign{status: 200, contentType: jsonType, body: `{"infracoes":7}`}, 0, 0, 1, false},
		"another page":         {infractionsAnswer(1, 2, open), 0, 0, 1, false},
		"unavailable":          {standard(503, "ServicoIndisponivel", ""), 0, 0, 0, true},
		"too many requests":    {standard(429, "", ""), 0, 0, 0, true},
		"a test environment":   {&foreign{status: 500, contentType: jsonType, body: `{"nome":"InfracaoErroInterno","mensagem":"Funcionalidade desabilitada em ambiente de homologação."}`}, 0, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newHostile(t, byPath{
				"/cob/" + hostileID: {status: 200, contentType: jsonType, body: paid}, "/gn/infracoes": c.answer,
				"/pix/" + hostileE2E: {status: 200, contentType: jsonType, body: goodPayment},
			})
			d.clock.Advance(infractionsFrom + time.Hour)
			report := d.QueryCharge(t.Context(), hostileID)
			if report.Lookup != processor.Found || len(report.Payments) != 1 || len(report.Disputes) != c.disputes || c.incomplete != (report.Incomplete != nil) {
				t.Errorf("charge: %+v", report)
			}
			page, err := d.Read(t.Context(), processor.FeedChanges, (&cursor{list: listInfractions, from: start.Add(-time.Hour)}).String())
			if err != nil || c.incomplete != (page.Missing != nil) || page.More || c.incomplete != page.Through.IsZero() {
				t.Fatalf("changes: %+v, %v", page, err)
			}
			unreadable := 0
			for _, f := range page.Facts {
				if f.Unreadable != nil {
					unreadable++
				}
			}
			if len(page.Facts) != c.changes+c.unreadable || unreadable != c.unreadable {
				t.Errorf("changes: %+v", page)
			}
		})
	}
}

// cut is a bank whose list of infractions has a first page, and another answer than its further ones;
// nil: they have no end.
type cut struct {
	byPath

	later *foreign
}

// RoundTrip implements [http.RoundTripper].
func (c *cut) RoundTrip(r *http.Request) (*http.Response, error) {
	number, err := strconv.Atoi(r.URL.Query().Get("paginacao.paginaAtual"))
	switch {
	case err != nil || number == 0 || !strings.HasSuffix(r.URL.Path, "/gn/infracoes"):
		return c.byPath.RoundTrip(r)
	case c.later != nil:
		return c.later.RoundTrip(r)
	default:
		return infractionsAnswer(number, 1_000, infractionOf(fmt.Sprintf("E%031d", number))).RoundTrip(r)
	}
}

// forgetful is a bank that refuses to list infractions of long ago, and has no later ones.
type forgetful struct{ byPath }

// RoundTrip implements [http.RoundTripper].
func (f forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	if from, ok := parseTime(r.URL.Query().Get("inicio")); strings.HasSuffix(r.URL.Path, "/gn/infracoes") && ok && from.Before(start.Add(24*time.Hour)) {
		return standard(400, "inicio", "").RoundTrip(r)
	}
	return f.byPath.RoundTrip(r)
}

// Money that the MED took is booked also if the bank lists only later infractions: none of its charge
// would ever be shown otherwise, and the merchant would keep it.
func TestInfractionsOfLongAgoAreRefused(t *testing.T) {
	t.Parallel()
	members := goodCharge()
	members["status"] = `"CONCLUIDA"`
	members["pix"] = "[" + strings.Replace(goodPayment, "{", `{"devolucoes":[{"id":"med1","rtrId":"D1","valor":"30.00","natureza":"MED_FRAUDE","status":"DEVOLVIDO"}],`, 1) + "]"
	d := newHostile(t, forgetful{byPath{
		"/cob/" + hostileID: {status: 200, contentType: jsonType, body: object(members)},
		"/gn/infracoes":     infractionsAnswer(0, 1),
	}})
	d.clock.Advance(40 * 24 * time.Hour)
	report := d.QueryCharge(t.Context(), hostileID)
	if len(report.Payments) != 1 || len(report.Disputes) != 1 || report.Disputes[0].State != processor.DisputeLost || report.Disputes[0].Amount != 30_00 {
		t.Errorf("%+v", report)
	}
}

// infractionOf is an open infraction of another payment.
func infractionOf(e2e string) string {
	return strings.Replace(infractionJSON("1", "ABERTA", `"1.00"`, ""), hostileE2E, e2e, 1)
}

// A list of infractions that was not read to its end does not prove that a payment has none: else its
// dispute is given up as one that the bank does not confirm. The payment and its returns are known, and
// the lists of changes are read on.
func TestInfractionsThatAreCutAreIncomplete(t *testing.T) {
	t.Parallel()
	returned := strings.Replace(goodPayment, "{", `{"devolucoes":[{"id":"med1","rtrId":"D1","valor":"30.00","natureza":"MED_FRAUDE","status":"DEVOLVIDO"}],`, 1)
	for name, later := range map[string]*foreign{
		"no end":          nil,
		"another form":    {status: 200, contentType: jsonType, body: `{"infracoes":7}`},
		"another page":    infractionsAnswer(7, 8),
		"refused":         standard(403, "AcessoNegado", ""),
		"without entries": infractionsAnswer(1, 3),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, paid := range []string{goodPayment, returned} {
				members := goodCharge()
				members["status"], members["pix"] = `"CONCLUIDA"`, "["+paid+"]"
				bank := &cut{byPath{
					"/cob/" + hostileID:  {status: 200, contentType: jsonType, body: object(members)},
					"/pix/" + hostileE2E: {status: 200, contentType: jsonType, body: paid},
					"/v2/pix":            {status: 200, contentType: jsonType, body: `{"parametros":{"paginacao":{"paginaAtual":0,"quantidadeDePaginas":1}},"pix":[` + returned + `]}`},
					"/gn/infracoes":      infractionsAnswer(0, 1_000, infractionOf("E"+strings.Repeat("9", 31))),
				}, later}
				d := newHostile(t, bank)
				d.clock.Advance(infractionsFrom + time.Hour)
				report, returns := d.QueryCharge(t.Context(), hostileID), strings.Count(paid, "med1")
				if report.Lookup != processor.Found || report.Incomplete == nil || len(report.Payments) != 1 || len(report.Disputes) != returns {
					t.Errorf("charge: %+v", report)
				}
				for _, list := range []listName{listReceived, listInfractions} {
					if list == listInfractions {
						bank.byPath["/gn/infracoes"] = infractionsAnswer(0, 1_000, infractionJSON("17", "ABERTA", `"123.45"`, ""))
					}
					page, err := d.Read(t.Context(), processor.FeedChanges, (&cursor{list: list, from: start.Add(-time.Hour)}).String())
					if err != nil || len(page.Facts) != 1 || page.Facts[0].Change == nil {
						t.Errorf("changes in %s: %+v, %v", list, page, err)
					}
				}
			}
		})
	}
}

// A payment is looked for among the infractions once it is some minutes old: its confirmation is
// one request.
func TestYoungPaymentHasNoInfraction(t *testing.T) {
	t.Parallel()
	paid := &foreign{status: 200, contentType: jsonType, body: paidCharge()}
	list := infractionsAnswer(0, 1)
	d := newHostile(t, byPath{"/cob/" + hostileID: paid, "/gn/infracoes": list})
	if report := d.QueryCharge(t.Context(), hostileID); len(report.Payments) != 1 || len(list.asked) != 0 {
		t.Errorf("%+v, asked %q", report, list.asked)
	}
}

// A test environment has no infractions: a payment that is looked up late is known there, a return by
// the MED is a dispute, and each sweep of the changes ends.
func TestTestEnvironment(t *testing.T) {
	t.Parallel()
	h := newHarness(t, ProfileEfi, func(o *apipixface.Options) { o.TestEnvironment = true })
	p := h.paidCharge(t, 12_345)
	h.clock.Advance(2 * infractionsFrom)
	h.control(t, "/control/charges/"+p.ExternalID+"/dispute", bankapi.ForceCharge{Amount: 10_000})
	h.control(t, "/control/charges/"+p.ExternalID+"/lose", bankapi.ForceCharge{Amount: 10_000})
	report := h.driver.(processor.Charger).QueryCharge(t.Context(), p.ExternalID)
	if len(report.Payments) != 1 || len(report.Disputes) != 1 || report.Disputes[0].State != processor.DisputeLost || report.Incomplete == nil {
		t.Errorf("charge: %+v", report)
	}
	if changes, _, _ := h.readAll(t, processor.FeedChanges, ""); len(changes) != 1 || changes[0].Change.Dispute.State != processor.DisputeLost {
		t.Errorf("changes: %+v", changes)
	}
	found := h.driver.(processor.Inspector).Inspect(t.Context())
	if last := found[len(found)-1]; problems(t, found) != "" || last.Check != "infractions" || last.Detail == "" || last.Action == "" {
		t.Errorf("findings %+v", found)
	}
}

// The whole way: the infraction is listed as a change before there is a return, and the change is
// what the charge shows.
func TestInfractionIsListed(t *testing.T) {
	h := newHarness(t, ProfileEfi)
	p := h.paidCharge(t, 12_345)
	h.clock.Advance(infractionsFrom)
	h.control(t, "/control/charges/"+p.ExternalID+"/dispute", bankapi.ForceCharge{Amount: 10_000, Reason: "golpe"})
	for _, action := range []string{"", "lose"} {
		if action != "" {
			h.control(t, "/control/charges/"+p.ExternalID+"/"+action, bankapi.ForceCharge{Amount: 4_000})
		}
		changes, _, _ := h.readAll(t, processor.FeedChanges, "")
		report := h.driver.(processor.Charger).QueryCharge(t.Context(), p.ExternalID)
		if len(changes) != 1 || len(report.Disputes) != 1 || *changes[0].Change.Dispute != report.Disputes[0] || changes[0].Change.ExternalID != p.ExternalID {
			t.Fatalf("changes %+v, report %+v", changes, report)
		}
		d := report.Disputes[0]
		if !strings.HasPrefix(d.ID, infractionPrefix) || d.Amount != 10_000 || d.Reason != "golpe" || d.RespondBy.IsZero() {
			t.Errorf("dispute %+v", d)
		}
	}
}

// An accepted infraction keeps its return when a later one of the same payment, with another return,
// appears.
func TestLaterInfractionTakesNoReturnOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	paid := &pix{EndToEndID: hostileE2E, Value: "100.00", Time: start.Add(-time.Hour).Format(time.RFC3339)}
	accepted := func(id string) infraction {
		return infraction{ID: jsontext.Value(id), EndToEndID: hostileE2E, Value: jsontext.Value(`"50.00"`), Status: infractionAccepted}
	}
	lost := func(infractions ...infraction) map[string]money.Cents {
		list, ok := paid.disputesOf(infractions, start)
		if !ok {
			t.Fatal("invalid")
		}
		of := map[string]money.Cents{}
		for _, d := range list {
			of[d.ID] = d.Lost
		}
		return of
	}
	paid.Returns = []pixReturn{medReturn("a", "10.00", statusReturned)}
	before := lost(accepted("9"))
	paid.Returns = append(paid.Returns, medReturn("b", "40.00", statusReturned))
	if after := lost(accepted("9"), accepted("10")); before["infracao-9"] != 10_00 || after["infracao-9"] != 10_00 || after["infracao-10"] != 40_00 {
		t.Errorf("before %v, after %v", before, after)
	}
}

// One that was decided long ago costs no further request.
func TestOldInfraction(t *testing.T) {
	t.Parallel()
	payments := &foreign{status: 200, contentType: jsonType, body: goodPayment}
	for status, want := range map[string]int{"REJEITADA": 0, "ABERTA": 1} {
		payments.asked = nil
		d := newHostile(t, byPath{"/gn/infracoes": infractionsAnswer(0, 1, infractionJSON(`"1"`, status, `"1.00"`, start.Add(-infractionAfter-time.Hour).Format(time.RFC3339))), "/pix/" + hostileE2E: payments})
		page, err := d.Read(t.Context(), processor.FeedChanges, (&cursor{list: listInfractions, from: start.Add(-time.Hour)}).String())
		if err != nil || len(page.Facts) != want || len(payments.asked) != want {
			t.Errorf("%s: %+v, %v, asked %q", status, page, err, payments.asked)
		}
	}
}

// A return is listed with the infraction that led to it, also if that one was decided long ago, or is on
// another page: else the listed dispute is never confirmed.
func TestListedInfractionOfAReturnedPayment(t *testing.T) {
	t.Parallel()
	paid := strings.Replace(goodPayment, "{", `{"devolucoes":[{"id":"med1","rtrId":"D1","valor":"30.00","natureza":"MED_FRAUDE","status":"DEVOLVIDO"}],`, 1)
	members := goodCharge()
	members["status"], members["pix"] = `"CONCLUIDA"`, "["+paid+"]"
	ago := func(d time.Duration) string { return start.Add(-d).Format(time.RFC3339) }
	for name, first := range map[string]string{"decided long ago": ago(infractionAfter + time.Hour), "decided": ago(time.Hour)} {
		d := newHostile(t, byPath{
			"/cob/" + hostileID:  {status: 200, contentType: jsonType, body: object(members)},
			"/pix/" + hostileE2E: {status: 200, contentType: jsonType, body: paid},
			"/gn/infracoes":      infractionsAnswer(0, 1, infractionJSON(`"1"`, "ACEITA", `"30.00"`, first), infractionJSON(`"2"`, "ABERTA", `"90.00"`, "")),
		})
		page, err := d.Read(t.Context(), processor.FeedChanges, (&cursor{list: listInfractions, from: start.Add(-time.Hour)}).String())
		report := d.QueryCharge(t.Context(), hostileID)
		if err != nil || len(page.Facts) != 2 || len(report.Disputes) != 2 {
			t.Fatalf("%s: changes %+v, %v, charge %+v", name, page, err, report)
		}
		for i, want := range report.Disputes {
			if got := page.Facts[i].Change.Dispute; *got != want {
				t.Errorf("%s: listed as %+v, the charge has %+v", name, got, want)
			}
		}
	}
}

// An infraction of a payment that cannot be read stops no other.
func TestInfractionOfAnInvalidPayment(t *testing.T) {
	t.Parallel()
	other := strings.Replace(hostileE2E, "1", "2", 1)
	d := newHostile(t, byPath{
		"/pix/" + other:      {status: 200, contentType: jsonType, body: strings.NewReplacer(hostileE2E, other, hostileID, "pedido-1").Replace(goodPayment)},
		"/pix/" + hostileE2E: {status: 200, contentType: jsonType, body: goodPayment},
		"/gn/infracoes":      infractionsAnswer(0, 1, strings.Replace(infractionJSON(`"1"`, "ABERTA", `"30.00"`, ""), hostileE2E, other, 1), infractionJSON(`"2"`, "ABERTA", `"90.00"`, "")),
	})
	page, err := d.Read(t.Context(), processor.FeedChanges, (&cursor{list: listInfractions, from: start.Add(-time.Hour)}).String())
	if err != nil || len(page.Facts) != 2 || page.Facts[0].Unreadable == nil || page.Facts[1].Change == nil {
		t.Errorf("changes %+v, %v", page, err)
	}
}

// The documented answers to a defense. An infraction that has an answer is looked up: it may be ours.
func TestDefenseAnswers(t *testing.T) {
	t.Parallel()
	invalid := func(status int) *foreign {
		return &foreign{status: status, contentType: jsonType, body: `{"nome":"InfracaoOperacaoInvalida","mensagem":"Defesa já foi criada."}`}
	}
	for name, c := range map[string]struct {
		answer *foreign
		listed string
		want   processor.Outcome
	}{
		"answered, and shown so":     {invalid(409), "EM_DEFESA", processor.Done},
		"answered, and accepted":     {invalid(409), "ACEITA", processor.Done},
		"answered, and open":         {invalid(409), "ABERTA", processor.Refused},
		"answered, and not readable": {invalid(409), "", processor.Known},
		"too late":                   {invalid(422), "ABERTA", processor.Refused},
		"none":                       {&foreign{status: 404, contentType: jsonType, body: `{"nome":"InfracaoNaoEncontrada","mensagem":"-"}`}, "ABERTA", processor.Refused},
	} {
		for _, accept := range []bool{false, true} {
			bank := byPath{"/defesa": c.answer, "/gn/infracoes": infractionsAnswer(0, 1, infractionJSON("17", c.listed, `"1.00"`, ""))}
			if c.listed == "" {
				bank["/gn/infracoes"] = standard(503, "ServicoIndisponivel", "")
			}
			a := newHostile(t, bank).Defend(t.Context(), processor.DefenseRequest{DisputeID: infractionPrefix + "17", Text: "t", Accept: accept}, willing)
			if a.Outcome != c.want || (a.Outcome == processor.Refused) != (a.Failure != nil) {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
}
