package apipixface

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// NotifyURL is the address at which the bank notifies its face.
const NotifyURL = "http://" + notifyHost + "/"

const notifyHost = "apipix.porteira.invalid"

// noticeTimeout bounds a test of an address.
const noticeTimeout = 10 * time.Second

// answerRead is how much of a receiver's answer is read, in bytes.
const answerRead = 4 << 10

type webhookIn struct {
	URL string `json:"webhookUrl"`
}

type webhookOut struct {
	URL     string `json:"webhookUrl"`
	Key     string `json:"chave"`
	Created string `json:"criacao"`
}

// putWebhook registers the address for notices, which must answer a test: as Efí does, first
// without a certificate, which it must refuse, unless the caller asks to leave that out.
func putWebhook(f *Face, r *request) (int, any, error) {
	var in webhookIn
	if err := r.decode(&in); err != nil {
		return 0, nil, err
	}
	u, err := url.Parse(in.URL)
	switch {
	case r.PathValue("chave") != Key:
		return 0, nil, invalid("WebhookOperacaoInvalida", "chave")
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http":
		return 0, nil, invalid("WebhookOperacaoInvalida", "webhook.webhookUrl")
	}
	skip := r.Header.Get("X-Skip-Mtls-Checking") == "true" || f.opts.Certificate == nil
	body := []byte(`{"evento":"teste_webhook"}`)
	if status, err := f.post(r.Context(), f.unknown, in.URL, body); !skip && err == nil && status < 300 {
		return 0, nil, invalid("WebhookOperacaoInvalida", "webhook.webhookUrl") // it accepts anyone
	}
	if status, err := f.post(r.Context(), f.proved, in.URL, body); err != nil || status > 299 {
		return 0, nil, invalid("WebhookOperacaoInvalida", "webhook.webhookUrl")
	}
	n := webhookNote{URL: in.URL, SkipMTLS: skip, CreatedAt: f.bank.Now().UTC()}
	return http.StatusOK, nil, f.book.write(note{Webhook: &n})
}

func getWebhook(f *Face, r *request) (int, any, error) {
	n := f.book.address()
	if r.PathValue("chave") != Key || n.URL == "" {
		return 0, nil, missing("WebhookNaoEncontrado")
	}
	return http.StatusOK, webhookOut{n.URL, Key, formatTime(n.CreatedAt)}, nil
}

func deleteWebhook(f *Face, r *request) (int, any, error) {
	if r.PathValue("chave") != Key || f.book.address().URL == "" {
		return 0, nil, missing("WebhookNaoEncontrado")
	}
	return http.StatusNoContent, nil, f.book.write(note{Webhook: &webhookNote{CreatedAt: f.bank.Now().UTC()}})
}

// post posts a body to a receiver of notices, and returns the status of its answer.
func (f *Face) post(ctx context.Context, transport http.RoundTripper, address string, body []byte) (int, error) {
	ctx, cancel := f.opts.Clock.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, answerRead)) // else the connection is not used again
	_ = response.Body.Close()
	return response.StatusCode, nil
}

// Notify is the transport of the bank's notices: those to [NotifyURL] leave in the shape of
// the API Pix, the others by next.
func (f *Face) Notify(next http.RoundTripper) http.RoundTripper { return notifier{f, next} }

type notifier struct {
	face *Face
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (n notifier) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != notifyHost {
		return n.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	status, err := n.face.notify(r.Context(), body)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// notify sends a notice of the bank on. Its status is that of the receiver: the bank repeats
// what was not accepted.
func (f *Face) notify(ctx context.Context, body []byte) (status int, err error) {
	var n bankapi.Notice
	if err := json.Unmarshal(body, &n); err != nil {
		return http.StatusBadRequest, nil //nolint:nilerr // it was answered
	}
	address := f.book.address()
	if address.URL == "" {
		return http.StatusNotFound, nil
	}
	entry, ok, err := f.entry(&n)
	switch {
	case err != nil:
		return 0, err
	case !ok: // the API Pix has no notice of it
		return http.StatusOK, nil
	}
	return f.post(ctx, f.proved, toPix(address.URL), encode(struct {
		Entries []any `json:"pix"`
	}{[]any{entry}}))
}

// toPix appends /pix to the path of an address, as all banks do.
func toPix(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/")+"/pix", ""
	return u.String()
}

// transferNotice is the notice of a transfer, as Efí sends it.
type transferNotice struct {
	EndToEndID string `json:"endToEndId"`
	Key        string `json:"chave"`
	Kind       string `json:"tipo"`
	Status     string `json:"status"`
	Value      string `json:"valor"`
	Time       string `json:"horario"`
	Extras     struct {
		ID string `json:"idEnvio"`
	} `json:"gnExtras"`
}

// entry is what a notice of the bank says; ok is false if there is nothing to say.
func (f *Face) entry(n *bankapi.Notice) (entry any, ok bool, err error) {
	paymentID := ""
	switch n.Subject {
	case bankapi.SubjectTransfer:
		o, known, err := f.bank.PeekOrder(bankapi.SubjectTransfer, n.ExternalID)
		if err != nil || !known {
			return nil, false, err
		}
		v := transferNotice{
			EndToEndID: o.EndToEndID, Key: Key, Kind: "SOLICITACAO", Status: transferStatus(string(o.State)),
			Value: formatAmount(o.Amount), Time: formatTime(o.ChangedAt),
		}
		v.Extras.ID = o.ExternalID
		return v, true, nil
	case bankapi.SubjectRefund:
		paymentID, err = f.paymentOf(n.ExternalID, n.CreatedAt)
	default:
		if n.Payment != nil {
			paymentID = n.Payment.ID
			break
		}
		c, known, peeked := f.bank.PeekCharge(n.ExternalID)
		if known && len(c.Payments) > 0 { // it is disputed
			paymentID = c.Payments[len(c.Payments)-1].ID
		}
		err = peeked
	}
	if err != nil || paymentID == "" {
		return nil, false, err
	}
	p, known, err := f.bank.PeekPayment(paymentID)
	if err != nil || !known || p.EndToEndID == "" {
		return nil, false, err
	}
	return showPayment(&p), true, nil
}

// returnWindow is how long after a payment it can be given back.
const returnWindow = 91 * 24 * time.Hour

// paymentOf is the payment that a return is of.
func (f *Face) paymentOf(returnID string, at time.Time) (string, error) {
	list, err := f.bank.PeekPayments(at.Add(-returnWindow), at)
	for i := range list {
		for j := range list[i].Refunds {
			if list[i].Refunds[j].ExternalID == returnID {
				return list[i].ID, err
			}
		}
	}
	return "", err
}
