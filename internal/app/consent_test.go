package app_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/internal/store"
)

// askingBank is the sandbox's bank as the only account of a gateway: with a contract that pays
// a repeated transfer twice, and asks for consent.
type askingBank struct {
	g       *coretest.Gateway
	bank    *sandboxbank.Bank
	driver  *sandbox.Processor
	control *sandbox.Control
	handler http.Handler // of the gateway

	lost    bool     // answers to transfers do not arrive
	lags    bool     // look-ups do not show transfers yet
	answers []string // to questions, as id and status
}

func newAskingBank(t *testing.T, g *coretest.Gateway) *askingBank {
	t.Helper()
	b := &askingBank{g: g}
	w, _ := env.Virtual(coretest.Start, 7)
	const secret = "the secret of the bank"
	bank, err := sandboxbank.Open(sandboxbank.Options{Secret: secret, Clock: g.Clock, IDs: w.IDs, Notify: toGateway{b}})
	g.Must(err)
	t.Cleanup(func() { g.Must(bank.Close()) })
	b.bank, err = bank.Contract(bankapi.RepeatAsksConsent, "asks")
	g.Must(err)
	b.bank.SetNotifyURL("http://gateway.invalid/inbound/" + coretest.BankName + "/" + coretest.BankName)
	o := sandbox.Options{
		URL: sandboxbank.InProcessURL + bankapi.ContractPath(bankapi.RepeatAsksConsent, "asks"), Secret: secret,
		Transport: toBank{b, bank.Transport()}, Clock: g.Clock, Repeat: bankapi.RepeatAsksConsent, Inside: true,
	}
	b.driver, err = sandbox.NewProcessor(o)
	g.Must(err)
	o.Transport = bank.Transport()
	b.control, err = sandbox.NewControl(o)
	g.Must(err)
	g.Processor(coretest.BankName, b.driver)
	mux := http.NewServeMux()
	inbound := notice.NewHandler(notice.HandlerOptions{
		Recorder: g.Notices, Questions: g.Outgoing, Clock: g.Clock, Processors: processor.Registry{coretest.BankName: b.driver},
	})
	mux.Handle("POST /inbound/{account}/{token}", inbound)
	mux.Handle("POST /inbound/{account}/{token}/{rest...}", inbound)
	b.handler = mux
	return b
}

// toBank carries calls to the bank.
type toBank struct {
	*askingBank

	way http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t toBank) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.lags && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/transfers/") {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", bankapi.JSONType)
		w.WriteHeader(bankapi.CodeTransferUnknown.Status())
		_, _ = fmt.Fprintf(w, `{"code":%q}`, bankapi.CodeTransferUnknown)
		return w.Result(), nil
	}
	answer, err := t.way.RoundTrip(r)
	if t.lost && err == nil && r.Method == http.MethodPost {
		_ = answer.Body.Close()
		return nil, errors.New("the connection broke")
	}
	return answer, err
}

// toGateway carries notices and questions to the gateway.
type toGateway struct{ *askingBank }

// RoundTrip implements [http.RoundTripper].
func (t toGateway) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	arrived, err := http.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	arrived.Header = r.Header
	t.handler.ServeHTTP(w, arrived)
	if strings.HasSuffix(r.URL.Path, bankapi.ConsentPath) {
		t.answers = append(t.answers, w.Body.String())
	}
	return w.Result(), nil
}

// work lets the bank ask, pay and notify for some seconds.
func (b *askingBank) work() {
	b.g.T.Helper()
	for range 8 {
		b.g.Run(func(ctx context.Context) (int, error) { return b.bank.Step(ctx, b.g.Clock.Now()) })
		b.g.Apply()
		b.g.Pass(time.Second)
	}
}

// send requests a payout and sends it, after the look-up before its first send.
func (b *askingBank) send(reference string) payment.Payout {
	b.g.T.Helper()
	p := b.g.Payout(reference, 10_00)
	b.g.Send()
	b.g.LookUp()
	b.g.Send()
	return p
}

// transfers are the states of the bank's transfers of a payout, oldest first.
func (b *askingBank) transfers(p payment.Payout) (states []string) {
	b.g.T.Helper()
	list, _, err := b.control.Transfers(b.g.T.Context(), p.ExternalID, "")
	b.g.Must(err)
	for _, entry := range list {
		states = append(states, entry.Status)
	}
	return states
}

// A payout is sent, the answer is lost, and the look-up lags and does not find it: it is sent
// again, without a person, as the account is proved to ask. One of the two transfers leaves.
// The other one is refused at its question.
func TestPayoutThatIsSentTwiceLeavesOnce(t *testing.T) {
	for name, row := range map[string]struct {
		lost bool // the second answer too
		want []string
	}{
		"the second answer arrives": {false, []string{"failed", "paid"}},
		"no answer arrives":         {true, []string{"paid", "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
				b := newAskingBank(t, g)
				proof := b.send("proof")
				b.work()
				g.WantPayout(proof, payment.PayoutCompleted, payment.StepDone)

				b.lost, b.lags = true, true
				p := b.send("twice")
				g.WantSends(p, store.SendUnknown)
				g.Pass(30 * time.Second)
				g.LookUp()
				b.lost = row.lost
				g.Send()
				b.lags = false
				if got := b.transfers(p); !slices.Equal(got, []string{"processing", "processing"}) {
					t.Fatalf("the bank has %v", got)
				}
				b.answers = nil
				b.work()
				g.LookUp()
				if got := b.transfers(p); !slices.Equal(got, row.want) {
					t.Errorf("the transfers are %v, want %v", got, row.want)
				}
				approved := strings.Count(strings.Join(b.answers, " "), `"approved"`)
				refused := strings.Count(strings.Join(b.answers, " "), `"refused"`)
				if approved != 1 || refused != 1 || len(b.answers) != 2 {
					t.Errorf("answers to the questions: %v", b.answers)
				}
				g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				g.WantBalances(coretest.Opening-20_00, 0)
				g.WantCases()
				if balance, err := b.driver.Balance(t.Context()); err != nil || balance.Amount != -20_00 {
					t.Errorf("the bank's balance is %+v, %v", balance, err)
				}
			})
		})
	}
}
