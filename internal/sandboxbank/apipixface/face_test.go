package apipixface

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/sandboxbank"
)

const (
	bankSecret = "a secret inside of the bank of tests"
	secret     = "the secret of the application"
)

// harness is a face on a bank, in a folder.
type harness struct {
	t     *testing.T
	clock *env.VirtualClock
	w     env.Env
	dir   string
	opts  Options
	face  *Face
	bank  *sandboxbank.Bank
	token string
}

func newHarness(t *testing.T, change func(o *Options)) *harness {
	t.Helper()
	w, clock := env.Virtual(time.Now().UTC().Truncate(time.Second), 1)
	r := &harness{t: t, clock: clock, w: w, dir: t.TempDir()}
	r.opts = Options{
		Path: filepath.Join(r.dir, "notes"), BankURL: sandboxbank.InProcessURL, BankSecret: bankSecret, Secret: secret,
		Clock: clock, Random: w.Random, Webhooks: http.DefaultTransport,
	}
	if change != nil {
		change(&r.opts)
	}
	r.open()
	t.Cleanup(func() { _ = errors.Join(r.bank.Close(), r.face.Close()) })
	return r
}

func (r *harness) open() {
	r.t.Helper()
	var err error
	if r.face, err = New(r.opts); err != nil {
		r.t.Fatal(err)
	}
	r.bank, err = sandboxbank.Open(sandboxbank.Options{
		Path: filepath.Join(r.dir, "bank.journal"), Secret: bankSecret, Clock: r.clock, IDs: r.w.IDs,
		Notify: r.face.Notify(http.DefaultTransport), NotifyURL: NotifyURL,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.face.Connect(r.bank)
}

// reopen is a restart of the bank.
func (r *harness) reopen() {
	r.t.Helper()
	if err := errors.Join(r.bank.Close(), r.face.Close()); err != nil {
		r.t.Fatal(err)
	}
	r.open()
}

func (r *harness) send(method, path, body string, headers ...string) (int, string) {
	r.t.Helper()
	q := httptest.NewRequestWithContext(r.t.Context(), method, path, strings.NewReader(body))
	q.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	r.face.Handler().ServeHTTP(w, q)
	return w.Code, w.Body.String()
}

// login gets a token.
func (r *harness) login() {
	r.t.Helper()
	q := httptest.NewRequestWithContext(r.t.Context(), http.MethodPost, "/oauth/token", strings.NewReader("grant_type=client_credentials"))
	q.SetBasicAuth(ClientID, secret)
	w := httptest.NewRecorder()
	r.face.Handler().ServeHTTP(w, q)
	var v struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != http.StatusOK {
		r.t.Fatalf("token: %d %s", w.Code, w.Body)
	}
	r.token = v.AccessToken
}

func (r *harness) call(method, path, body string, headers ...string) (int, string) {
	r.t.Helper()
	return r.send(method, path, body, append(headers, "Authorization", "Bearer "+r.token)...)
}

const (
	txid   = "0123456789abcdefghijABCDEF"
	charge = `{"calendario":{"expiracao":3600},"valor":{"original":"10.00"},"chave":"` + Key + `","solicitacaoPagador":"Pedido"}`
)

// TestTokens: nothing is served without a token of this run that has not expired.
func TestTokens(t *testing.T) {
	r := newHarness(t, nil)
	unauthorized := func(what string) {
		t.Helper()
		for _, route := range routes {
			method, path, ok := strings.Cut(route.pattern, " ")
			if !ok {
				continue
			}
			if code, body := r.call(method, strings.NewReplacer("{", "", "}", "").Replace(path), ""); code != http.StatusUnauthorized {
				t.Errorf("%s, %s: %d %s", what, route.pattern, code, body)
			}
		}
	}
	unauthorized("no token")
	r.token = "invented"
	unauthorized("an invented token")
	r.login()
	if code, body := r.call("GET", "/v2/gn/saldo", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	r.clock.Advance(tokenLifeDefault)
	unauthorized("an expired token")
	r.login()
	r.face.ForgetTokens()
	unauthorized("a forgotten token")
	for _, c := range []struct{ id, password, body, want string }{
		{ClientID, "wrong", "grant_type=client_credentials", "invalid_client"},
		{"wrong", secret, "grant_type=client_credentials", "invalid_client"},
		{ClientID, secret, "grant_type=password", "unsupported_grant_type"},
	} {
		q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/oauth/token", strings.NewReader(c.body))
		q.SetBasicAuth(c.id, c.password)
		w := httptest.NewRecorder()
		if r.face.Handler().ServeHTTP(w, q); !strings.Contains(w.Body.String(), c.want) || w.Code == http.StatusOK {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

// TestRestart: charges are shown as before after a restart, and after a line that was half
// written; the address for notices stays.
func TestRestart(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	r := newHarness(t, nil)
	r.login()
	if code, body := r.call("PUT", "/v2/cob/"+txid, charge); code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	if code, body := r.call("PUT", "/v2/webhook/"+Key, `{"webhookUrl":"`+receiver.URL+`"}`); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	_, before := r.call("GET", "/v2/cob/"+txid, "")
	_, address := r.call("GET", "/v2/webhook/"+Key, "")
	if _, err := r.face.book.file.WriteString(`{"charge":{"txid":"half`); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(time.Minute)
	for range 2 {
		r.reopen()
		r.login()
		if _, after := r.call("GET", "/v2/cob/"+txid, ""); after != before {
			t.Errorf("charge %s\nwas %s", after, before)
		}
		if _, after := r.call("GET", "/v2/webhook/"+Key, ""); after != address {
			t.Errorf("address %s, was %s", after, address)
		}
		if code, body := r.call("PUT", "/v2/cob/"+txid, charge); code != http.StatusConflict {
			t.Errorf("the same id again: %d %s", code, body)
		}
	}
}

// TestRefusals: what the standard calls a violation is answered as one, and changes nothing.
func TestRefusals(t *testing.T) {
	r := newHarness(t, nil)
	r.login()
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"PUT", "/v2/cob/short", charge, 400, "cob.txid"},
		{"PUT", "/v2/cob/" + txid, strings.Replace(charge, "10.00", "0.00", 1), 400, "cob.valor.original"},
		{"PUT", "/v2/cob/" + txid, strings.Replace(charge, "10.00", "10", 1), 400, "cob.valor.original"},
		{"PUT", "/v2/cob/" + txid, strings.Replace(charge, "3600", "0", 1), 400, "cob.calendario.expiracao"},
		{"PUT", "/v2/cob/" + txid, strings.Replace(charge, Key, "other", 1), 400, "cob.chave"},
		{"PUT", "/v2/cob/" + txid, strings.Replace(charge, "Pedido", strings.Repeat("ç", 141), 1), 400, "cob.solicitacaoPagador"},
		{"PUT", "/v2/cob/" + txid, "{", 400, "RequisicaoInvalida"},
		{"GET", "/v2/cob/" + txid, "", 404, "CobNaoEncontrado"},
		{"PATCH", "/v2/cob/" + txid, `{"status":"REMOVIDA_PELO_USUARIO_RECEBEDOR"}`, 404, "CobNaoEncontrado"},
		{"GET", "/v2/pix?inicio=2026-01-02T00:00:00Z&fim=2026-01-01T00:00:00Z", "", 400, "fim"},
		{"GET", "/v2/pix?inicio=2026-01-02T00:00:00Z&fim=2026-01-03T00:00:00Z&paginacao.itensPorPagina=1001", "", 400, "itensPorPagina"},
		{"GET", "/v2/pix/E1", "", 404, "PixNaoEncontrado"},
		{"PUT", "/v2/pix/E1/devolucao/1", `{"valor":"1.00"}`, 404, "PixNaoEncontrado"},
		{"PUT", "/v2/pix/E1/devolucao/1", `{"valor":"1,00"}`, 400, "devolucao.valor"},
		{"GET", "/v2/pix/E1/devolucao/1", "", 404, "PixDevolucaoNaoEncontrada"},
		{"PUT", "/v3/gn/pix/1", `{"valor":"1.00","pagador":{"chave":"other"},"favorecido":{"chave":"a@b.example"}}`, 400, "chave_invalida"},
		{"PUT", "/v3/gn/pix/1", `{"valor":"1.00","pagador":{"chave":"` + Key + `"},"favorecido":{}}`, 404, "chave_favorecido_nao_encontrada"},
		{"GET", "/v2/gn/pix/enviados/id-envio/1", "", 404, "PixEnviadoNaoEncontrado"},
		{"GET", "/v2/webhook/" + Key, "", 404, "WebhookNaoEncontrado"},
		{"DELETE", "/v2/webhook/" + Key, "", 404, "WebhookNaoEncontrado"},
		{"PUT", "/v2/webhook/other", `{"webhookUrl":"https://a.example"}`, 400, "chave"},
		{"PUT", "/v2/webhook/" + Key, `{"webhookUrl":"ftp://a.example"}`, 400, "webhookUrl"},
		{"GET", "/v2/nothing", "", 404, "NaoEncontrado"},
	} {
		if code, body := r.call(c.method, c.path, c.body); code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, code, body, c.code, c.want)
		}
	}
	if code, body := r.call("GET", "/v2/gn/saldo", ""); code != http.StatusOK || body != `{"saldo":"0.00"}` {
		t.Errorf("balance: %d %s", code, body)
	}
}

// provedReceiver keeps the name in its sender's certificate, path and body of each notice.
type provedReceiver struct {
	t         *testing.T
	authority *Authority

	mu     sync.Mutex
	strict bool // it refuses senders without a certificate
	got    []string
}

// ServeHTTP implements [http.Handler].
func (v *provedReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v.mu.Lock()
	defer v.mu.Unlock()
	name := ""
	if len(r.TLS.PeerCertificates) > 0 {
		_, err := r.TLS.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: v.authority.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if name = r.TLS.PeerCertificates[0].Subject.CommonName; err != nil {
			v.t.Error(err)
		}
	} else if v.strict {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	v.got = append(v.got, name+" "+r.URL.Path+" "+string(body))
}

// TestNoticesOverMTLS: the address must refuse a sender without a certificate, and gets notices
// with the bank's.
func TestNoticesOverMTLS(t *testing.T) {
	w := env.System(env.OutboundOptions{})
	authority, err := OpenAuthority(t.TempDir(), "", w.Clock, w.Random)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenAuthority(authority.Dir, "", w.Clock, w.Random)
	if err != nil || !bytes.Equal(again.CA, authority.CA) || again.Secret != authority.Secret {
		t.Fatalf("opened again: %v", err)
	}
	v := &provedReceiver{t: t, authority: authority}
	receiver := httptest.NewUnstartedServer(v)
	receiver.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	receiver.StartTLS()
	t.Cleanup(receiver.Close)
	roots := x509.NewCertPool()
	roots.AddCert(receiver.Certificate())

	r := newHarness(t, func(o *Options) {
		o.Webhooks = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
		o.Certificate = &authority.Notice
	})
	r.login()
	register := func() int {
		code, _ := r.call("PUT", "/v2/webhook/"+Key, `{"webhookUrl":"`+receiver.URL+`/inbound/a/b?x=1"}`)
		return code
	}
	if code := register(); code != http.StatusBadRequest {
		t.Errorf("an address that accepts anyone: %d", code)
	}
	v.mu.Lock()
	v.strict, v.got = true, nil
	v.mu.Unlock()
	if code := register(); code != http.StatusOK {
		t.Fatalf("register: %d", code)
	}
	if code, body := r.call("PUT", "/v2/cob/"+txid, charge); code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/control/charges/"+txid+"/pay", http.NoBody)
	q.Header.Set("Authorization", "Bearer "+bankSecret)
	answer := httptest.NewRecorder()
	if r.bank.Handler().ServeHTTP(answer, q); answer.Code != http.StatusOK {
		t.Fatalf("pay: %d %s", answer.Code, answer.Body)
	}
	for range 10 {
		if _, err := r.bank.Step(context.WithoutCancel(t.Context()), r.clock.Now()); err != nil {
			t.Fatal(err)
		}
		r.clock.Advance(time.Second)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	got := v.got
	const from = "sandbox bank, notices /inbound/a/b"
	if len(got) != 2 || !strings.HasPrefix(got[0], from+" {") || !strings.HasPrefix(got[1], from+"/pix {") || !strings.Contains(got[1], `"valor":"10.00"`) {
		t.Errorf("received %q", got)
	}
}
