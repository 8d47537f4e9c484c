package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// BankOptions make a bank. Secret, Clock and IDs are needed.
type BankOptions struct {
	// Path is the journal's file; "" keeps the books in memory only.
	Path string
	// Secret is what callers show and notices are signed with.
	Secret string
	Clock  env.Clock
	IDs    *env.IDs
	// Notify carries notices to the gateways; without it none is sent.
	Notify http.RoundTripper
	// NotifyURL is a gateway's address that needs no registration: that of the
	// gateway in whose process the bank lives.
	NotifyURL string
	// NoticeWorkers is how many notices are sent at once; 1 unless set, which
	// sends them in the goroutine that calls Step.
	NoticeWorkers int
	// Faults makes calls misbehave at random, by seed.
	Faults FaultProfile
	// Pause lets d pass before a late answer goes out, or, where d is negative,
	// waits until ctx ends, whatever becomes of the caller. nil waits by Clock.
	// A simulation in one goroutine lets its own time pass here.
	Pause func(ctx context.Context, d time.Duration)
	// Log receives a line when the journal cannot be written. May be nil.
	Log *slog.Logger
	// Wake is called when something new falls due; it must not block. May be nil.
	Wake func()
}

// Bank is a bank of its own. All methods are safe for concurrent use.
type Bank struct {
	opts    BankOptions
	journal *journal
	faults  *faults
	handler http.Handler
	wake    chan struct{} // holds one: wakes coalesce
	closing chan struct{}
	once    sync.Once

	mu     sync.Mutex // guards what follows; lines are appended in the order of changes
	books  *books
	work   agenda // orders that complete, delayed orders that arrive
	mail   agenda // notices
	post   postOffice
	serial uint64
}

// errOptions says that the options make no bank.
var errOptions = errors.New("sandbox: a bank needs a secret, a clock and ids")

// OpenBank opens a bank on its journal and rebuilds its books; see
// [ErrJournalForeign], [ErrJournalDamaged] and [ErrJournalLocked].
func OpenBank(opts BankOptions) (*Bank, error) {
	if opts.Secret == "" || opts.Clock == nil || opts.IDs == nil {
		return nil, errOptions
	}
	if opts.NotifyURL != "" {
		if err := checkURL(opts.NotifyURL); err != nil {
			return nil, err
		}
	}
	b := &Bank{
		opts: opts, books: newBooks(), faults: newFaults(opts.Faults),
		wake: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	if b.opts.Log == nil {
		b.opts.Log = slog.New(slog.DiscardHandler)
	}
	if b.opts.Pause == nil {
		b.opts.Pause = b.pause
	}
	if err := b.openJournal(); err != nil {
		return nil, err
	}
	b.handler = b.routes()
	b.schedule()
	return b, nil
}

func (b *Bank) openJournal() (err error) {
	if b.opts.Path == "" {
		b.journal = newJournal(nil, 0, 0)
		return nil
	}
	b.journal, err = openJournal(b.opts.Path, func(body []byte) error {
		var r record
		if err := json.Unmarshal(body, &r, json.RejectUnknownMembers(true)); err != nil {
			return fmt.Errorf("read record: %w", err)
		}
		return b.books.apply(&r)
	})
	return err
}

// Close writes what is left to write, releases the journal and ends calls that
// wait. The bank cannot be used any more.
func (b *Bank) Close() error {
	b.once.Do(func() { close(b.closing) })
	return b.journal.close()
}

// Now is the bank's time: its clock's, and the offset of its own.
func (b *Bank) Now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now()
}

func (b *Bank) now() time.Time { return b.opts.Clock.Now().Add(b.books.offset) }

// do runs f, which reads or changes the books, and returns once all that f saw
// is on disk: what the bank says was so must be so after a crash.
func (b *Bank) do(f func(now time.Time) error) error {
	if err := b.journal.settle(); err != nil {
		return err
	}
	b.mu.Lock()
	err := f(b.now())
	seen := b.journal.latest()
	b.mu.Unlock()
	if lost := b.journal.wait(seen); lost != nil {
		return lost
	}
	return err
}

// commit makes one change of the books and appends it to the journal; the lock
// is held. The caller waits for the disk.
func (b *Bank) commit(now time.Time, r *record) error {
	r.At = now
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("sandbox: write record: %w", err)
	}
	if err := b.books.apply(r); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	b.journal.append(body)
	b.follow(r)
	return nil
}

// follow puts on the agenda what a change makes due.
func (b *Bank) follow(r *record) {
	switch {
	case r.Order != nil && r.Order.Refusal == "":
		b.push(&b.work, duty{due: r.At.Add(settleAfter), order: orderKey{r.Order.Kind, r.Order.ExternalID}})
	case r.Delayed != nil:
		b.push(&b.work, duty{due: r.Delayed.Due, order: orderKey{r.Delayed.Order.Kind, r.Delayed.Order.ExternalID}})
	case r.Analysis != nil:
		b.push(&b.work, duty{due: r.At.Add(analysisAfter), charge: r.Analysis.ExternalID})
	case r.Listener != nil:
		b.post.resume()
	}
	if n := b.books.notices[r.Notice]; n != nil {
		b.push(&b.mail, duty{due: n.firstDue(), notice: n.id})
	}
	b.Nudge()
}

// schedule fills the agenda from the books, after they were read.
func (b *Bank) schedule() {
	for _, key := range sortedKeys(b.books.orders, orderKey.compare) {
		if o := b.books.orders[key]; o.state == processor.TransferProcessing {
			b.push(&b.work, duty{due: o.createdAt.Add(settleAfter), order: key})
		}
	}
	for _, key := range sortedKeys(b.books.delayed, orderKey.compare) {
		b.push(&b.work, duty{due: b.books.delayed[key].Due, order: key})
	}
	for _, id := range sortedKeys(b.books.charges, compareStrings) {
		if c := b.books.charges[id]; c.analysis != nil {
			b.push(&b.work, duty{due: c.analyzedAt.Add(analysisAfter), charge: id})
		}
	}
	for _, id := range sortedKeys(b.books.notices, compareStrings) {
		b.push(&b.mail, duty{due: b.books.notices[id].firstDue(), notice: id})
	}
}

// Nudge tells Run, and whoever gave Wake, to look at what is due again: after
// something new, or after the clock was moved.
func (b *Bank) Nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
	if b.opts.Wake != nil {
		b.opts.Wake()
	}
}

// pause is the Pause of a bank whose clock runs by itself.
func (b *Bank) pause(ctx context.Context, d time.Duration) {
	var fired <-chan time.Time
	if d >= 0 {
		timer := b.opts.Clock.NewTimer(d)
		defer timer.Stop()
		fired = timer.C()
	}
	select {
	case <-fired:
	case <-ctx.Done():
	case <-b.closing:
	}
}

// SetOffset makes the bank's clock run ahead of the clock that it was given.
// Time only goes forward: a smaller offset than the present one changes
// nothing. It returns the offset in force, which the journal keeps.
func (b *Bank) SetOffset(d time.Duration) (inForce time.Duration, err error) {
	err = b.do(func(now time.Time) error {
		if d = d.Truncate(time.Microsecond); d > b.books.offset {
			if err := b.commit(now, &record{Offset: d.Microseconds()}); err != nil {
				return err
			}
		}
		inForce = b.books.offset
		return nil
	})
	return inForce, err
}

// newID makes an id of the bank's own.
func (b *Bank) newID(now time.Time) string { return payment.ID(b.opts.IDs.NewID(now)).String() }

// checkURL accepts an absolute address of HTTP without user info.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("sandbox: not an address that notices can be sent to")
	}
	return nil
}
