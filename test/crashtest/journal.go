package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Kinds of orders, as in paths of the API.
const (
	payin  = "payin"
	payout = "payout"
)

// placement is a client's record of one order.
type placement struct {
	Kind      string          `json:"kind"` // payin or payout
	Reference string          `json:"reference"`
	Body      json.RawMessage `json:"body,omitempty"`     // as it was sent
	Acked     json.RawMessage `json:"acked,omitempty"`    // the body of the 201; empty while there was none
	Refused   string          `json:"refused,omitempty"`  // the code of a final refusal
	Action    string          `json:"action,omitempty"`   // that the client or the payer tried on it
	Canceled  bool            `json:"canceled,omitempty"` // the cancellation was acknowledged
}

func (a *placement) key() string { return a.Kind + " " + a.Reference }

// amount is the amount of the request, in cents.
func (a *placement) amount() int64 {
	var body request
	_ = json.Unmarshal(a.Body, &body) // always valid
	return body.Amount
}

// journal is a client's record: an acknowledgement is synced before the client continues.
type journal struct{ file *os.File }

// journalPath is the path of a client's journal.
func journalPath(folder string, client int) string {
	return filepath.Join(folder, fmt.Sprintf("client-%d.journal", client))
}

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &journal{f}, err
}

// write adds a line about an order, and syncs it if it must be durable.
func (j *journal) write(a placement, durable bool) error {
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return err
	}
	if durable {
		return j.file.Sync()
	}
	return nil
}

func (j *journal) close() error { return j.file.Close() }

// readJournals joins the lines of all clients' journals, in the order in which
// orders were first placed.
func readJournals(folder string) ([]*placement, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "client-*.journal"))
	if err != nil {
		return nil, err
	}
	var list []*placement
	known := map[string]*placement{}
	for _, path := range paths {
		err := eachLine(path, func(line []byte) error {
			var a placement
			if err := json.Unmarshal(line, &a); err != nil {
				return err
			}
			if known[a.key()] == nil {
				known[a.key()] = &placement{Kind: a.Kind, Reference: a.Reference}
				list = append(list, known[a.key()])
			}
			known[a.key()].join(a)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (a *placement) join(more placement) {
	if len(more.Body) > 0 {
		a.Body = more.Body
	}
	if len(more.Acked) > 0 && len(a.Acked) == 0 {
		a.Acked = more.Acked
	}
	if more.Refused != "" {
		a.Refused = more.Refused
	}
	if more.Action != "" {
		a.Action = more.Action
	}
	a.Canceled = a.Canceled || more.Canceled
}

// readDeliveries reads the receivers' journals. It ignores a line that a kill cut off,
// because that delivery was not answered.
func readDeliveries(folder string) (list []delivery, err error) {
	for n := range receiverCount {
		err := eachLine(receiverJournal(folder, n), func(line []byte) error {
			var d delivery
			if json.Unmarshal(line, &d) == nil {
				list = append(list, d)
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	return list, nil
}

// eachLine reads a file of lines.
func eachLine(path string, work func(line []byte) error) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for number := 1; scanner.Scan(); number++ {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		if err := work(scanner.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	return scanner.Err()
}
