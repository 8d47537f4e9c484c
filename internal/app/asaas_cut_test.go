package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/asaas"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/asaasface"
)

const cutKey, cutToken = "$aact_hmlg_0123456789", "0123456789abcdef0123456789abcdef"

// cutAsaas is a gateway whose only account is at the bank's face as Asaas. Its connection can
// be cut at any message.
type cutAsaas struct {
	g    *coretest.Gateway
	bank *sandboxbank.Bank
	face *asaasface.Face

	in       http.Handler // of the gateway
	left     int          // messages until the cut; 0: none
	after    bool         // the message arrives, and its answer does not
	messages int
}

func newCutAsaas(t *testing.T) *cutAsaas {
	t.Helper()
	b := &cutAsaas{g: coretest.New(t, "sqlite")}
	w, _ := env.Virtual(coretest.Start, 9)
	relay := &asaasface.Relay{Next: cutInbound{b}}
	bank, err := sandboxbank.Open(sandboxbank.Options{Secret: "the secret of the bank", Clock: b.g.Clock, IDs: w.IDs, Notify: relay})
	b.g.Must(err)
	t.Cleanup(func() { b.g.Must(bank.Close()) })
	b.bank, err = bank.Contract(asaasface.ContractRepeat, asaasface.ContractName)
	b.g.Must(err)
	b.face, err = asaasface.Open(asaasface.Options{Bank: b.bank, Key: cutKey, Notify: cutInbound{b}, BaseURL: "https://asaas.invalid"})
	b.g.Must(err)
	relay.Serve(b.face)
	driver, err := asaas.Driver{}.Open(processor.Account{
		ID: coretest.BankName, Settings: map[string]string{asaas.SettingBaseURL: "https://asaas.invalid/v3", asaas.SettingValidation: "on"},
		Secrets: map[string]string{asaas.SecretKey: cutKey, asaas.SecretToken: cutToken},
	}, processor.Env{Clock: b.g.Clock, Transport: cutOutbound{b}})
	b.g.Must(err)
	b.g.Processor(coretest.BankName, driver)
	b.connect(driver)
	const address = "https://gateway.invalid/inbound/" + coretest.BankName + "/" + coretest.BankName
	b.g.Must(driver.(processor.Installer).Install(t.Context(), address))
	b.call(http.MethodPut, "/panel/withdrawal-validation", fmt.Sprintf(`{"url":%q,"authToken":%q}`, address+"/consent", cutToken))
	return b
}

// connect serves the notices and questions of the present process.
func (b *cutAsaas) connect(driver processor.Processor) {
	mux := http.NewServeMux()
	inbound := notice.NewHandler(notice.HandlerOptions{
		Recorder: b.g.Notices, Questions: b.g.Outgoing, Clock: b.g.Clock, Processors: processor.Registry{coretest.BankName: driver},
	})
	mux.Handle("POST /inbound/{account}/{token}", inbound)
	mux.Handle("POST /inbound/{account}/{token}/{rest...}", inbound)
	b.in = mux
}

// cutOutbound carries the driver's calls.
type cutOutbound struct{ *cutAsaas }

var errCut = errors.New("the connection broke")

// RoundTrip implements [http.RoundTripper].
func (v cutOutbound) RoundTrip(r *http.Request) (*http.Response, error) {
	v.messages++
	cut := false
	if v.left > 0 {
		v.left--
		cut = v.left == 0
	}
	if cut && !v.after {
		return nil, errCut
	}
	w := httptest.NewRecorder()
	arrived := r.Clone(r.Context())
	arrived.Header = http.Header{}
	for name := range r.Header {
		arrived.Header.Set(name, r.Header[name][0])
	}
	if arrived.Body == nil {
		arrived.Body = http.NoBody
	}
	v.face.Handler().ServeHTTP(w, arrived)
	if cut {
		return nil, errCut
	}
	return w.Result(), nil
}

// cutInbound carries the face's notices and questions.
type cutInbound struct{ *cutAsaas }

// RoundTrip implements [http.RoundTripper].
func (v cutInbound) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	arrived := r.Clone(r.Context())
	arrived.Body = io.NopCloser(bytes.NewReader(body))
	w := httptest.NewRecorder()
	v.in.ServeHTTP(w, arrived)
	return w.Result(), nil
}

// call calls the face as its sandbox and panel are called.
func (b *cutAsaas) call(method, path, body string) string {
	b.g.T.Helper()
	r := httptest.NewRequestWithContext(b.g.T.Context(), method, "https://asaas.invalid"+path, strings.NewReader(body))
	if body == "" {
		r.Body = http.NoBody
	}
	r.Header.Set("access_token", cutKey)
	w := httptest.NewRecorder()
	b.face.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		b.g.T.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Body.String()
}

// work lets both sides work for an hour.
func (b *cutAsaas) work() {
	b.g.T.Helper()
	for range 60 {
		b.g.Run(func(ctx context.Context) (int, error) { return b.bank.Step(ctx, b.g.Clock.Now()) })
		b.g.Until(func() {
			b.g.Apply()
			b.g.Charge()
			b.g.LookUp()
			b.g.Send()
		})
		b.g.Jump(time.Minute)
	}
}

// cutMessages is beyond the number of messages of each effect.
const cutMessages = 9

// The connection is cut before or after any message of a charge, a payout and a refund: the
// bank has at most one charge of the order, one transfer of the payout and one refund of its
// part, and the ledger agrees.
func TestAsaasConnectionIsCut(t *testing.T) {
	t.Parallel()
	for _, effect := range []string{"charge", "payout", "refund"} {
		for message := 1; message <= cutMessages; message++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprint(effect, " ", message, " ", after), func(t *testing.T) {
					t.Parallel()
					cutOnce(t, effect, message, after)
				})
			}
		}
	}
}

func cutOnce(t *testing.T, effect string, message int, after bool) {
	t.Helper()
	b := newCutAsaas(t)
	cut := func(of string) {
		if b.left, b.after = 0, after; of == effect {
			b.left = message
		}
	}
	proof := b.g.Payout("proof", 1_00) // that the account asks
	b.work()
	b.g.WantPayout(proof, payment.PayoutCompleted, payment.StepDone)

	cut("charge")
	r := coretest.PayinRequest("order", "")
	r.Personal = payment.PersonalData{Customer: []byte(`{"name":"Maria","document":"52998224725"}`)}
	var p payment.Payin
	b.g.Until(func() { p, _, _ = b.g.Payins.Create(t.Context(), b.g.Merchant, r) })
	b.left = 0
	b.work()
	list := b.call(http.MethodGet, "/v3/payments?", "")
	made := strings.Count(list, `"id":"pay_`)
	if made > 1 || effect != "charge" && made != 1 {
		t.Fatalf("the bank has %d charges: %s", made, list)
	}

	cut("payout")
	out := b.g.Payout("out", 10_00)
	b.work()
	b.left = 0
	b.work()
	b.g.WantPayout(out, payment.PayoutCompleted, payment.StepDone)
	if done := strings.Count(b.call(http.MethodGet, "/v3/transfers?limit=100", ""), `"status":"DONE"`); done != 2 {
		t.Errorf("the bank has paid %d transfers, want that of the proof and that of the payout", done)
	}

	if made == 1 {
		_, id, _ := strings.Cut(list, `"id":"`)
		id, _, _ = strings.Cut(id, `"`)
		b.call(http.MethodPost, "/v3/sandbox/payment/"+id+"/confirm", "")
		b.work()
		b.g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		cut("refund")
		b.g.Refund(p, "refund", 40_00)
		b.work()
		b.left = 0
		b.work()
		given := strings.Count(b.call(http.MethodGet, "/v3/payments?", ""), `"status":"DONE","value":40.00`)
		if given > 1 || effect != "refund" && given != 1 {
			t.Errorf("the bank has given back %d times", given)
		}
	}
	b.g.WantProven()
}
