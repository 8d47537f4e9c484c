package apipix

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/apipixface"
)

func parseHints(t *testing.T, body string) []processor.Hint {
	t.Helper()
	h := newHostile(t, &foreign{})
	if id, err := h.VerifyNotice(nil, []byte(body), start); err != nil || id == "" {
		t.Fatalf("verify: %q, %v", id, err)
	}
	hints, err := h.ParseNotice([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return hints
}

// TestNoticeOfSeveral: one body holds payments, returns and a transfer; what is not readable
// or not ours hides nothing.
func TestNoticeOfSeveral(t *testing.T) {
	other := strings.Repeat("b", 32)
	returned := strings.Repeat("c", 32)
	body := fmt.Sprintf(`{"pix":[%s,
		{"endToEndId":"E8","infoPagador":"\ud83d"},
		{"endToEndId":"E2","txid":"SHORT","valor":"1.00","horario":"2026-11-20T18:31:00Z"},
		{"endToEndId":"E3","valor":"1.00","horario":"2026-11-20T18:31:00Z"},
		{"endToEndId":"E4","txid":%q,"valor":"2.00","horario":"2026-11-20T15:31:00-03:00","devolucoes":[
			{"id":%q,"rtrId":"D1","valor":"1.00","natureza":"ORIGINAL","status":"DEVOLVIDO"},
			{"id":"panel","rtrId":"D2","valor":"0.50","status":"DEVOLVIDO"},
			{"id":"med","rtrId":"D3","valor":"0.50","natureza":"MED_FRAUDE","status":"EM_PROCESSAMENTO"}]},
		{"endToEndId":"E5","valor":"x"}, 17, null,
		{"endToEndId":"E6","chave":"k","tipo":"SOLICITACAO","status":"REALIZADO","valor":"5.00","horario":"2026-11-20T18:31:00Z","gnExtras":{"idEnvio":"envio1"}},
		{"endToEndId":"E7","tipo":"SOLICITACAO","status":"REALIZADO"}]}`, goodPayment, other, returned)
	hints := parseHints(t, body)
	var got []string
	for _, hint := range hints {
		text := string(hint.Subject) + " " + hint.ExternalID + " " + string(hint.Transfer)
		if hint.Payment != nil {
			text += fmt.Sprint(hint.Payment.ID, " ", int64(hint.Payment.Amount), " ", hint.Payment.PaidAt.Format(time.RFC3339))
		}
		got = append(got, text)
	}
	want := []string{
		"charge " + hostileID + " " + hostileE2E + " 12345 2026-11-20T18:31:00Z",
		"charge " + other + " E4 200 2026-11-20T18:31:00Z",
		"refund " + returned + " ",
		"transfer envio1 paid",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("hints\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The reason of a failed transfer is shown, unless it may name a person.
func TestNoticeOfAFailedTransfer(t *testing.T) {
	for reason, want := range map[string]string{"Conta encerrada": "Conta encerrada", "CPF 52998224725": "", "ana@example.com": ""} {
		hints := parseHints(t, `{"pix":[{"tipo":"SOLICITACAO","status":"NAO_REALIZADO","gnExtras":{"idEnvio":"envio1","erro":{"codigo":"AC03","motivo":"`+reason+`"}}}]}`)
		if len(hints) != 1 || hints[0].Transfer != processor.TransferFailed || hints[0].Reason != want {
			t.Errorf("%s: hints %+v", reason, hints)
		}
	}
}

// So is the reason of a failed return.
func TestReasonOfAFailedReturn(t *testing.T) {
	for motive, want := range map[any]string{
		"Conta encerrada": "The bank could not complete the refund: Conta encerrada", "CPF 52998224725": "The bank could not complete the refund.", 7.0: "The bank could not complete the refund.", nil: "The bank could not complete the refund.",
	} {
		r := pixReturn{ID: "id", Value: "1.00", Status: statusFailed, Reason: motive}
		if got := r.report("id"); got.Failure == nil || got.Failure.Code != "not_returned" || got.Failure.Message != want {
			t.Errorf("%v: %+v", motive, got.Failure)
		}
	}
}

// TestNoticeWithOneReturn: the standard's example has an object where its schema has a list.
func TestNoticeWithOneReturn(t *testing.T) {
	body := `{"pix":[` + goodPayment[:len(goodPayment)-1] + `,"devolucoes":{"id":"` + hostileID + `","rtrId":"D1","valor":"1.00","status":"DEVOLVIDO"}}]}`
	if hints := parseHints(t, body); len(hints) != 2 || hints[1].Subject != processor.SubjectRefund {
		t.Errorf("hints %+v", hints)
	}
}

// TestNoticeTest: banks test an address with a body that says nothing.
func TestNoticeTest(t *testing.T) {
	for _, body := range []string{"", "{}", `{"evento":"teste_webhook"}`, `{"pix":[]}`, `{"recs":[{"idRec":"R1"}]}`} {
		if hints := parseHints(t, body); len(hints) != 0 {
			t.Errorf("%s: hints %+v", body, hints)
		}
	}
}

func TestNoticeRefused(t *testing.T) {
	h := newHostile(t, &foreign{})
	refund := `{"id":"` + hostileID + `","rtrId":"D1","valor":"1.00","status":"DEVOLVIDO"}`
	for _, body := range []string{
		`{"pix":[` + goodPayment[:len(goodPayment)-1] + `,"devolucoes":[` + strings.Repeat(refund+",", noticeEntries-1) + refund + `]}]}`,
		"null!", "[]", `"pix"`, `{"pix":{}}`, `{"pix":[1]}`, `{"pix":[{"endToEndId":"E1"}]}`, `{"pix":`, "\xff", `{"pix":[` + strings.Repeat("1,", noticeEntries) + `1]}`,
	} {
		if id, err := h.VerifyNotice(nil, []byte(body), start); !errors.Is(err, ErrNotice) {
			t.Errorf("%.40s: accepted as %q, %v", body, id, err)
		}
	}
}

// TestPeer: with notice-auth=mtls a notice comes with a certificate of the bank's authorities.
func TestPeer(t *testing.T) {
	_, clock := env.Virtual(time.Now(), 1)
	ours := makeCertificates(t)
	w := env.System(env.OutboundOptions{})
	theirs, err := apipixface.OpenAuthority(t.TempDir(), "", w.Clock, w.Random)
	if err != nil {
		t.Fatal(err)
	}
	a := account(t, ProfileEfi, testBase)
	a.Settings[SettingNoticeAuth], a.Secrets[SecretNoticeCA] = NoticeMTLS, string(ours.CA)
	p, err := Driver{}.Open(a, processor.Env{Clock: clock, Transport: &foreign{}})
	if err != nil {
		t.Fatal(err)
	}
	chain := func(c tls.Certificate) (list []*x509.Certificate) {
		for _, der := range c.Certificate {
			parsed, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, parsed)
		}
		return list
	}
	for name, c := range map[string]struct {
		chain []*x509.Certificate
		at    time.Time
		ok    bool
	}{
		"the bank's":            {chain(ours.Notice), time.Now(), true},
		"none":                  {nil, time.Now(), false},
		"of another authority":  {chain(theirs.Notice), time.Now(), false},
		"of a server":           {chain(ours.Server), time.Now(), false},
		"the bank's, too late":  {chain(ours.Notice), time.Now().AddDate(3, 0, 0), false},
		"the bank's, too early": {chain(ours.Notice), time.Now().AddDate(-1, 0, 0), false},
	} {
		if err := p.(processor.PeerVerifier).VerifyPeer(c.chain, c.at); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	bank := chain(ours.Notice)
	if bank[0].Subject.CommonName == "" {
		t.Fatal("the certificate of notices has no name")
	}
	for names, ok := range map[string]bool{
		bank[0].Subject.CommonName: true, bank[0].Subject.String(): true, fingerprint(bank[0]): true, "other; " + bank[0].Subject.CommonName: true,
		strings.ToUpper(fingerprint(bank[0])): true, "other": false, bank[0].Issuer.CommonName: false, fingerprint(chain(theirs.Notice)[0]): false,
		bank[0].Subject.CommonName + "x": false, bank[0].Subject.CommonName[1:]: false,
	} {
		a.Settings[SettingNoticeSubject] = names
		p, err := Driver{}.Open(a, processor.Env{Clock: clock, Transport: &foreign{}})
		if err != nil {
			t.Fatal(err)
		}
		err = p.(processor.PeerVerifier).VerifyPeer(bank, time.Now())
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), fingerprint(bank[0])) {
			t.Errorf("notice-subject=%s: %v", names, err)
		}
		if err := p.(processor.PeerVerifier).VerifyPeer(chain(theirs.Notice), time.Now()); err == nil {
			t.Errorf("notice-subject=%s: one of another authority is accepted", names)
		}
	}
	if err := newHostile(t, &foreign{}).VerifyPeer(nil, start); err != nil {
		t.Errorf("with the token alone: %v", err)
	}
}
