package apipix

import (
	"net/http"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
)

// fuzzTransport answers with bytes of the fuzzer.
func fuzzTransport(status int, body []byte) *foreign {
	return &foreign{status: status, contentType: jsonType, body: string(body)}
}

func seeds(f *testing.F) {
	f.Helper()
	for _, body := range []string{
		object(goodCharge()), "[" + goodPayment + "]", `{"nome":"txid_duplicado","mensagem":""}`,
		`{"id":"` + hostileID + `","rtrId":"D1","valor":"1.00","status":"DEVOLVIDO"}`,
		`{"idEnvio":"` + hostileID + `","e2eId":"` + hostileE2E + `","valor":"67.89","status":"REALIZADO"}`,
		listOf(0, 1, goodPayment).body, standard(400, "PixDevolucaoInvalida", "devolucao.valor").body,
		`{"pix":[` + goodPayment[:len(goodPayment)-1] + `,"devolucoes":[{"id":"1","rtrId":"D1","valor":"1.00","natureza":"MED_FRAUDE","status":"DEVOLVIDO"}]}]}`,
		infractionsAnswer(0, 1, infractionJSON(`"1"`, "ABERTA", `"1.00"`, "2026-11-30T00:00:00Z")).body, infractionJSON("1", "EM_DEFESA", "1", ""),
	} {
		f.Add(201, []byte(body))
		f.Add(404, []byte(body))
	}
}

// FuzzAnswers: no answer of a bank causes a panic, and a result that is done or found is about the
// request.
func FuzzAnswers(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		h := newHostile(t, fuzzTransport(status, body))
		ctx := t.Context()
		if a := h.Charge(ctx, chargeRequest(), willing); a.Outcome == processor.Done && (a.Charge.Amount != 12_345 || a.Charge.PIX.TxID != hostileID) {
			t.Errorf("charge %+v", a)
		}
		if a := h.Transfer(ctx, transferRequest(), willing); a.Outcome == processor.Done && (a.Report.Amount != 6_789 || status > 299) {
			t.Errorf("transfer %+v", a)
		}
		if a := h.Refund(ctx, refundRequest(), willing); a.Outcome == processor.Done && (a.Report.Amount != 100 || status > 299) {
			t.Errorf("refund %+v", a)
		}
		for _, p := range h.QueryCharge(ctx, hostileID).Payments {
			if p.ExternalID != hostileID || p.Amount < 1 || p.Amount > money.Max || p.ID == "" {
				t.Errorf("payment %+v", p)
			}
		}
		h.QueryRefund(ctx, hostileE2E, hostileID)
		h.QueryTransfer(ctx, hostileID)
		_, _ = h.Balance(ctx)
		defense := processor.DefenseRequest{DisputeID: infractionPrefix + "1", Text: "Entregue."}
		if a := h.Defend(ctx, defense, willing); a.Outcome == processor.Done && status > 299 {
			t.Errorf("defense %+v", a)
		}
		h.QueryDefense(ctx, defense)
		for _, feed := range []processor.Feed{processor.FeedPayments, processor.FeedRefunds, processor.FeedChanges, processor.FeedTransfers, "infractions"} {
			at := ""
			if feed == "infractions" {
				feed, at = processor.FeedChanges, (&cursor{list: listInfractions, from: start.Add(-time.Hour)}).String()
			}
			page, err := h.Read(ctx, feed, at)
			if err != nil {
				continue
			}
			for _, fact := range page.Facts {
				if fact.Payment != nil && (fact.Payment.Amount < 1 || fact.Payment.ID == "") {
					t.Errorf("%s: %+v", feed, fact.Payment)
				}
			}
			if page.More && page.Next == "" {
				t.Errorf("%s: more, from the beginning", feed)
			}
		}
	})
}

// FuzzNotice: a notice that is accepted is read the same way later.
func FuzzNotice(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, _ int, body []byte) {
		h := newHostile(t, http.DefaultTransport)
		id, err := h.VerifyNotice(nil, body, time.Time{})
		hints, other := h.ParseNotice(body)
		if (err == nil) != (other == nil) || err == nil && id == "" {
			t.Errorf("verify %v, parse %v", err, other)
		}
		for _, hint := range hints {
			if hint.ExternalID == "" || hint.Payment != nil && hint.Payment.Amount < 1 {
				t.Errorf("hint %+v", hint)
			}
		}
	})
}

// FuzzCursor: a cursor that is read is written the same.
func FuzzCursor(f *testing.F) {
	f.Add("pix 2026-11-20T18:30:00.000Z 2026-11-20T19:00:00.000Z 3")
	f.Add("enviados 2026-11-20T18:30:00.000Z")
	f.Add("infracoes 2026-11-20T18:30:00.000Z")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCursor(text)
		if err != nil {
			return
		}
		again, err := parseCursor(c.String())
		if err != nil || again.String() != c.String() {
			t.Errorf("%q: %q, %v", text, c.String(), err)
		}
	})
}

// FuzzCertificate: any file is read or refused, without a panic.
func FuzzCertificate(f *testing.F) {
	f.Add("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "")
	f.Add("MIIC", "password")
	f.Fuzz(func(t *testing.T, text, password string) {
		c, err := readCertificate(text, password)
		if err == nil && text != "" && (c == nil || c.PrivateKey == nil) {
			t.Error("a certificate without a key")
		}
	})
}
