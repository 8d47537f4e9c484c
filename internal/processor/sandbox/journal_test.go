package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// dump writes down all that books hold, in one order.
func dump(b *books) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("offset %s", b.offset)
	for _, id := range sortedKeys(b.charges, compareStrings) {
		c := b.charges[id]
		line("charge %s %+v %s %s %s %t", id, c.terms, c.state, c.failure, c.notifyFault, c.reordered)
		for _, p := range c.payments {
			line("  payment %+v at %s", p.paymentMade, p.paidAt)
			for _, d := range p.disputes {
				line("    dispute %+v", *d)
			}
			for _, o := range p.refunds {
				line("    refund %s", o.ExternalID)
			}
		}
	}
	for _, key := range sortedKeys(b.orders, orderKey.compare) {
		o := b.orders[key]
		line("order %+v %s %d %s %s %s %t", o.orderMade, o.state, o.returned, o.failure, o.createdAt, o.changedAt, o.reordered)
	}
	for _, o := range b.transfers {
		line("transfer %s", o.ExternalID)
	}
	for _, p := range b.payments {
		line("payment %s", p.ID)
	}
	for _, key := range sortedKeys(b.delayed, orderKey.compare) {
		line("delayed %+v", *b.delayed[key])
	}
	for _, id := range sortedKeys(b.notices, compareStrings) {
		n := b.notices[id]
		line("notice %s %s %s %t %s %s", n.id, n.subject, n.externalID, n.payment != nil, n.createdAt, n.fault)
	}
	line("listeners %+v", b.listeners)
	return out.String()
}

// readBooks makes books of journal bytes, as opening the file would.
func readBooks(journal []byte) (string, error) {
	b := newBooks()
	_, err := readJournal(bytes.NewReader(journal), func(body []byte) error {
		var r record
		if err := json.Unmarshal(body, &r, json.RejectUnknownMembers(true)); err != nil {
			return err
		}
		return b.apply(&r)
	})
	return dump(b), err
}

// mark is a moment at which the bank acknowledged something.
type mark struct {
	size  int64 // of the journal
	books string
}

// history lets the bank live through some events, and marks each.
func history(r *rig, events []int) []mark {
	var marks []mark
	var charges []processor.ChargeRequest
	var transfers []string
	for i, event := range events {
		switch event % 10 {
		case 0, 1:
			request := r.transferRequest()
			transfers = append(transfers, request.ExternalID)
			r.transfer(request)
		case 2:
			request := r.chargeRequest(payment.PIX)
			charges = append(charges, request)
			r.pay(request, Payment{})
		case 3:
			r.arm(OpTransfer, Kinds[i%len(Kinds)])
			r.transfer(r.transferRequest())
		case 4:
			r.clock.Advance(time.Second)
			r.step()
		case 5:
			if len(transfers) > 0 {
				_ = r.control.Transfer(r.t.Context(), transfers[i%len(transfers)], []string{"complete", "fail", "return"}[i%3], 0)
			}
		case 6:
			if len(charges) > 0 {
				_ = r.control.Charge(r.t.Context(), charges[i%len(charges)], []string{"dispute", "win", "lose"}[i%3], Payment{})
			}
		case 7:
			if len(charges) > 0 {
				paid := r.adapter.QueryCharge(r.t.Context(), charges[i%len(charges)].ExternalID).Payments[0]
				refund := processor.RefundRequest{ExternalID: r.newID(), PaymentID: paid.ID, Amount: 4_000}
				r.adapter.Refund(r.t.Context(), refund, func() error { return nil })
			}
		case 8:
			_ = r.control.Listen(r.t.Context(), fmt.Sprintf("http://gateway-%d.invalid/", i%3), time.Hour)
			_ = r.control.SetOffset(r.t.Context(), time.Duration(i)*time.Minute)
		case 9:
			made, _ := (&transferRequest{r.newID(), 100, "EVP", "key", "n", "d", ""}).order()
			_ = r.bank.delay(made, time.Minute)
		}
		// What is not waited for, such as delivered notices, is on its way too.
		if err := r.bank.journal.wait(r.bank.journal.latest()); err != nil {
			r.t.Fatal(err)
		}
		info, err := os.Stat(r.opts.Path)
		if err != nil {
			r.t.Fatal(err)
		}
		r.bank.mu.Lock()
		marks = append(marks, mark{info.Size(), dump(r.bank.books)})
		r.bank.mu.Unlock()
	}
	return marks
}

func onDisk(t *testing.T) func(*BankOptions) {
	path := filepath.Join(t.TempDir(), "bank.journal")
	return func(o *BankOptions) { o.Path = path }
}

// wholeLines is where the last whole line before cut ends.
func wholeLines(journal []byte, cut int) int {
	return bytes.LastIndexByte(journal[:cut], '\n') + 1
}

// checkPrefix cuts the journal as a kill in the middle of a write would: what
// was acknowledged is there, and of the rest whole lines only.
func checkPrefix(t interface {
	Helper()
	Fatalf(string, ...any)
}, journal []byte, marks []mark, cut int) {
	t.Helper()
	got, err := readBooks(journal[:cut])
	if err != nil {
		t.Fatalf("cut at %d: %v", cut, err)
	}
	end := wholeLines(journal, cut)
	want, err := readBooks(journal[:end])
	if err != nil || got != want {
		t.Fatalf("cut at %d: books are not those of the whole lines (%v):\n%s\nwant\n%s", cut, err, got, want)
	}
	for _, m := range marks {
		if m.size == int64(end) && got != m.books {
			t.Fatalf("cut at %d: books are not those acknowledged:\n%s\nwant\n%s", cut, got, m.books)
		}
	}
}

func TestJournalCutAtEveryByte(t *testing.T) {
	r := newRig(t, onDisk(t))
	marks := history(r, []int{0, 2, 3, 4, 5, 6, 7, 8, 9, 4})
	journal, err := os.ReadFile(r.opts.Path)
	if err != nil {
		t.Fatal(err)
	}
	whole := make(map[int]string)
	for cut := range len(journal) + 1 {
		end := wholeLines(journal, cut)
		if _, known := whole[end]; !known {
			checkPrefix(t, journal, marks, end)
			whole[end], _ = readBooks(journal[:end])
		}
		if got, err := readBooks(journal[:cut]); err != nil || got != whole[end] {
			t.Fatalf("cut at %d (%v):\n%s\nwant\n%s", cut, err, got, whole[end])
		}
	}
}

func TestJournalCutUnderRandomHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, onDisk(t))
		events := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 25).Draw(rt, "events")
		marks := history(r, events)
		journal, err := os.ReadFile(r.opts.Path)
		if err != nil {
			rt.Fatal(err)
		}
		if got, err := readBooks(journal); err != nil || got != marks[len(marks)-1].books {
			rt.Fatalf("whole journal (%v):\n%s\nwant\n%s", err, got, marks[len(marks)-1].books)
		}
		cut := rapid.IntRange(0, len(journal)).Draw(rt, "cut")
		checkPrefix(rt, journal, marks, cut)

		// The bank itself opens on it, and its next lines fit.
		_ = r.bank.Close()
		if err := os.Truncate(r.opts.Path, int64(cut)); err != nil {
			rt.Fatal(err)
		}
		r.open()
		if answer := r.transfer(r.transferRequest()); answer.Outcome != processor.Done {
			rt.Fatalf("transfer after reopening: %+v", answer)
		}
		r.bank.mu.Lock()
		want := dump(r.bank.books)
		r.bank.mu.Unlock()
		_ = r.bank.Close()
		r.open()
		if got := dump(r.bank.books); got != want {
			rt.Fatalf("reopened once more:\n%s\nwant\n%s", got, want)
		}
		_ = r.bank.Close()
	})
}

// TestJournalBitFlip: damage to what was acknowledged is told, not cut away.
// The last line alone cannot be told from one that a crash tore.
func TestJournalBitFlip(t *testing.T) {
	r := newRig(t, onDisk(t))
	history(r, []int{0, 2, 4, 1, 4, 6})
	journal, err := os.ReadFile(r.opts.Path)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := readBooks(journal)
	if err != nil {
		t.Fatal(err)
	}
	lastLine := bytes.LastIndexByte(journal[:len(journal)-1], '\n') + 1
	shorter, err := readBooks(journal[:lastLine])
	if err != nil {
		t.Fatal(err)
	}
	for i := range journal {
		for bit := range 8 {
			if bit != i%8 && journal[i] != '\n' && journal[i] != ' ' {
				continue // one bit of most bytes, all of those that separate
			}
			damaged := bytes.Clone(journal)
			damaged[i] ^= 1 << bit
			got, err := readBooks(damaged)
			if err == nil && got != whole && (i < lastLine || got != shorter) {
				t.Fatalf("bit %d of byte %d of %d: damage went unnoticed", bit, i, len(journal))
			}
			if err != nil && !errors.Is(err, ErrJournalDamaged) && !errors.Is(err, ErrJournalForeign) {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
}

func TestJournalLeavesForeignFilesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	const content = "not a journal\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, nil)
	r.opts.Path = path
	if _, err := OpenBank(r.opts); !errors.Is(err, ErrJournalForeign) {
		t.Errorf("open: %v, want ErrJournalForeign", err)
	}
	if got, _ := os.ReadFile(path); string(got) != content {
		t.Errorf("the file was changed to %q", got)
	}
}

func TestJournalIsLocked(t *testing.T) {
	r := newRig(t, onDisk(t))
	if _, err := OpenBank(r.opts); !errors.Is(err, ErrJournalLocked) {
		t.Fatalf("second bank: %v, want ErrJournalLocked", err)
	}
	if err := r.bank.Close(); err != nil {
		t.Fatal(err)
	}
	r.open()
	if info, err := os.Stat(r.opts.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("journal: %v, %v; want a file for its owner only", info.Mode(), err)
	}
}

// TestJournalSharesSyncs: while one sync is under way all others gather, and
// the next one serves them all.
func TestJournalSharesSyncs(t *testing.T) {
	release := make(chan struct{})
	file := &memoryFile{sync: func(n int) error {
		if n == 1 {
			<-release
		}
		return nil
	}}
	j := newJournal(file, 0, 0)
	const writers = 100
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			if err := j.wait(j.append([]byte("{}"))); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	for j.latest() < writers {
		runtime.Gosched()
	}
	close(release)
	group.Wait()
	if file.syncs > 2 {
		t.Errorf("%d syncs for %d writers, want 2", file.syncs, writers)
	}
	if lines := bytes.Count(file.disk, []byte{'\n'}); lines != writers {
		t.Errorf("%d lines, want %d", lines, writers)
	}
}
