package asaasface

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// The bank's notices and questions are for an address that nobody has: a [Relay] gives them to
// the face, which sends them on as Asaas does.
const (
	noticeHost = "asaas.invalid"
	noticeURL  = "http://" + noticeHost + "/notices"
)

const tokenHeader = "Asaas-Access-Token"

// interruptAfter is how many failures in a row interrupt the queue of notices.
const interruptAfter = 15

// answerRead is how much of a gateway's answer is read, in bytes.
const answerRead = 4 << 10

// Relay is a transport for the bank's notices: it passes on those of other addresses.
type Relay struct {
	Next http.RoundTripper

	face atomic.Pointer[Face]
}

// Serve registers a face as the sender of its account's webhooks.
func (r *Relay) Serve(f *Face) { r.face.Store(f) }

// RoundTrip implements [http.RoundTripper].
func (r *Relay) RoundTrip(request *http.Request) (*http.Response, error) {
	f := r.face.Load()
	if request.URL.Host != noticeHost || f == nil {
		return r.Next.RoundTrip(request)
	}
	body, err := io.ReadAll(request.Body)
	_ = request.Body.Close()
	if err != nil {
		return nil, err
	}
	var status int
	var answer []byte
	if strings.HasSuffix(request.URL.Path, bankapi.ConsentPath) {
		status, answer, err = f.ask(request.Context(), body)
	} else {
		status, err = f.announce(request.Context(), body)
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(answer)), ContentLength: int64(len(answer)), Request: request,
	}, nil
}

// failures counts those in a row.
type failures struct {
	mu sync.Mutex
	n  int
}

// note counts the result of a notice, and reports whether the queue is to be interrupted.
func (v *failures) note(ok bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if ok {
		v.n = 0
		return false
	}
	v.n++
	return v.n%interruptAfter == 0
}

// event is the body of a notice.
type event struct {
	ID          string    `json:"id"`
	Event       string    `json:"event"`
	DateCreated string    `json:"dateCreated"`
	Payment     *payment  `json:"payment,omitempty"`
	Transfer    *transfer `json:"transfer,omitempty"`
}

// announce sends a notice of the bank to each webhook. A status other than 200 makes the bank
// repeat it.
func (f *Face) announce(ctx context.Context, body []byte) (int, error) {
	var n bankapi.Notice
	if err := json.Unmarshal(body, &n); err != nil {
		return http.StatusBadRequest, nil
	}
	events, err := f.eventsOf(&n)
	if err != nil {
		return 0, err
	}
	for _, w := range f.book.webhooks() {
		if !w.Enabled {
			continue
		}
		if w.Interrupted {
			return http.StatusServiceUnavailable, nil
		}
		for _, e := range events {
			if !slices.Contains(w.Events, e.Event) {
				continue
			}
			status, _, err := f.post(ctx, w.URL, w.Token, e)
			if f.failures.note(err == nil && status == http.StatusOK) {
				w.Interrupted = true
				if err := f.book.write(note{Webhook: &w}); err != nil {
					return 0, err
				}
				f.Log.WarnContext(ctx, "the queue of notices is interrupted", "webhook", w.Name)
			}
			if err != nil || status != http.StatusOK {
				return http.StatusServiceUnavailable, nil
			}
		}
	}
	return http.StatusOK, nil
}

// eventsOf are Asaas' events of one of the bank: of a card in instalments one for each.
func (f *Face) eventsOf(n *bankapi.Notice) (list []event, err error) {
	at := timeOf(n.CreatedAt)
	id := "evt_" + strings.ReplaceAll(n.ID, "-", "")
	switch n.Subject {
	case bankapi.SubjectTransfer:
		entries, err := f.transfersOf(n.ExternalID)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			v := f.showTransfer(&entries[i])
			list = append(list, event{ID: id + "&" + strconv.Itoa(i), Event: "TRANSFER_" + v.Status, DateCreated: at, Transfer: v})
		}
		return list, nil
	case bankapi.SubjectRefund:
		p, ok := f.book.refunded(n.ExternalID)
		if !ok {
			return nil, nil
		}
		v, err := f.show(&p)
		if err != nil {
			return nil, err
		}
		return []event{{ID: id, Event: refundEvent(v), DateCreated: at, Payment: v}}, nil
	default:
		notes := f.book.paymentsWhere(func(p *paymentNote) bool { return p.Charge == n.ExternalID })
		for i := range notes {
			v, err := f.show(&notes[i])
			if err != nil {
				return nil, err
			}
			list = append(list, event{ID: id + "&" + strconv.Itoa(i), Event: "PAYMENT_" + v.Status, DateCreated: at, Payment: v})
		}
		return list, nil
	}
}

// refundEvent is the event of the newest refund of a charge.
func refundEvent(v *payment) string {
	switch {
	case len(v.Refunds) > 0 && v.Refunds[0].Status == "CANCELLED":
		return "PAYMENT_REFUND_DENIED"
	case v.Status == statusRefunded:
		return "PAYMENT_REFUNDED"
	default:
		return "PAYMENT_PARTIALLY_REFUNDED"
	}
}

// post sends a body with the token of an address.
func (f *Face) post(ctx context.Context, url, token string, in any) (status int, answer []byte, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(tokenHeader, token)
	response, err := f.Notify.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	answer, _ = io.ReadAll(io.LimitReader(response.Body, answerRead))
	_ = response.Body.Close()
	return response.StatusCode, answer, nil
}

// ask asks the gateway about a transfer, if the account does so; else it is approved.
func (f *Face) ask(ctx context.Context, body []byte) (int, []byte, error) {
	var q bankapi.Question
	if err := json.Unmarshal(body, &q); err != nil {
		return http.StatusBadRequest, nil, nil
	}
	address := f.book.asks()
	if address.URL == "" {
		return http.StatusOK, encode(bankapi.Consent{Status: bankapi.ConsentApproved}), nil
	}
	e, err := f.findTransfer(q.Transfer.ID)
	if err != nil {
		return http.StatusServiceUnavailable, nil, nil
	}
	status, answer, err := f.post(ctx, address.URL, address.Token, struct {
		Type     string    `json:"type"`
		Transfer *transfer `json:"transfer"`
	}{"TRANSFER", f.showTransfer(&e)})
	if err != nil || status != http.StatusOK {
		return http.StatusServiceUnavailable, nil, err
	}
	var decision struct {
		Status string `json:"status"`
		Reason string `json:"refuseReason"`
	}
	if json.Unmarshal(answer, &decision) != nil {
		return http.StatusServiceUnavailable, nil, nil
	}
	switch decision.Status {
	case "APPROVED":
		return http.StatusOK, encode(bankapi.Consent{Status: bankapi.ConsentApproved}), nil
	case "REFUSED":
		return http.StatusOK, encode(bankapi.Consent{Status: bankapi.ConsentRefused, Reason: decision.Reason}), nil
	default:
		return http.StatusServiceUnavailable, nil, nil
	}
}

// webhook is an address for notices.
type webhook struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	URL         string   `json:"url"`
	Email       *string  `json:"email"`
	Enabled     bool     `json:"enabled"`
	Interrupted bool     `json:"interrupted"`
	APIVersion  int      `json:"apiVersion"`
	HasToken    bool     `json:"hasAuthToken"`
	SendType    string   `json:"sendType"`
	Events      []string `json:"events"`
}

func showWebhook(n *webhookNote) webhook {
	return webhook{n.ID, n.Name, n.URL, orNull(n.Email), n.Enabled, n.Interrupted, 3, n.Token != "", n.SendType, n.Events}
}

// webhooksMax is the most addresses of an account.
const webhooksMax = 10

func (f *Face) listWebhooks(c *call) (any, error) {
	rows := []webhook{}
	for _, n := range f.book.webhooks() {
		rows = append(rows, showWebhook(&n))
	}
	return pageOf(c, rows)
}

func (f *Face) postWebhook(c *call) (any, error) {
	if len(f.book.webhooks()) >= webhooksMax {
		return nil, refuse("invalid_action", "O limite de webhooks foi atingido.")
	}
	return f.setWebhook(c, &webhookNote{ID: f.handlers.NewID()})
}

func (f *Face) putWebhook(c *call) (any, error) {
	list := f.book.webhooks()
	i := slices.IndexFunc(list, func(w webhookNote) bool { return w.ID == c.PathValue("id") })
	if i < 0 {
		return nil, errNotFound
	}
	return f.setWebhook(c, &list[i])
}

func (f *Face) setWebhook(c *call, n *webhookNote) (any, error) {
	id, token := n.ID, n.Token
	n.Events = nil
	if err := c.decode(n); err != nil {
		return nil, err
	}
	if n.ID = id; n.Token == "" {
		n.Token = token
	}
	if n.Name == "" || !bankapi.IsURL(n.URL) || len(n.Token) < 32 || len(n.Token) > 255 || len(n.Events) == 0 {
		return nil, refuse("invalid_object", "O webhook é inválido.")
	}
	if err := f.book.write(note{Webhook: n}); err != nil {
		return nil, err
	}
	f.handlers.Wake()
	return showWebhook(n), nil
}

func (f *Face) putValidation(c *call) (any, error) {
	var n validationNote
	if err := c.decode(&n); err != nil {
		return nil, err
	}
	if n.URL != "" && (!bankapi.IsURL(n.URL) || n.Token == "") {
		return nil, refuse("invalid_object", "O endereço é inválido.")
	}
	if err := f.book.write(note{Validation: &n}); err != nil {
		return nil, err
	}
	return struct {
		URL string `json:"url"`
	}{n.URL}, nil
}
