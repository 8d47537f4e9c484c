package sandboxbank

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// memoryFile is a file whose syncs fail as a test sets. As on Linux, a failed
// sync drops its pages, and the next one succeeds without them.
type memoryFile struct {
	mu    sync.Mutex
	cache []byte   // what a reader sees
	disk  []byte   // what a power cut leaves
	dirty [][2]int // parts of cache that are not on disk
	syncs int
	sync  func(n int) error
	limit int // size of the disk, in bytes; 0 has no end
}

func (f *memoryFile) WriteAt(p []byte, offset int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	begin, end := int(offset), int(offset)+len(p)
	if f.limit > 0 && end > f.limit {
		end = max(begin, f.limit)
	}
	if end > len(f.cache) {
		f.cache = append(f.cache, make([]byte, end-len(f.cache))...)
	}
	n := copy(f.cache[begin:end], p)
	f.dirty = append(f.dirty, [2]int{begin, end})
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (f *memoryFile) Sync() error {
	f.mu.Lock()
	f.syncs++
	n := f.syncs
	f.mu.Unlock()
	var err error
	if f.sync != nil {
		err = f.sync(n)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.dirty {
		if err == nil {
			f.disk = append(f.disk, make([]byte, max(0, d[1]-len(f.disk)))...)
			copy(f.disk[d[0]:d[1]], f.cache[d[0]:d[1]])
		}
	}
	f.dirty = nil
	return err
}

func (f *memoryFile) Close() error { return nil }

// setLimit fills the disk, or frees space again.
func (f *memoryFile) setLimit(limit int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limit = limit
}

// onFile gives the bank a journal in memory, which begins with its header.
func (h *harness) onFile(file *memoryFile) {
	h.t.Helper()
	if _, err := file.WriteAt([]byte(journalHeader), 0); err != nil {
		h.t.Fatal(err)
	}
	h.bank.journal = newJournal(file, int64(len(journalHeader)), 0)
}

// wantOnDisk compares the ledger with the one that a power cut would leave.
func (h *harness) wantOnDisk(file *memoryFile) {
	h.t.Helper()
	got, err := readLedger(file.disk)
	if want := dump(h.bank.ledger); err != nil || got != want {
		h.t.Errorf("on disk (%v):\n%s\nwant\n%s", err, got, want)
	}
}

// TestFailedSyncIsWrittenAgain: lines whose sync failed are acknowledged only
// after they were written again, as the next sync would succeed without them.
func TestFailedSyncIsWrittenAgain(t *testing.T) {
	h := newHarness(t, nil)
	file := &memoryFile{sync: func(n int) error {
		if n == 2 {
			return syscall.EIO
		}
		return nil
	}}
	h.onFile(file)
	if answer := h.transfer(h.transferRequest()); answer.Outcome != processor.Done {
		t.Fatalf("first: %+v", answer)
	}
	lost := h.transferRequest()
	if answer := h.transfer(lost); answer.Outcome != processor.Unknown {
		t.Errorf("a transfer that is not on disk is %v", answer.Outcome)
	}
	if report := h.driver.QueryTransfer(t.Context(), lost.ExternalID); report.Lookup != processor.Found {
		t.Errorf("looked up again: %v", report.Lookup)
	}
	h.wantOnDisk(file)
}

// TestFullDisk: while the disk is full the bank acknowledges and accepts
// nothing; once there is space it continues.
func TestFullDisk(t *testing.T) {
	h := newHarness(t, nil)
	file := &memoryFile{}
	h.onFile(file)
	charge := h.chargeRequest(payment.PIX)
	h.pay(charge, bankapi.ForceCharge{})
	file.setLimit(len(file.disk) + 10) // a part of the next line fits
	first := h.transferRequest()
	for range 3 {
		if answer := h.transfer(first); answer.Outcome != processor.Unknown {
			t.Errorf("a transfer on a full disk is %v", answer.Outcome)
		}
		if answer := h.transfer(h.transferRequest()); answer.Outcome != processor.Unknown {
			t.Errorf("another is %v", answer.Outcome)
		}
		h.clock.Advance(time.Minute)
		if _, err := h.bank.Step(t.Context(), h.clock.Now()); !errors.Is(err, errDisk) {
			t.Errorf("a step: %v", err)
		}
	}
	if got := h.gateway.received(); len(got) != 0 {
		t.Errorf("%d notices of changes that may be lost", len(got))
	}
	if kept := len(h.bank.ledger.transfers); kept != 1 {
		t.Errorf("%d transfers are accepted by a bank that can write none, want the first", kept)
	}
	if got, err := readLedger(file.cache); err != nil {
		t.Errorf("killed now, the journal cannot be read: %v\n%s", err, got)
	}
	file.setLimit(0)
	if answer := h.transfer(first); answer.Outcome != processor.Done {
		t.Errorf("with space again: %+v", answer)
	}
	h.clock.Advance(time.Minute)
	h.step()
	if got := h.gateway.received(); len(got) != 2 { // a payment came, a transfer is paid
		t.Errorf("%d notices afterwards, want 2", len(got))
	}
	h.wantOnDisk(file)
}

// TestRunOutlivesAFullDisk: Run continues once the disk has space.
func TestRunOutlivesAFullDisk(t *testing.T) {
	h := newHarness(t, nil)
	file := &memoryFile{}
	h.onFile(file)
	if answer := h.transfer(h.transferRequest()); answer.Outcome != processor.Done {
		t.Fatal(answer)
	}
	file.setLimit(len(file.disk))
	var waited atomic.Bool
	h.bank.opts.Log = slog.New(slog.NewTextHandler(writerFunc(func() {
		waited.Store(true)
		file.setLimit(0)
	}), nil))
	h.bank.opts.Pause = h.bank.pause
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.bank.Run(ctx) }()
	for len(h.gateway.received()) == 0 && len(done) == 0 {
		h.clock.Advance(diskPause) // the transfer falls due, fails, and is tried again
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || !waited.Load() {
		t.Errorf("the bank ended with %v, had to wait: %t", err, waited.Load())
	}
}

// writerFunc is called at each write.
type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) { f(); return len(p), nil }

// TestJournalConfirmsLines: a line is confirmed once a later one names it as
// durable; the others are written again when the journal is opened.
func TestJournalConfirmsLines(t *testing.T) {
	journal := []byte(journalHeader)
	ends := []int64{int64(len(journal))}
	for number, durable := range []uint64{0, 0, 2, 2, 2, 4} { // the file's lines 1 to 6
		journal = appendLine(journal, uint64(number)+1, durable, []byte("{}"))
		ends = append(ends, int64(len(journal)))
	}
	for last, confirmed := range []int64{0, 0, 0, 2, 2, 2, 4} {
		read, err := readJournal(bytes.NewReader(journal[:ends[last]]), func([]byte) error { return nil })
		if err != nil || read.confirmed != ends[confirmed] || read.end != ends[last] {
			t.Errorf("of %d lines %+v, %v; want those up to %d to be confirmed", last, read, err, confirmed)
		}
	}
	path := filepath.Join(t.TempDir(), "bank.journal")
	if err := os.WriteFile(path, append(slices.Clone(journal), "torn"...), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := openJournal(path, func([]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := j.wait(j.append([]byte("{}"))); err != nil {
		t.Error(err)
	}
	if err := j.close(); err != nil {
		t.Error(err)
	}
	want := appendLine(journal, 7, 6, []byte("{}"))
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("continues as\n%s\nwant\n%s", got, want)
	}
}
