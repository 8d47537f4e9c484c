package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// Kinds of orders, as paths of the API name them.
const (
	payin  = "payin"
	payout = "payout"
)

// asked is all that a client knows of one order.
type asked struct {
	Kind      string          `json:"kind"` // payin or payout
	Reference string          `json:"reference"`
	Body      json.RawMessage `json:"body,omitempty"`     // as it was sent
	Acked     json.RawMessage `json:"acked,omitempty"`    // the body of the 201; empty while none was seen
	Refused   string          `json:"refused,omitempty"`  // the code with which it was refused for good
	Canceled  bool            `json:"canceled,omitempty"` // that it was canceled was acknowledged
}

// journal is a client's own book: what it is told is on disk before it goes on.
type journal struct{ file *os.File }

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &journal{f}, err
}

// write adds what has become known of an order; durable where it was told.
func (j *journal) write(a asked, durable bool) error {
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
// orders were first asked for.
func readJournals(paths []string) ([]*asked, error) {
	var list []*asked
	known := map[string]*asked{}
	for _, path := range paths {
		err := eachLine(path, func(line []byte) error {
			var a asked
			if err := json.Unmarshal(line, &a); err != nil {
				return err
			}
			key := a.Kind + " " + a.Reference
			if known[key] == nil {
				known[key] = &asked{Kind: a.Kind, Reference: a.Reference}
				list = append(list, known[key])
			}
			known[key].join(a)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (a *asked) join(more asked) {
	if len(more.Body) > 0 {
		a.Body = more.Body
	}
	if len(more.Acked) > 0 && len(a.Acked) == 0 {
		a.Acked = more.Acked
	}
	if more.Refused != "" {
		a.Refused = more.Refused
	}
	a.Canceled = a.Canceled || more.Canceled
}

// readDeliveries reads receivers' journals. Lines that a kill cut off were
// never answered, and are no deliveries.
func readDeliveries(paths []string) (list []delivery, err error) {
	for _, path := range paths {
		err := eachLine(path, func(line []byte) error {
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

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
