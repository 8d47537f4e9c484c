package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/processor"
)

const (
	// noticeTimeout bounds one delivery.
	noticeTimeout = 5 * time.Second
	// reorderBy is how long a notice is held back that others are to overtake.
	reorderBy = 3 * time.Second
	// noticeLife is how long a notice is repeated; then the gateway has to ask.
	noticeLife = 72 * time.Hour
	// A notice that was refused is repeated after 1 s, 2 s, 4 s ... 5 min.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// While no gateway can be reached at all, one notice tries every 1 s, 2 s,
	// 4 s, 5 s, and the others wait for it.
	longestPause = 5 * time.Second
	// answerRead is how much of a gateway's answer is read.
	answerRead = 4 << 10
)

// postOffice is what the bank knows about reaching gateways; it is forgotten
// with the process.
type postOffice struct {
	pausedUntil time.Time // by the bank's clock
	failures    int       // rounds in a row in which nobody was reached
	preferred   string    // who accepted the last notice
	lastFailure string
}

func (p *postOffice) resume() { p.pausedUntil, p.failures = time.Time{}, 0 }

func (p *postOffice) pause(now time.Time) {
	p.pausedUntil = now.Add(min(firstRetry<<min(p.failures, 10), longestPause))
	p.failures++
}

// letter is a notice on its way.
type letter struct {
	duty   duty
	notice *notice
	fate   fate
	reason string
}

// fate is what became of a letter.
type fate int

const (
	undelivered fate = iota // nobody was reached, or it was not tried
	refusedByAll
	accepted
)

// firstDue is when a notice goes out.
func (n *notice) firstDue() time.Time {
	if n.fault == NotifyReordered {
		return n.createdAt.Add(reorderBy)
	}
	return n.createdAt
}

// noticeBody is a notice as the gateway reads it. Its bytes are the same at
// each attempt.
type noticeBody struct {
	ID         string            `json:"id"`
	Subject    processor.Subject `json:"subject"`
	ExternalID string            `json:"externalId"`
	CreatedAt  time.Time         `json:"createdAt"`
	Payment    *paymentBody      `json:"payment,omitempty"`
}

func (n *notice) body() ([]byte, error) {
	body := noticeBody{ID: n.id, Subject: n.subject, ExternalID: n.externalID, CreatedAt: n.createdAt}
	if n.payment != nil {
		p := n.payment.body()
		body.Payment = &p
	}
	return json.Marshal(&body)
}

// addresses lists who is to be notified, whoever accepted the last notice
// first; the lock is held. Registrations run out by the clock that the bank
// was given: that the bank's own is moved a month ahead does not end them.
func (b *Bank) addresses() []string {
	if b.opts.Notify == nil {
		return nil
	}
	now := b.opts.Clock.Now()
	var list []string
	add := func(url string) {
		if url == b.post.preferred {
			list = append([]string{url}, list...)
		} else {
			list = append(list, url)
		}
	}
	if b.opts.NotifyURL != "" {
		add(b.opts.NotifyURL)
	}
	for _, l := range b.books.listeners {
		if l.Expires.After(now) && l.URL != b.opts.NotifyURL {
			add(l.URL)
		}
	}
	return list
}

// collectMail takes notices that are due; the lock is held.
func (b *Bank) collectMail(now time.Time) []letter {
	if now.Before(b.post.pausedUntil) || len(b.addresses()) == 0 {
		return nil
	}
	var letters []letter
	for len(letters) < stepLimit {
		d, ok := popDue(&b.mail, now)
		if !ok {
			break
		}
		if n := b.books.notices[d.notice]; n != nil {
			letters = append(letters, letter{duty: d, notice: n})
		}
	}
	return letters
}

// deliver tries each letter once. After one for which nobody was reached the
// others are not tried: they would wait as long, one after the other.
func (b *Bank) deliver(ctx context.Context, letters []letter) {
	b.mu.Lock()
	urls := b.addresses()
	b.mu.Unlock()
	workers := min(max(b.opts.NoticeWorkers, 1), len(letters))
	if workers == 1 {
		b.carry(ctx, urls, letters, 0, 1)
		return
	}
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() { b.carry(ctx, urls, letters, worker, workers) })
	}
	group.Wait()
}

// carry tries every step-th letter from first on.
func (b *Bank) carry(ctx context.Context, urls []string, letters []letter, first, step int) {
	for i := first; i < len(letters); i += step {
		l := &letters[i]
		b.tryAll(ctx, urls, l)
		if l.fate == accepted && l.notice.fault == NotifyTwice {
			b.tryAll(ctx, urls, l)
			l.fate = accepted
		}
		if l.fate == undelivered {
			return
		}
	}
}

// tryAll tries one address after the other until one accepts.
func (b *Bank) tryAll(ctx context.Context, urls []string, l *letter) {
	for _, url := range urls {
		status, err := b.send(ctx, url, l.notice)
		switch {
		case err != nil:
			l.reason = err.Error()
		case status >= 200 && status <= 299:
			l.fate = accepted
			b.mu.Lock()
			b.post.preferred = url
			b.mu.Unlock()
			return
		default:
			l.fate, l.reason = refusedByAll, fmt.Sprintf("answered %d", status)
		}
	}
}

// send posts a notice to one address.
func (b *Bank) send(ctx context.Context, url string, n *notice) (status int, err error) {
	ctx, cancel := b.opts.Clock.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	body, err := n.body()
	if err != nil {
		return 0, fmt.Errorf("write notice: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("send notice: %w", err)
	}
	request.Header.Set("Content-Type", jsonType)
	signNotice(request.Header, b.opts.Secret, b.Now(), body)
	response, err := b.opts.Notify.RoundTrip(request)
	if err != nil {
		return 0, fmt.Errorf("send notice: %w", err)
	}
	// Reading lets the connection be used again; what it says does not matter.
	_, _ = io.CopyN(io.Discard, response.Body, answerRead)
	_ = response.Body.Close()
	return response.StatusCode, nil
}

// settleMail notes which notices arrived, and files the others again.
func (b *Bank) settleMail(now time.Time, letters []letter) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var settled []string
	reached, missed := false, false
	for i := range letters {
		l := &letters[i]
		if l.reason != "" {
			b.post.lastFailure = l.reason
		}
		again := l.duty
		switch {
		case l.fate == accepted:
			reached = true
			settled = append(settled, l.notice.id)
			continue
		case now.Sub(l.notice.createdAt) > noticeLife:
			settled = append(settled, l.notice.id)
			continue
		case l.fate == refusedByAll:
			reached = true
			again.due = now.Add(min(firstRetry<<min(again.tries, 20), lastRetry))
			again.tries++
		default:
			missed = true
		}
		b.push(&b.mail, again)
	}
	if missed && !reached {
		b.post.pause(now)
	} else if reached {
		b.post.resume()
	}
	if len(settled) == 0 {
		return nil
	}
	// Nobody waits for the disk here: what is lost is sent again, under its id.
	return b.commit(now, &record{Settled: settled})
}

// Listen registers a gateway's address for notices, for ttl from now. Again,
// it prolongs. Addresses are tried in the order of their first registration,
// whoever accepted last first, until one accepts.
func (b *Bank) Listen(url string, ttl time.Duration) error {
	if err := checkURL(url); err != nil {
		return err
	}
	return b.do(func(now time.Time) error {
		expires := b.opts.Clock.Now().Add(ttl)
		return b.commit(now, &record{Listener: &listenerMoved{URL: url, Expires: expires}})
	})
}

// PostStats is how the delivery of notices stands.
type PostStats struct {
	// Waiting is how many notices are still to be accepted.
	Waiting int
	// LastFailure is why the latest attempt failed that did, "" if none has.
	LastFailure string
}

// Post tells how the delivery of notices stands.
func (b *Bank) Post() PostStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return PostStats{Waiting: len(b.books.notices), LastFailure: b.post.lastFailure}
}
