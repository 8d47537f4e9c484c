package apipix

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/apipixface"
)

// foreign answers every request but that for a token with one answer.
type foreign struct {
	status      int
	contentType string
	body        string
	header      http.Header
	asked       []string
}

// RoundTrip implements [http.RoundTripper].
func (f *foreign) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/oauth/token") {
		return reply(http.StatusOK, "application/json", `{"access_token":"a-secret-token","token_type":"Bearer","expires_in":3600}`), nil
	}
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	answer := reply(f.status, f.contentType, f.body)
	for name, values := range f.header {
		answer.Header[name] = values
	}
	return answer, nil
}

func reply(status int, contentType, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader([]byte(body)))}
}

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
	hostileID   = "0123456789abcdefghijABCDEFGHIJ01"
	hostileE2E  = "E9999999920261120183000000000001"
)

func standard(status int, kind, property string) *foreign {
	body := fmt.Sprintf(`{"type":"https://pix.bcb.gov.br/api/v2/error/%s","title":"t","status":%d,"detail":"CPF 52998224725"}`, kind, status)
	if property != "" {
		body = body[:len(body)-1] + fmt.Sprintf(`,"violacoes":[{"razao":"52998224725","propriedade":%q,"valor":"52998224725"}]}`, property)
	}
	return &foreign{status: status, contentType: problemType, body: body}
}

func ofEfi(status int, name string) *foreign {
	return &foreign{status: status, contentType: jsonType, body: fmt.Sprintf(`{"nome":%q,"mensagem":"CPF 52998224725"}`, name)}
}

// noise are answers that prove nothing, to any request.
var noise = map[string]*foreign{
	"html":              {status: 200, contentType: "text/html", body: "<html>ok</html>"},
	"html as json":      {status: 200, contentType: jsonType, body: "<html>ok</html>"},
	"html 404":          {status: 404, contentType: "text/html", body: "<html>not found</html>"},
	"empty 200":         {status: 200, contentType: jsonType},
	"empty 404":         {status: 404, contentType: jsonType},
	"null":              {status: 200, contentType: jsonType, body: "null"},
	"list":              {status: 200, contentType: jsonType, body: "[]"},
	"half":              {status: 201, contentType: jsonType, body: `{"txid":"` + hostileID},
	"nothing in it":     {status: 201, contentType: jsonType, body: "{}"},
	"too large":         {status: 200, contentType: jsonType, body: `{"txid":"` + strings.Repeat("a", answerLimit) + `"}`},
	"redirect":          {status: 302, contentType: jsonType, body: "{}", header: http.Header{"Location": {"https://elsewhere.example/"}}},
	"redirect 308":      {status: 308, contentType: jsonType, header: http.Header{"Location": {"https://elsewhere.example/"}}},
	"teapot":            {status: 418, contentType: jsonType, body: "{}"},
	"500":               {status: 500, contentType: jsonType, body: `{"nome":"erro_aplicacao","mensagem":""}`},
	"503":               standard(503, "ServicoIndisponivel", ""),
	"504":               standard(504, "IndisponibilidadePorTempoEsgotado", ""),
	"502 of a proxy":    {status: 502, contentType: jsonType, body: "{}"},
	"another status":    {status: 404, contentType: problemType, body: `{"type":"https://pix.bcb.gov.br/api/v2/error/CobNaoEncontrado","title":"t","status":400}`},
	"another authority": {status: 404, contentType: problemType, body: `{"type":"https://evil.example/api/v2/error/CobNaoEncontrado","title":"t","status":404}`},
	"unknown kind":      standard(404, "Desconhecido", ""),
	"unknown name":      ofEfi(400, "alguma_coisa"),
	"twice":             {status: 404, contentType: problemType, body: `{"nome":"cobranca_nao_encontrada","nome":"cobranca_nao_encontrada"}`},
	"no utf-8":          {status: 404, contentType: problemType, body: "{\"nome\":\"\xff\"}"},
	"deep":              {status: 200, contentType: jsonType, body: strings.Repeat("[", 20_000)},
}

// hostile is the driver before one answer.
type hostile struct {
	*Efi

	t     *testing.T
	clock *env.VirtualClock
}

func newHostile(t *testing.T, f http.RoundTripper) hostile {
	t.Helper()
	_, clock := env.Virtual(start, 1)
	return hostile{open(t, clock, f, ProfileEfi, testBase).(*Efi), t, clock}
}

func chargeRequest() processor.ChargeRequest {
	return processor.ChargeRequest{ExternalID: hostileID, Method: payment.PIX, Amount: 12_345, ExpiresAt: start.Add(time.Hour), MerchantName: "Loja", MerchantCity: "Recife"}
}

func refundRequest() processor.RefundRequest {
	return processor.RefundRequest{ExternalID: hostileID, PaymentID: hostileE2E, Amount: 100}
}

func transferRequest() processor.TransferRequest {
	return processor.TransferRequest{ExternalID: hostileID, Amount: 6_789, KeyType: "EMAIL", Key: "maria@example.com", Name: "Maria da Silva", Document: "52998224725"}
}

func willing() error { return nil }

// outcomes are the ends of every call before one answer, with all that they say.
type outcomes struct {
	charge, cancel, refund, transfer processor.Outcome
	queries                          map[string]processor.Lookup
	said                             string
}

func (h hostile) all() outcomes {
	h.t.Helper()
	ctx := h.t.Context()
	charge := h.Charge(ctx, chargeRequest(), willing)
	cancel := h.CancelCharge(ctx, processor.CancelRequest{ExternalID: hostileID, Method: payment.PIX}, willing)
	refund := h.Refund(ctx, refundRequest(), willing)
	transfer := h.Transfer(ctx, transferRequest(), willing)
	qc, qr, qt := h.QueryCharge(ctx, hostileID), h.QueryRefund(ctx, hostileE2E, hostileID), h.QueryTransfer(ctx, hostileID)
	_, balance := h.Balance(ctx)
	said := fmt.Sprint(charge, cancel, refund, transfer, qc, qr, qt, balance, h.Inspect(ctx), h.Install(ctx, "https://gateway.example/inbound/a/the-token"))
	for feed := range h.Feeds() {
		page, err := h.Read(ctx, feed, "")
		said += fmt.Sprint(err)
		if len(page.Facts) > 0 {
			h.t.Errorf("feed %s has facts: %+v", feed, page.Facts)
		}
	}
	return outcomes{charge.Outcome, cancel.Outcome, refund.Outcome, transfer.Outcome, map[string]processor.Lookup{
		"charge": qc.Lookup, "refund": qr.Lookup, "transfer": qt.Lookup,
	}, said}
}

// TestNoise: what no document describes is unknown, for every call; nothing that is secret or
// personal is said about it; nothing is followed or repeated.
func TestNoise(t *testing.T) {
	for name, f := range noise {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t, f)
			got := h.all()
			for call, outcome := range map[string]processor.Outcome{"charge": got.charge, "cancel": got.cancel, "refund": got.refund, "transfer": got.transfer} {
				if outcome != processor.Unknown {
					t.Errorf("%s: %v, want unknown", call, outcome)
				}
			}
			for query, lookup := range got.queries {
				if lookup != processor.LookupUnknown {
					t.Errorf("query of a %s: %v, want unknown", query, lookup)
				}
			}
			for _, secret := range []string{"52998224725", "maria@example.com", "Maria", testSecret, "a-secret-token", "the-token", hostileID} {
				if strings.Contains(got.said, secret) {
					t.Errorf("%q is said: %s", secret, got.said)
				}
			}
			puts := 0
			for _, call := range f.asked {
				if strings.HasPrefix(call, "PUT /v2/cob/") {
					puts++
				}
			}
			if f.asked = nil; puts != 1 {
				t.Errorf("%d requests of the charge", puts)
			}
		})
	}
}

// TestVerdicts: each documented error answer, of each kind of call.
func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		answer                   *foreign
		charge, refund, transfer processor.Outcome
	}{
		"missing permission":   {standard(403, "AcessoNegado", ""), processor.Later, processor.Later, processor.Later},
		"missing scope":        {&foreign{status: 403, contentType: jsonType, body: `{"error":"insufficient_scope","error_description":"The token lacks a scope"}`}, processor.Later, processor.Later, processor.Later},
		"403 of a proxy":       {&foreign{status: 403, contentType: jsonType, body: "{}"}, processor.Unknown, processor.Unknown, processor.Unknown},
		"401":                  {&foreign{status: 401, contentType: jsonType, body: `{"error":"invalid_token"}`}, processor.Unknown, processor.Unknown, processor.Unknown},
		"429":                  {standard(429, "BaldeFichasVazio", ""), processor.Later, processor.Later, processor.Later},
		"429 of a proxy":       {&foreign{status: 429, contentType: jsonType, body: "{}"}, processor.Later, processor.Later, processor.Later},
		"invalid":              {standard(400, "RequisicaoInvalida", "body"), processor.Refused, processor.Known, processor.Refused},
		"charge refused":       {standard(400, "CobOperacaoInvalida", "cob.valor.original"), processor.Refused, processor.Unknown, processor.Unknown},
		"an inactive charge":   {standard(400, "CobOperacaoInvalida", "cob.status"), processor.Known, processor.Unknown, processor.Unknown},
		"return of too much":   {standard(400, "PixDevolucaoInvalida", "devolucao.valor"), processor.Unknown, processor.Refused, processor.Unknown},
		"return again":         {standard(400, "PixDevolucaoInvalida", "devolucao.id"), processor.Unknown, processor.Known, processor.Unknown},
		"return, says no more": {standard(400, "PixDevolucaoInvalida", ""), processor.Unknown, processor.Known, processor.Unknown},
		"no payment":           {standard(404, "PixNaoEncontrado", ""), processor.Unknown, processor.Refused, processor.Unknown},
		"no payment, at Efí":   {ofEfi(400, "pix_nao_encontrado"), processor.Unknown, processor.Refused, processor.Unknown},
		"txid again":           {ofEfi(409, "txid_duplicado"), processor.Known, processor.Known, processor.Known},
		"transfer again":       {ofEfi(409, "id_envio_duplicado"), processor.Known, processor.Known, processor.Known},
		"409 of another kind":  {ofEfi(409, "conflito"), processor.Unknown, processor.Unknown, processor.Unknown},
		"no such key":          {ofEfi(404, "chave_favorecido_nao_encontrada"), processor.Unknown, processor.Unknown, processor.Refused},
		"other holder":         {ofEfi(400, "chave_nao_pertence_ao_documento"), processor.Unknown, processor.Unknown, processor.Refused},
		"denied":               {ofEfi(422, "pagamento_negado"), processor.Unknown, processor.Unknown, processor.Refused},
		"blocked account":      {ofEfi(400, "documento_bloqueado"), processor.Later, processor.Later, processor.Later},
		"no balance":           {ofEfi(422, "saldo_insuficiente"), processor.Later, processor.Later, processor.Later},
		"our key":              {ofEfi(400, "chave_invalida"), processor.Later, processor.Later, processor.Later},
		"500 with a code":      {ofEfi(500, "valor_invalido"), processor.Unknown, processor.Unknown, processor.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t, c.answer)
			charge := h.Charge(t.Context(), chargeRequest(), willing)
			h.clock.Advance(time.Hour) // beyond the pause after 429
			refund := newHostile(t, c.answer).Refund(t.Context(), refundRequest(), willing)
			transfer := newHostile(t, c.answer).Transfer(t.Context(), transferRequest(), willing)
			if charge.Outcome != c.charge || refund.Outcome != c.refund || transfer.Outcome != c.transfer {
				t.Errorf("charge %v, refund %v, transfer %v; want %v, %v, %v", charge.Outcome, refund.Outcome, transfer.Outcome, c.charge, c.refund, c.transfer)
			}
			for _, a := range []processor.TransferAnswer{refund, transfer} {
				if a.Outcome == processor.Refused && (a.Failure == nil || a.Failure.Message == "" || a.Evidence == "") {
					t.Errorf("a refusal without a reason: %+v", a)
				}
			}
			if charge.Outcome == processor.Refused && (charge.Failure == nil || charge.Failure.Message == "") {
				t.Errorf("a refusal without a reason: %+v", charge)
			}
			if said := fmt.Sprint(charge, refund, transfer); strings.Contains(said, "52998224725") {
				t.Errorf("personal data is said: %s", said)
			}
		})
	}
}

// goodCharge is a valid answer about a charge.
func goodCharge() map[string]string {
	return map[string]string{
		"txid": `"` + hostileID + `"`, "revisao": "0", "calendario": `{"criacao":"2026-11-20T18:30:00.000Z","expiracao":3600}`,
		"valor": `{"original":"123.45"}`, "chave": `"9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d"`, "status": `"ATIVA"`,
		"location": `"pix.example.com/qr/v2/8b3da2f39a4140d1a91abd93113bd441"`,
	}
}

func object(members map[string]string) string {
	var text []string
	for name, value := range members {
		if value != "" {
			text = append(text, fmt.Sprintf("%q:%s", name, value))
		}
	}
	return "{" + strings.Join(text, ",") + "}"
}

const goodPayment = `{"endToEndId":"` + hostileE2E + `","txid":"` + hostileID + `","valor":"123.45","horario":"2026-11-20T18:31:00.000Z"}`

// TestChargeAnswers: an answer about another charge, or of another form, is never done.
func TestChargeAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]string
		want   processor.Outcome
		lookup processor.Lookup
	}{
		"as it should be":    {nil, processor.Done, processor.Found},
		"other id":           {map[string]string{"txid": `"` + strings.ToLower(hostileID) + `"`}, processor.Unknown, processor.LookupUnknown},
		"other amount":       {map[string]string{"valor": `{"original":"123.46"}`}, processor.Unknown, processor.Found},
		"amount as a number": {map[string]string{"valor": `{"original":123.45}`}, processor.Unknown, processor.LookupUnknown},
		"one decimal":        {map[string]string{"valor": `{"original":"123.4"}`}, processor.Unknown, processor.LookupUnknown},
		"a comma":            {map[string]string{"valor": `{"original":"123,45"}`}, processor.Unknown, processor.LookupUnknown},
		"no amount":          {map[string]string{"valor": ""}, processor.Unknown, processor.LookupUnknown},
		"other key":          {map[string]string{"chave": `"another"`}, processor.Unknown, processor.Found},
		"revised":            {map[string]string{"revisao": "1"}, processor.Known, processor.Found},
		"no revision":        {map[string]string{"revisao": ""}, processor.Unknown, processor.LookupUnknown},
		"removed":            {map[string]string{"status": `"REMOVIDA_PELO_USUARIO_RECEBEDOR"`}, processor.Known, processor.Found},
		"removed by bank":    {map[string]string{"status": `"REMOVIDA_PELO_PSP"`}, processor.Known, processor.Found},
		"unknown status":     {map[string]string{"status": `"PAGA"`}, processor.Known, processor.LookupUnknown},
		"no date":            {map[string]string{"calendario": `{"expiracao":3600}`}, processor.Done, processor.Found},
		"a date in words":    {map[string]string{"calendario": `{"criacao":"20/11/2026 15:30","expiracao":3600}`}, processor.Done, processor.Found},
		"a line feed":        {map[string]string{"pixCopiaECola": `"0002\n"`}, processor.Done, processor.Found},
		"no life":            {map[string]string{"calendario": `{"criacao":"2026-11-20T18:30:00.000Z"}`}, processor.Unknown, processor.LookupUnknown},
		"endless":            {map[string]string{"calendario": `{"criacao":"2026-11-20T18:30:00.000Z","expiracao":9999999999}`}, processor.Unknown, processor.LookupUnknown},
		"no code":            {map[string]string{"location": ""}, processor.Unknown, processor.LookupUnknown},
		"bad location":       {map[string]string{"location": `"pix example"`}, processor.Unknown, processor.LookupUnknown},
		"long code":          {map[string]string{"pixCopiaECola": `"` + strings.Repeat("0", 513) + `"`}, processor.Done, processor.Found}, // it is withheld
		"code with a NUL":    {map[string]string{"pixCopiaECola": `"000\u0000"`}, processor.Done, processor.Found},
		"paid, of another":   {map[string]string{"pix": `[{"endToEndId":"` + hostileE2E + `","txid":"other","valor":"1.00","horario":"2026-11-20T18:31:00Z"}]`}, processor.Done, processor.LookupUnknown},
		"paid nothing":       {map[string]string{"pix": `[{"endToEndId":"` + hostileE2E + `","txid":"` + hostileID + `","valor":"0.00","horario":"2026-11-20T18:31:00Z"}]`}, processor.Done, processor.LookupUnknown},
		"paid, without id":   {map[string]string{"pix": `[{"txid":"` + hostileID + `","valor":"1.00","horario":"2026-11-20T18:31:00Z"}]`}, processor.Done, processor.LookupUnknown},
		"paid":               {map[string]string{"status": `"CONCLUIDA"`, "pix": "[" + goodPayment + "]"}, processor.Known, processor.Found},
		"unknown MED status": {map[string]string{"pix": "[" + goodPayment[:len(goodPayment)-1] + `,"devolucoes":[{"id":"1","rtrId":"D1","valor":"1.00","natureza":"MED_FRAUDE","status":"TALVEZ"}]}]`}, processor.Done, processor.LookupUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			members := goodCharge()
			for member, value := range c.change {
				members[member] = value
			}
			h := newHostile(t, &foreign{status: 201, contentType: jsonType, body: object(members)})
			answer := h.Charge(t.Context(), chargeRequest(), willing)
			if answer.Outcome != c.want {
				t.Errorf("outcome %v (%v), want %v", answer.Outcome, answer.Cause, c.want)
			}
			report := h.QueryCharge(t.Context(), hostileID)
			if report.Lookup != c.lookup {
				t.Errorf("lookup %v (%v), want %v", report.Lookup, report.Cause, c.lookup)
			}
			if answer.Outcome == processor.Done && answer.Charge.PIX.ExpiresAt != chargeRequest().ExpiresAt {
				t.Errorf("expires %v", answer.Charge.PIX.ExpiresAt)
			}
		})
	}
}

// TestChargeOfOtherAmount: a charge that is looked up has its amount, which is compared with
// the order's.
func TestChargeOfOtherAmount(t *testing.T) {
	members := goodCharge()
	members["valor"] = `{"original":"123.46"}`
	h := newHostile(t, &foreign{status: 200, contentType: jsonType, body: object(members)})
	report, r, profile := h.QueryCharge(t.Context(), hostileID), chargeRequest(), h.Profile()
	if err := processor.CheckCharge(&profile, &r, &report.Charge); err == nil {
		t.Error("a charge of another amount is the order's")
	}
	members["valor"] = `{"original":"123.45"}`
	report = newHostile(t, &foreign{status: 200, contentType: jsonType, body: object(members)}).QueryCharge(t.Context(), hostileID)
	if err := processor.CheckCharge(&profile, &r, &report.Charge); err != nil {
		t.Error(err)
	}
}

// TestChargeOfOtherReceiver: the key in the answer and in a static code is the account's, and the
// host in a dynamic code is one of its setting.
func TestChargeOfOtherReceiver(t *testing.T) {
	static := func(key string) string {
		code, err := brcode.Static{Key: key, MerchantName: "LOJA", City: "RECIFE", Amount: 12_345, TxID: hostileID[:25]}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return `"` + code + `"`
	}
	const other = "5f84a4c5-c5cb-4599-9f13-7eb4d419dacc"
	for name, c := range map[string]struct {
		hosts, key, code string
		ok               bool
	}{
		"the account's":         {"", apipixface.Key, "", true},
		"another key":           {"", other, "", false},
		"static":                {"", apipixface.Key, static(apipixface.Key), true},
		"static, another key":   {"", apipixface.Key, static(other), false},
		"its host":              {"pix.bank.example,pix.example.com", apipixface.Key, "", true},
		"another host":          {"pix.bank.example", apipixface.Key, "", false},
		"static, with any host": {"pix.bank.example", apipixface.Key, static(apipixface.Key), true},
	} {
		members := goodCharge()
		members["chave"], members["pixCopiaECola"] = `"`+c.key+`"`, c.code
		a := account(t, ProfileBacen, testBase)
		if c.hosts != "" {
			a.Settings[SettingCodeHosts] = c.hosts
		}
		_, clock := env.Virtual(start, 1)
		p, err := Driver{}.Open(a, processor.Env{Clock: clock, Transport: &foreign{status: 200, contentType: jsonType, body: object(members)}})
		if err != nil {
			t.Fatal(err)
		}
		report, r, profile := p.(processor.Charger).QueryCharge(t.Context(), hostileID), chargeRequest(), p.Profile()
		if err := processor.CheckCharge(&profile, &r, &report.Charge); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestClockOfTheBank: the end of a charge counts by the bank's clock.
func TestClockOfTheBank(t *testing.T) {
	members := goodCharge()
	ahead := 10 * time.Minute
	members["calendario"] = fmt.Sprintf(`{"criacao":%q,"expiracao":3600}`, start.Add(ahead).Format(time.RFC3339))
	h := newHostile(t, &foreign{status: 200, contentType: jsonType, body: object(members), header: http.Header{"Date": {start.Add(ahead).Format(http.TimeFormat)}}})
	report := h.QueryCharge(t.Context(), hostileID)
	if report.Charge.PIX == nil || !report.Charge.PIX.ExpiresAt.Equal(start.Add(time.Hour)) {
		t.Errorf("report %+v", report)
	}
}

// TestTransferAnswers: a transfer of another id or amount, or of an unknown status, is never
// done, and never failed.
func TestTransferAnswers(t *testing.T) {
	good := map[string]string{
		"idEnvio": `"` + hostileID + `"`, "e2eId": `"` + hostileE2E + `"`, "valor": `"67.89"`, "status": `"EM_PROCESSAMENTO"`,
		"horario": `{"solicitacao":"2026-11-20T18:30:00.000Z"}`,
	}
	for name, c := range map[string]struct {
		change map[string]string
		want   processor.Outcome
		lookup processor.Lookup
	}{
		"as it should be": {nil, processor.Done, processor.Found},
		"paid at once":    {map[string]string{"status": `"REALIZADO"`}, processor.Done, processor.Found},
		"failed":          {map[string]string{"status": `"NAO_REALIZADO"`}, processor.Done, processor.Found},
		"other id":        {map[string]string{"idEnvio": `"other"`}, processor.Unknown, processor.LookupUnknown},
		"other amount":    {map[string]string{"valor": `"67.90"`}, processor.Unknown, processor.Found},
		"unknown status":  {map[string]string{"status": `"AGENDADO"`}, processor.Unknown, processor.LookupUnknown},
		"no status":       {map[string]string{"status": ""}, processor.Unknown, processor.LookupUnknown},
		"paid without id": {map[string]string{"status": `"REALIZADO"`, "e2eId": ""}, processor.Unknown, processor.LookupUnknown},
		"two ids":         {map[string]string{"endToEndId": `"` + strings.ToLower(hostileE2E) + `"`}, processor.Unknown, processor.LookupUnknown},
		"returned more":   {map[string]string{"devolucoes": `[{"id":"1","valor":"67.90","status":"DEVOLVIDO"}]`}, processor.Unknown, processor.LookupUnknown},
		"returned oddly":  {map[string]string{"devolucoes": `[{"id":"1","valor":"1.00","status":"QUEM SABE"}]`}, processor.Unknown, processor.LookupUnknown},
		"returned a part": {map[string]string{"status": `"REALIZADO"`, "devolucoes": `[{"id":"1","valor":"7.89","status":"DEVOLVIDO"}]`}, processor.Done, processor.Found},
	} {
		t.Run(name, func(t *testing.T) {
			members := map[string]string{}
			for member, value := range good {
				members[member] = value
			}
			for member, value := range c.change {
				members[member] = value
			}
			h := newHostile(t, &foreign{status: 201, contentType: jsonType, body: object(members)})
			if answer := h.Transfer(t.Context(), transferRequest(), willing); answer.Outcome != c.want {
				t.Errorf("outcome %v (%v), want %v", answer.Outcome, answer.Cause, c.want)
			}
			if report := h.QueryTransfer(t.Context(), hostileID); report.Lookup != c.lookup {
				t.Errorf("lookup %v (%v), want %v", report.Lookup, report.Cause, c.lookup)
			}
		})
	}
}

// TestRefundAnswers is TestTransferAnswers for returns.
func TestRefundAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		want   processor.Outcome
		lookup processor.Lookup
	}{
		"as it should be": {`{"id":"` + hostileID + `","rtrId":"D1","valor":"1.00","status":"EM_PROCESSAMENTO"}`, processor.Done, processor.Found},
		"without rtrId":   {`{"id":"` + hostileID + `","valor":"1.00","status":"DEVOLVIDO"}`, processor.Done, processor.Found},
		"other id":        {`{"id":"1","rtrId":"D1","valor":"1.00","status":"DEVOLVIDO"}`, processor.Unknown, processor.LookupUnknown},
		"other amount":    {`{"id":"` + hostileID + `","rtrId":"D1","valor":"1.01","status":"DEVOLVIDO"}`, processor.Unknown, processor.Found},
		"unknown status":  {`{"id":"` + hostileID + `","rtrId":"D1","valor":"1.00","status":"PARCIAL"}`, processor.Unknown, processor.LookupUnknown},
		"odd rtrId":       {`{"id":"` + hostileID + `","rtrId":"D\u0000","valor":"1.00","status":"DEVOLVIDO"}`, processor.Unknown, processor.LookupUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t, &foreign{status: 201, contentType: jsonType, body: c.body})
			if answer := h.Refund(t.Context(), refundRequest(), willing); answer.Outcome != c.want {
				t.Errorf("outcome %v (%v), want %v", answer.Outcome, answer.Cause, c.want)
			}
			if report := h.QueryRefund(t.Context(), hostileE2E, hostileID); report.Lookup != c.lookup {
				t.Errorf("lookup %v (%v), want %v", report.Lookup, report.Cause, c.lookup)
			}
		})
	}
}
