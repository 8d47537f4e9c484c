package sandbox

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
)

// memoryFile is a file whose syncs a test decides about. As on Linux, a sync
// that fails drops what was to be written, and the next one succeeds without it.
type memoryFile struct {
	mu    sync.Mutex
	cache []byte   // what a reader sees
	disk  []byte   // what a power cut leaves
	dirty [][2]int // parts of cache that are not on disk
	syncs int
	sync  func(n int) error
	room  int // a full disk holds this many bytes; 0 has no end
}

func (f *memoryFile) WriteAt(p []byte, offset int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	begin, end := int(offset), int(offset)+len(p)
	if f.room > 0 && end > f.room {
		end = max(begin, f.room)
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

// limit fills the disk, or gives it room again.
func (f *memoryFile) limit(room int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room = room
}

// onFile gives a rig's bank a journal in memory, which begins with its header.
func (r *rig) onFile(file *memoryFile) {
	r.t.Helper()
	if _, err := file.WriteAt([]byte(journalHeader), 0); err != nil {
		r.t.Fatal(err)
	}
	r.bank.journal = newJournal(file, int64(len(journalHeader)), 0)
}

// wantOnDisk compares the books with those that a power cut would leave.
func (r *rig) wantOnDisk(file *memoryFile) {
	r.t.Helper()
	got, err := readBooks(file.disk)
	if want := dump(r.bank.books); err != nil || got != want {
		r.t.Errorf("on disk (%v):\n%s\nwant\n%s", err, got, want)
	}
}

// TestFailedSyncIsNotBelieved: what was to be synced when a sync failed is
// acknowledged only after it was written again, as the next sync would succeed
// without it.
func TestFailedSyncIsNotBelieved(t *testing.T) {
	r := newRig(t, nil)
	file := &memoryFile{sync: func(n int) error {
		if n == 2 {
			return syscall.EIO
		}
		return nil
	}}
	r.onFile(file)
	if answer := r.transfer(r.transferRequest()); answer.Outcome != processor.Done {
		t.Fatalf("first: %+v", answer)
	}
	lost := r.transferRequest()
	if answer := r.transfer(lost); answer.Outcome != processor.Unknown {
		t.Errorf("a transfer that is not on disk is %v", answer.Outcome)
	}
	if report := r.adapter.QueryTransfer(t.Context(), lost.ExternalID); report.Lookup != processor.Found {
		t.Errorf("asked again: %v", report.Lookup)
	}
	r.wantOnDisk(file)
}

// TestFullDiskPasses: while the disk is full the bank knows nothing for sure
// and takes nothing on; when there is room it goes on where it stood.
func TestFullDiskPasses(t *testing.T) {
	r := newRig(t, nil)
	file := &memoryFile{}
	r.onFile(file)
	charge := r.chargeRequest(payment.PIX)
	r.pay(charge, Payment{})
	file.limit(len(file.disk) + 10) // a part of the next line fits
	first := r.transferRequest()
	for range 3 {
		if answer := r.transfer(first); answer.Outcome != processor.Unknown {
			t.Errorf("a transfer on a full disk is %v", answer.Outcome)
		}
		if answer := r.transfer(r.transferRequest()); answer.Outcome != processor.Unknown {
			t.Errorf("another is %v", answer.Outcome)
		}
		r.clock.Advance(time.Minute)
		if _, err := r.bank.Step(t.Context(), r.clock.Now()); !errors.Is(err, errDisk) {
			t.Errorf("a step: %v", err)
		}
	}
	if got := r.gateway.received(); len(got) != 0 {
		t.Errorf("%d notices of what may be lost", len(got))
	}
	if kept := len(r.bank.books.transfers); kept != 1 {
		t.Errorf("%d transfers are taken on by a bank that can write none, want the first", kept)
	}
	if whole, err := readBooks(file.cache); err != nil {
		t.Errorf("killed now, the journal cannot be read: %v\n%s", err, whole)
	}
	file.limit(0)
	if answer := r.transfer(first); answer.Outcome != processor.Done {
		t.Errorf("with room again: %+v", answer)
	}
	r.clock.Advance(time.Minute)
	r.step()
	if got := r.gateway.received(); len(got) != 2 { // a payment came, a transfer is paid
		t.Errorf("%d notices afterwards, want 2", len(got))
	}
	r.wantOnDisk(file)
}

// TestRunOutlivesAFullDisk: the bank that works by itself goes on working.
func TestRunOutlivesAFullDisk(t *testing.T) {
	r := newRig(t, nil)
	file := &memoryFile{}
	r.onFile(file)
	if answer := r.transfer(r.transferRequest()); answer.Outcome != processor.Done {
		t.Fatal(answer)
	}
	file.limit(len(file.disk))
	var waited atomic.Bool
	r.bank.opts.Log = slog.New(slog.NewTextHandler(writerFunc(func() {
		waited.Store(true)
		file.limit(0)
	}), nil))
	r.bank.opts.Pause = r.bank.pause
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.bank.Run(ctx) }()
	for len(r.gateway.received()) == 0 && len(done) == 0 {
		r.clock.Advance(diskPause) // the transfer falls due, fails, and is tried again
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

// TestJournalKnowsWhatIsSure: lines are on disk for sure once a later one says
// so; the others are written again when the journal is opened.
func TestJournalKnowsWhatIsSure(t *testing.T) {
	journal := []byte(journalHeader)
	ends := []int64{int64(len(journal))}
	for number, durable := range []uint64{0, 0, 2, 2, 2, 4} { // the file's lines 1 to 6
		journal = appendLine(journal, uint64(number)+1, durable, []byte("{}"))
		ends = append(ends, int64(len(journal)))
	}
	for last, sure := range []int64{0, 0, 0, 2, 2, 2, 4} {
		read, err := readJournal(bytes.NewReader(journal[:ends[last]]), func([]byte) error { return nil })
		if err != nil || read.sure != ends[sure] || read.end != ends[last] {
			t.Errorf("of %d lines %+v, %v; want those up to %d to be sure", last, read, err, sure)
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
		t.Errorf("goes on as\n%s\nwant\n%s", got, want)
	}
}
