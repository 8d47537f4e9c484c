package sandboxbank

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

const (
	// noticeTimeout bounds one attempt.
	noticeTimeout = 5 * time.Second
	// reorderBy is the delay of a notice that later ones are to overtake.
	reorderBy = 3 * time.Second
	// noticeLife is how long a notice is repeated; after that the gateway has to
	// query.
	noticeLife = 72 * time.Hour
	// A notice that was refused is repeated after 1 s, 2 s, 4 s ... 5 min.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// While no gateway can be reached, one notice is tried every 1 s, 2 s, 4 s,
	// 5 s, and the others wait for it.
	longestPause = 5 * time.Second
	// answerRead is how much of a gateway's answer is read, in bytes.
	answerRead = 4 << 10
)

// notifier is the state of delivery, in memory only.
type notifier struct {
	pausedUntil time.Time // by the bank's clock
	failures    int       // rounds in a row in which no gateway was reached
	preferred   string    // the address that accepted the last notice
	lastFailure string
}

func (n *notifier) resume() { n.pausedUntil, n.failures = time.Time{}, 0 }

func (n *notifier) pause(now time.Time) {
	n.pausedUntil = now.Add(min(firstRetry<<min(n.failures, 10), longestPause))
	n.failures++
}

// delivery is one round of attempts to deliver a notice.
type delivery struct {
	timer   timer
	notice  *notice
	outcome outcome
	reason  string // of the last failure
}

// outcome is the result of a delivery.
type outcome int

const (
	unreached outcome = iota // no gateway was reached, or none was tried
	refused                  // by every gateway that was reached
	accepted
)

// firstDue is when the first attempt of a notice is due.
func (n *notice) firstDue() time.Time {
	if n.fault == bankapi.NotifyReordered {
		return n.createdAt.Add(reorderBy)
	}
	return n.createdAt
}

func (n *notice) body() ([]byte, error) {
	body := bankapi.Notice{ID: n.id, Subject: n.subject, ExternalID: n.externalID, CreatedAt: n.createdAt}
	if n.payment != nil {
		p := n.payment.shown()
		body.Payment = &p
	}
	return json.Marshal(&body)
}

// addresses lists the gateways to notify, the one that accepted the last notice
// first; the lock is held. Registrations expire by the clock in the options: they
// survive a jump of the bank's own clock by a month.
func (b *Bank) addresses() []string {
	if b.opts.Notify == nil {
		return nil
	}
	now := b.opts.Clock.Now()
	var list []string
	add := func(url string) {
		if url == b.notifier.preferred {
			list = append([]string{url}, list...)
		} else {
			list = append(list, url)
		}
	}
	if b.opts.NotifyURL != "" {
		add(b.opts.NotifyURL)
	}
	for _, l := range b.ledger.listeners {
		if l.Expires.After(now) && l.URL != b.opts.NotifyURL {
			add(l.URL)
		}
	}
	return list
}

// dueNotices takes the notices whose timers are due; the lock is held.
func (b *Bank) dueNotices(now time.Time) []delivery {
	if now.Before(b.notifier.pausedUntil) || len(b.addresses()) == 0 {
		return nil
	}
	var due []delivery
	for len(due) < stepLimit {
		t, ok := popDue(&b.noticeTimers, now)
		if !ok {
			break
		}
		if n := b.ledger.notices[t.notice]; n != nil {
			due = append(due, delivery{timer: t, notice: n})
		}
	}
	return due
}

// requeue restarts the timers of notices that could not be sent yet, and of questions.
func (b *Bank) requeue(due []delivery, asked []question) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range due {
		b.push(&b.noticeTimers, due[i].timer)
	}
	for i := range asked {
		b.push(&b.questions, asked[i].timer)
	}
}

// deliver tries each notice once. If one reaches no gateway the others are not
// tried: each would take as long to fail.
func (b *Bank) deliver(ctx context.Context, due []delivery) {
	b.mu.Lock()
	urls := b.addresses()
	b.mu.Unlock()
	workers := min(max(b.opts.NoticeWorkers, 1), len(due))
	if workers == 1 {
		b.deliverEach(ctx, urls, due, 0, 1)
		return
	}
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() { b.deliverEach(ctx, urls, due, worker, workers) })
	}
	group.Wait()
}

// deliverEach tries every step-th notice from first on.
func (b *Bank) deliverEach(ctx context.Context, urls []string, due []delivery, first, step int) {
	for i := first; i < len(due); i += step {
		d := &due[i]
		b.tryAll(ctx, urls, d)
		if d.outcome == accepted && d.notice.fault == bankapi.NotifyTwice {
			b.tryAll(ctx, urls, d)
			d.outcome = accepted
		}
		if d.outcome == unreached {
			return
		}
	}
}

// tryAll tries one address after the other until one accepts.
func (b *Bank) tryAll(ctx context.Context, urls []string, d *delivery) {
	for _, url := range urls {
		status, err := b.send(ctx, url, d.notice)
		switch {
		case err != nil:
			d.reason = err.Error()
		case status >= 200 && status <= 299:
			d.outcome = accepted
			b.mu.Lock()
			b.notifier.preferred = url
			b.mu.Unlock()
			return
		default:
			d.outcome, d.reason = refused, fmt.Sprintf("answered %d", status)
		}
	}
}

// send posts a notice to one address.
func (b *Bank) send(ctx context.Context, url string, n *notice) (status int, err error) {
	body, err := n.body()
	if err != nil {
		return 0, fmt.Errorf("write notice: %w", err)
	}
	status, _, err = b.post(ctx, url, body)
	if err != nil {
		return 0, fmt.Errorf("send notice: %w", err)
	}
	return status, nil
}

// post posts a signed body to one address, and reads the answer up to answerRead.
func (b *Bank) post(ctx context.Context, url string, body []byte) (status int, answer []byte, err error) {
	ctx, cancel := b.opts.Clock.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", bankapi.JSONType)
	bankapi.SignNotice(request.Header, b.opts.Secret, b.Now(), body)
	response, err := b.opts.Notify.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	// A body that was read lets the connection be used again. A broken one is no answer.
	answer, _ = io.ReadAll(io.LimitReader(response.Body, answerRead))
	_ = response.Body.Close()
	return response.StatusCode, answer, nil
}

// recordDeliveries closes notices that were accepted or are too old, and
// restarts the timers of the others.
func (b *Bank) recordDeliveries(now time.Time, due []delivery) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var closed []string
	reached, missed := false, false
	for i := range due {
		d := &due[i]
		if d.reason != "" {
			b.notifier.lastFailure = d.reason
		}
		again := d.timer
		switch {
		case d.outcome == accepted:
			reached = true
			closed = append(closed, d.notice.id)
			continue
		case now.Sub(d.notice.createdAt) > noticeLife:
			closed = append(closed, d.notice.id)
			continue
		case d.outcome == refused:
			reached = true
			again.due = now.Add(min(firstRetry<<min(again.tries, 20), lastRetry))
			again.tries++
		default:
			missed = true
		}
		b.push(&b.noticeTimers, again)
	}
	if missed && !reached {
		b.notifier.pause(now)
	} else if reached {
		b.notifier.resume()
	}
	if len(closed) == 0 {
		return nil
	}
	// Nobody waits for the disk here: a notice whose line is lost is sent again,
	// under its id.
	return b.commit(now, &record{Closed: closed})
}

// Listen registers a gateway's address for notices, for ttl from now; repeated,
// it extends the registration. A notice is tried at one address after the other
// until one accepts: first the one that accepted last, then in the order of their
// first registration.
func (b *Bank) Listen(url string, ttl time.Duration) error {
	if !bankapi.IsURL(url) {
		return errURL
	}
	return b.do(func(now time.Time) error {
		expires := b.opts.Clock.Now().Add(ttl)
		return b.commit(now, &record{Listener: &listenerAdded{URL: url, Expires: expires}})
	})
}

// NoticeStats is the state of the delivery of notices.
type NoticeStats struct {
	// Pending is how many notices no gateway has accepted yet.
	Pending int
	// LastFailure is the reason of the latest failed attempt, "" if there was
	// none.
	LastFailure string
}

// NoticeStats returns the state of the delivery of notices.
func (b *Bank) NoticeStats() NoticeStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return NoticeStats{Pending: len(b.ledger.notices), LastFailure: b.notifier.lastFailure}
}
