package asaasface

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/money"
)

// note is a line of the book: exactly one of its parts is set.
type note struct {
	Customer   *customerNote   `json:"customer,omitempty"`
	Payment    *paymentNote    `json:"payment,omitempty"`
	Refund     *refundNote     `json:"refund,omitempty"`
	Transfer   *transferNote   `json:"transfer,omitempty"`
	Movement   *movementNote   `json:"movement,omitempty"`
	Webhook    *webhookNote    `json:"webhook,omitempty"`
	Validation *validationNote `json:"validation,omitempty"`
}

// customerNote is a customer.
type customerNote struct {
	ID        string `json:"id"`
	Document  string `json:"cpfCnpj"`
	Reference string `json:"externalReference"`
	Silent    bool   `json:"notificationDisabled"`
}

// paymentNote is what the bank does not keep of a charge. Of a card in instalments there are
// several, with one charge at the bank.
type paymentNote struct {
	ID          string      `json:"id"`
	Charge      string      `json:"charge"` // id at the bank
	Installment string      `json:"installment,omitempty"`
	Part        int         `json:"part"` // from 1
	Parts       int         `json:"parts"`
	Customer    string      `json:"customer"`
	Method      string      `json:"billingType"`
	Value       money.Cents `json:"value"`
	Created     string      `json:"dateCreated"`
	Due         string      `json:"dueDate"`
	Description string      `json:"description,omitempty"`
	Reference   string      `json:"externalReference,omitempty"`
	Deleted     bool        `json:"deleted,omitzero"`
}

// refundNote is what the bank does not keep of a refund.
type refundNote struct {
	ID          string      `json:"id"` // at the bank
	Payment     string      `json:"payment"`
	Value       money.Cents `json:"value"`
	Created     string      `json:"dateCreated"`
	Description string      `json:"description,omitempty"`
	Unconfirmed bool        `json:"unconfirmed,omitempty"` // it was requested under the critical authorization
}

// transferNote is the reference of a transfer that the bank has under another id.
type transferNote struct {
	ID        string `json:"id"` // at the bank
	Reference string `json:"externalReference"`
}

// webhookNote is the address for notices.
type webhookNote struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	URL         string   `json:"url"`
	Email       string   `json:"email,omitempty"`
	Enabled     bool     `json:"enabled"`
	Interrupted bool     `json:"interrupted"`
	Token       string   `json:"authToken"`
	SendType    string   `json:"sendType"`
	Events      []string `json:"events"`
}

// validationNote is the address for questions about transfers; without a URL none is asked.
type validationNote struct {
	URL   string `json:"url"`
	Token string `json:"authToken"`
}

// book keeps notes, in a file if it has a path. It is safe for concurrent use.
type book struct {
	mu         sync.Mutex
	file       *os.File // nil: in memory only
	customers  []customerNote
	payments   []paymentNote // in their order
	byID       map[string]int
	refunds    map[string][]refundNote // by payment
	byRefund   map[string]string       // payments, by refund
	transfers  map[string]string       // references, by id at the bank
	movements  []movementNote          // in their order
	movedKeys  map[string]bool         // of movements
	hooks      []webhookNote
	validation validationNote
}

func newBook() *book {
	return &book{byID: map[string]int{}, refunds: map[string][]refundNote{}, byRefund: map[string]string{}, transfers: map[string]string{}, movedKeys: map[string]bool{}}
}

// openBook reads the file to its last complete line; what follows is of a crash.
func openBook(path string) (*book, error) {
	b := newBook()
	if path == "" {
		return b, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("asaasface: read %s: %w", path, err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	lines := bufio.NewScanner(bytes.NewReader(text[:whole]))
	lines.Buffer(nil, lineMax)
	for lines.Scan() {
		var n note
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			return nil, fmt.Errorf("asaasface: %s is damaged: move it away to start afresh", path)
		}
		b.apply(&n)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("asaasface: read %s: %w", path, err)
	}
	if b.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("asaasface: open %s: %w", path, err)
	}
	_, seek := b.file.Seek(int64(whole), 0)
	if err := errors.Join(b.file.Truncate(int64(whole)), seek); err != nil {
		return nil, errors.Join(fmt.Errorf("asaasface: open %s: %w", path, err), b.file.Close())
	}
	return b, nil
}

// lineMax is the longest line, in bytes: requests are shorter.
const lineMax = 1 << 20

func (b *book) apply(n *note) {
	switch {
	case n.Customer != nil:
		b.customers = append(b.customers, *n.Customer)
	case n.Payment != nil:
		if i, known := b.byID[n.Payment.ID]; known {
			b.payments[i] = *n.Payment
			return
		}
		b.byID[n.Payment.ID] = len(b.payments)
		b.payments = append(b.payments, *n.Payment)
	case n.Refund != nil:
		b.refunds[n.Refund.Payment] = append(b.refunds[n.Refund.Payment], *n.Refund)
		b.byRefund[n.Refund.ID] = n.Refund.Payment
	case n.Transfer != nil:
		b.transfers[n.Transfer.ID] = n.Transfer.Reference
	case n.Movement != nil:
		b.movements = append(b.movements, *n.Movement)
		b.movedKeys[n.Movement.Key] = true
	case n.Webhook != nil:
		if i := slices.IndexFunc(b.hooks, func(w webhookNote) bool { return w.ID == n.Webhook.ID }); i >= 0 {
			b.hooks[i] = *n.Webhook
			return
		}
		b.hooks = append(b.hooks, *n.Webhook)
	case n.Validation != nil:
		b.validation = *n.Validation
	}
}

// write makes notes durable, and then applies them.
func (b *book) write(notes ...note) error {
	var text []byte
	for i := range notes {
		line, err := json.Marshal(&notes[i])
		if err != nil {
			return fmt.Errorf("asaasface: write a note: %w", err)
		}
		text = append(append(text, line...), '\n')
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file != nil {
		if _, err := b.file.Write(text); err != nil {
			return fmt.Errorf("asaasface: write a note: %w", err)
		}
		if err := b.file.Sync(); err != nil {
			return fmt.Errorf("asaasface: write a note: %w", err)
		}
	}
	for i := range notes {
		b.apply(&notes[i])
	}
	return nil
}

// customer finds the first customer that a test admits.
func (b *book) customersWhere(admits func(c *customerNote) bool) (list []customerNote) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.customers {
		if admits(&b.customers[i]) {
			list = append(list, b.customers[i])
		}
	}
	return list
}

func (b *book) payment(id string) (paymentNote, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.byID[id]
	if !ok {
		return paymentNote{}, false
	}
	return b.payments[i], true
}

// paymentsWhere lists payments, the newest first.
func (b *book) paymentsWhere(admits func(p *paymentNote) bool) (list []paymentNote) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range slices.Backward(b.payments) {
		if admits(&b.payments[i]) {
			list = append(list, b.payments[i])
		}
	}
	return list
}

func (b *book) refundsOf(payment string) []refundNote {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.refunds[payment])
}

// refunded is the payment of a refund.
func (b *book) refunded(refund string) (paymentNote, bool) {
	b.mu.Lock()
	id, ok := b.byRefund[refund]
	b.mu.Unlock()
	if !ok {
		return paymentNote{}, false
	}
	return b.payment(id)
}

// reference is the externalReference of a transfer.
func (b *book) reference(transfer string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reference, ok := b.transfers[transfer]; ok {
		return reference
	}
	return transfer
}

// moved reports whether the statement has an entry under a key.
func (b *book) moved(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.movedKeys[key]
}

func (b *book) statement() []movementNote {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.movements)
}

func (b *book) webhooks() []webhookNote {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.hooks)
}

func (b *book) asks() validationNote {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.validation
}

func (b *book) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}
