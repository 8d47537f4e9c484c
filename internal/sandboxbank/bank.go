package sandboxbank

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Options make a bank. Secret, Clock and IDs are needed.
type Options struct {
	// Path is the journal's file; "" keeps the ledger in memory only.
	Path string
	// Secret authenticates callers and signs notices.
	Secret string
	Clock  env.Clock
	IDs    *env.IDs
	// Notify carries notices to the gateways; without it none is sent.
	Notify http.RoundTripper
	// NotifyURL is a gateway's address that needs no registration: that of the
	// gateway whose process runs the bank.
	NotifyURL string
	// Repeat is what a repeated transfer or refund does; "" is RepeatReturnsFirst, and the bank can
	// have further contracts.
	Repeat bankapi.Repeat
	// NoticeWorkers is how many notices are sent at once; the default of 1 sends them
	// in the goroutine that calls Step.
	NoticeWorkers int
	// Faults makes calls misbehave at random, by seed.
	Faults FaultProfile
	// Pause waits d before a late answer is sent or, if d is negative, until ctx
	// ends. nil waits by Clock. A simulation in one goroutine advances its own time
	// here.
	Pause func(ctx context.Context, d time.Duration)
	// Log receives a line when the journal cannot be written. May be nil.
	Log *slog.Logger
}

// Bank is a synthetic bank. All methods are safe for concurrent use.
type Bank struct {
	opts    Options
	journal *journal
	faults  *faults
	handler http.Handler
	// contracts are nil if this is one of them.
	contracts *contracts
	wake      chan struct{} // capacity 1: wakes coalesce
	closing   chan struct{}
	once      sync.Once

	mu           sync.Mutex // guards what follows; lines are appended in the order of changes
	ledger       *ledger
	timers       timerHeap // orders that complete or arrive, cards in analysis
	noticeTimers timerHeap
	questions    timerHeap // transfers that wait for consent
	notifier     notifier
	serial       uint64 // of the last timer
}

// errOptions means that a required option is missing.
var errOptions = errors.New("sandboxbank: a bank needs a secret, a clock and ids")

// errURL means that notices cannot be sent to an address.
var errURL = errors.New("sandboxbank: not an absolute HTTP address")

// Open opens a bank on its journal and rebuilds its ledger; see
// [ErrJournalForeign], [ErrJournalDamaged] and [ErrJournalLocked].
func Open(opts Options) (*Bank, error) {
	if opts.Secret == "" || opts.Clock == nil || opts.IDs == nil {
		return nil, errOptions
	}
	if opts.NotifyURL != "" && !bankapi.IsURL(opts.NotifyURL) {
		return nil, errURL
	}
	b := &Bank{
		opts: opts, ledger: newLedger(), faults: newFaults(opts.Faults),
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
	if opts.Repeat == "" {
		b.contracts = &contracts{main: b, byName: map[string]*Bank{}}
	}
	b.handler = b.routes()
	b.startTimers()
	if b.contracts != nil {
		if err := b.contracts.openAll(); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
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
		return b.ledger.apply(&r)
	})
	return err
}

// SetNotifyURL replaces the address that needs no registration, as after its token was
// rotated.
func (b *Bank) SetNotifyURL(url string) {
	b.mu.Lock()
	b.opts.NotifyURL = url
	b.mu.Unlock()
	b.runAgain()
}

// Close writes pending lines, releases the journal and ends waiting calls. The
// bank cannot be used any more.
func (b *Bank) Close() error {
	b.once.Do(func() { close(b.closing) })
	var err error
	if b.contracts != nil {
		err = b.contracts.each((*Bank).Close)
	}
	return errors.Join(err, b.journal.close())
}

// Now is the bank's time: its clock's, plus the bank's own offset.
func (b *Bank) Now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now()
}

func (b *Bank) now() time.Time { return b.opts.Clock.Now().Add(b.ledger.offset) }

// do runs f, which reads or changes the ledger, and returns once everything that
// f read is on disk: the bank's answers must remain true after a crash.
func (b *Bank) do(f func(now time.Time) error) error {
	if err := b.journal.retry(); err != nil {
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

// commit makes one change of the ledger and appends it to the journal; the lock
// is held. The caller waits for the disk.
func (b *Bank) commit(now time.Time, r *record) error {
	r.At = now
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("sandboxbank: write record: %w", err)
	}
	if err := b.ledger.apply(r); err != nil {
		return fmt.Errorf("sandboxbank: %w", err)
	}
	b.journal.append(body)
	b.startTimer(r)
	return nil
}

// Wake makes Run check its timers again: after a change, or after the clock was
// moved.
func (b *Bank) Wake() {
	b.runAgain()
	if b.contracts != nil {
		_ = b.contracts.each(func(contract *Bank) error { // which cannot fail
			contract.runAgain()
			return nil
		})
	}
}

func (b *Bank) runAgain() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// pause is the default Pause.
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

// SetOffset makes the bank's clock run ahead of the clock in its options. Time
// only goes forward: an offset smaller than the present one changes nothing. It
// returns the offset in force, which the journal keeps.
func (b *Bank) SetOffset(d time.Duration) (inForce time.Duration, err error) {
	err = b.do(func(now time.Time) error {
		if d = d.Truncate(time.Microsecond); d > b.ledger.offset {
			if err := b.commit(now, &record{Offset: d.Microseconds()}); err != nil {
				return err
			}
		}
		inForce = b.ledger.offset
		return nil
	})
	b.Wake()
	return inForce, err
}

// newID makes an id of the bank's own: a UUID.
func (b *Bank) newID(now time.Time) string {
	id := b.opts.IDs.NewID(now)
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
}
