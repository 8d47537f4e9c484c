package apipixface

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// note is a line of the book: exactly one of its parts is set.
type note struct {
	Charge  *chargeNote  `json:"charge,omitempty"`
	Webhook *webhookNote `json:"webhook,omitempty"`
}

// chargeNote is what the bank does not keep of a charge.
type chargeNote struct {
	TxID        string    `json:"txid"`
	CreatedAt   time.Time `json:"createdAt"`
	Expires     int64     `json:"expires"` // seconds
	Key         string    `json:"key"`
	Description string    `json:"description,omitempty"`
}

// webhookNote is the address for notices; without a URL there is none.
type webhookNote struct {
	URL       string    `json:"url"`
	SkipMTLS  bool      `json:"skipMtls,omitzero"` // the address was registered without a test of its certificates
	CreatedAt time.Time `json:"createdAt"`
}

// book keeps notes, in a file if it has a path. It is safe for concurrent use.
type book struct {
	mu      sync.Mutex
	file    *os.File // nil: in memory only
	charges map[string]chargeNote
	order   []string // of txids, as they came
	webhook webhookNote
}

// openBook reads the file to its last complete line; what follows is of a crash.
func openBook(path string) (*book, error) {
	b := &book{charges: map[string]chargeNote{}}
	if path == "" {
		return b, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("apipixface: read %s: %w", path, err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	for lines := bufio.NewScanner(bytes.NewReader(text[:whole])); lines.Scan(); {
		var n note
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			return nil, fmt.Errorf("apipixface: %s is damaged: move it away to start afresh", path)
		}
		b.apply(&n)
	}
	if b.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("apipixface: open %s: %w", path, err)
	}
	if err := b.file.Truncate(int64(whole)); err != nil {
		return nil, errors.Join(fmt.Errorf("apipixface: open %s: %w", path, err), b.file.Close())
	}
	if _, err := b.file.Seek(int64(whole), 0); err != nil {
		return nil, errors.Join(fmt.Errorf("apipixface: open %s: %w", path, err), b.file.Close())
	}
	return b, nil
}

func (b *book) apply(n *note) {
	if n.Charge != nil {
		if _, known := b.charges[n.Charge.TxID]; !known {
			b.order = append(b.order, n.Charge.TxID)
		}
		b.charges[n.Charge.TxID] = *n.Charge
	}
	if n.Webhook != nil {
		b.webhook = *n.Webhook
	}
}

// write makes a note durable, and then applies it.
func (b *book) write(n note) error {
	line, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("apipixface: write a note: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file != nil {
		if _, err := b.file.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("apipixface: write a note: %w", err)
		}
		if err := b.file.Sync(); err != nil {
			return fmt.Errorf("apipixface: write a note: %w", err)
		}
	}
	b.apply(&n)
	return nil
}

func (b *book) charge(txid string) (chargeNote, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.charges[txid]
	return n, ok
}

// chargesBetween lists the notes of charges that were made from one time until another.
func (b *book) chargesBetween(from, to time.Time) (list []chargeNote) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range b.order {
		if n := b.charges[id]; !n.CreatedAt.Before(from) && !n.CreatedAt.After(to) {
			list = append(list, n)
		}
	}
	return list
}

func (b *book) address() webhookNote {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.webhook
}

func (b *book) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}
