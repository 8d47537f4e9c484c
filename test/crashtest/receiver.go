package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// receiverRole is the first argument of a process that is a receiver.
const receiverRole = "receiver"

// delivery is a line of a receiver's journal: a request and its answer. It is on
// disk before the answer is sent.
type delivery struct {
	Path      string `json:"path"`
	EventID   string `json:"eventId"` // of the header
	Digest    string `json:"digest"`  // SHA-256 of the body
	Signed    bool   `json:"signed"`  // the signature is valid and recent
	Status    int    `json:"status"`  // 0: the connection is closed instead
	Reference string `json:"reference"`
	Version   int    `json:"version"`
}

func (d *delivery) arrived() bool { return d.Status >= 200 && d.Status <= 299 }

// receiver is a merchant's program that fails sometimes.
type receiver struct {
	random random

	mu      sync.Mutex
	journal *os.File
}

// receive runs a receiver until it is killed: address, journal, seed.
func receive(ctx context.Context, arguments []string) error {
	if len(arguments) != 3 {
		return fmt.Errorf("%s: arguments %q", receiverRole, arguments)
	}
	seed, err := strconv.ParseUint(arguments[2], 10, 64)
	if err != nil {
		return err
	}
	journal, err := os.OpenFile(arguments[1], os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := endTorn(journal); err != nil {
		return err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", arguments[0])
	if err != nil {
		return err
	}
	r := &receiver{journal: journal, random: newRandom(seed, uint64(os.Getpid()))}
	server := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(listener)
}

// endTorn ends a line that a kill cut off, so that the next line is readable.
func endTorn(journal *os.File) error {
	end, err := journal.Seek(0, io.SeekEnd)
	if err != nil || end == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := journal.ReadAt(last, end-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = journal.WriteString("\n")
	return err
}

// ServeHTTP records a delivery and answers with a status that is drawn.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/ready" {
		return
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // nothing was delivered
	}
	d := delivery{
		Path: request.URL.Path, EventID: request.Header.Get("webhook-id"), Digest: digest(body),
		Signed: signed(request.Header, body, clock.Now()), Status: r.drawStatus(),
	}
	var event struct {
		Version int `json:"version"`
		Data    struct {
			ReferenceID string `json:"referenceId"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &event) == nil {
		d.Reference, d.Version = event.Data.ReferenceID, event.Version
	}
	if r.write(d) != nil {
		d.Status = http.StatusInternalServerError
	}
	r.answer(w, request, d.Status)
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// drawStatus draws the status of the next answer.
func (r *receiver) drawStatus() int {
	switch n := r.random.below(100); {
	case n < 84:
		return http.StatusOK
	case n < 88:
		return http.StatusNoContent
	case n < 91:
		return http.StatusInternalServerError
	case n < 94:
		return http.StatusServiceUnavailable
	case n < 96:
		return http.StatusFound
	case n < 98:
		return http.StatusAccepted // sent late
	default:
		return 0
	}
}

func (r *receiver) write(d delivery) error {
	line, err := json.Marshal(d)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.journal.Write(append(line, '\n')); err != nil {
		return err
	}
	return r.journal.Sync()
}

// lateBy is the longest delay of a late answer.
const lateBy = 3 * time.Second

func (r *receiver) answer(w http.ResponseWriter, request *http.Request, status int) {
	switch status {
	case 0:
		panic(http.ErrAbortHandler) // the delivery is recorded, and the sender gets no answer
	case http.StatusAccepted:
		if !wait(request.Context(), r.random.between(time.Second, lateBy)) {
			return
		}
	case http.StatusFound:
		w.Header().Set("Location", "/followed")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(r.random.below(3)))
	}
	w.WriteHeader(status)
}

// signatureAge is the maximum age of a signature.
const signatureAge = 5 * time.Minute

// signed checks a signature as Standard Webhooks 1.0 describes it.
func signed(h http.Header, body []byte, now time.Time) bool {
	seconds, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)); err != nil || age < -signatureAge || age > signatureAge {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(webhookSecret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%d.%s", h.Get("webhook-id"), seconds, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for given := range strings.FieldsSeq(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(given), []byte(want)) {
			return true
		}
	}
	return false
}
