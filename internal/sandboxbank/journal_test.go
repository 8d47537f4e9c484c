package sandboxbank

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// dump is all of a ledger, in one order.
func dump(l *ledger) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("offset %s", l.offset)
	for _, id := range sortedKeys(l.charges, strings.Compare) {
		c := l.charges[id]
		line("charge %s %+v %s %s %s %t", id, c.terms, c.state, c.failure, c.notifyFault, c.reordered)
		for _, p := range c.payments {
			line("  payment %+v at %s", p.paymentReceived, p.paidAt)
			for _, d := range p.disputes {
				line("    dispute %+v", *d)
			}
			for _, o := range p.refunds {
				line("    refund %s", o.ExternalID)
			}
		}
	}
	for _, key := range sortedKeys(l.orders, orderKey.compare) {
		o := l.orders[key]
		line("order %+v %s %d %s %s %s %s %t", o.orderCreated, o.state, o.returned, o.failure, o.createdAt, o.changedAt, o.approvedAt, o.reordered)
	}
	for _, o := range l.transfers {
		line("transfer %s", o.ExternalID)
	}
	for _, p := range l.payments {
		line("payment %s", p.ID)
	}
	for _, key := range sortedKeys(l.delayed, orderKey.compare) {
		line("delayed %+v", *l.delayed[key])
	}
	for _, id := range sortedKeys(l.notices, strings.Compare) {
		n := l.notices[id]
		line("notice %s %s %s %t %s %s", n.id, n.subject, n.externalID, n.payment != nil, n.createdAt, n.fault)
	}
	line("listeners %+v", l.listeners)
	return out.String()
}

// readLedger makes a ledger from journal bytes, as opening the file would.
func readLedger(journal []byte) (string, error) {
	l, _, err := replayed(journal)
	return dump(l), err
}

// mark is the state after the bank acknowledged an event.
type mark struct {
	size   int64 // of the journal
	ledger string
}

// history plays some events, and marks each.
func history(h *harness, events []int) []mark {
	var marks []mark
	var charges []processor.ChargeRequest
	var transfers []string
	for i, event := range events {
		switch event % 10 {
		case 0, 1:
			request := h.transferRequest()
			transfers = append(transfers, request.ExternalID)
			h.transfer(request)
		case 2:
			request := h.chargeRequest(payment.PIX)
			charges = append(charges, request)
			h.pay(request, bankapi.ForceCharge{})
		case 3:
			h.arm(bankapi.OpTransfer, bankapi.FaultKinds[i%len(bankapi.FaultKinds)])
			h.transfer(h.transferRequest())
		case 4:
			h.clock.Advance(time.Second)
			h.step()
		case 5:
			if len(transfers) > 0 {
				_ = h.control.Transfer(h.t.Context(), transfers[i%len(transfers)], []string{"complete", "fail", "return"}[i%3], 0)
			}
		case 6:
			if len(charges) > 0 {
				_ = h.control.Charge(h.t.Context(), charges[i%len(charges)], []string{"dispute", "win", "lose"}[i%3], bankapi.ForceCharge{})
			}
		case 7:
			if len(charges) > 0 {
				paid := h.driver.QueryCharge(h.t.Context(), charges[i%len(charges)].ExternalID).Payments[0]
				refund := processor.RefundRequest{ExternalID: h.newID(), PaymentID: paid.ID, Amount: 4_000}
				h.driver.Refund(h.t.Context(), refund, willing)
			}
		case 8:
			_ = h.control.Listen(h.t.Context(), fmt.Sprintf("http://gateway-%d.invalid/", i%3), time.Hour)
			_ = h.control.SetOffset(h.t.Context(), time.Duration(i)*time.Minute)
		case 9:
			created, _ := transferOrder(&bankapi.TransferRequest{ExternalID: h.newID(), Amount: 100, KeyType: "EVP", Key: "key", Name: "n", Document: "d"})
			_ = h.bank.delay(created, time.Minute)
		}
		// Lines that nobody waits for, such as delivered notices, are pending.
		if err := h.bank.journal.wait(h.bank.journal.latest()); err != nil {
			h.t.Fatal(err)
		}
		info, err := os.Stat(h.opts.Path)
		if err != nil {
			h.t.Fatal(err)
		}
		h.bank.mu.Lock()
		marks = append(marks, mark{info.Size(), dump(h.bank.ledger)})
		h.bank.mu.Unlock()
	}
	return marks
}

// completeLines is the end of the last complete line before cut.
func completeLines(journal []byte, cut int) int {
	return bytes.LastIndexByte(journal[:cut], '\n') + 1
}

// checkPrefix cuts the journal as a kill in the middle of a write would: all
// acknowledged lines are there, and only complete ones of the others.
func checkPrefix(t interface {
	Helper()
	Fatalf(string, ...any)
}, journal []byte, marks []mark, cut int) {
	t.Helper()
	got, err := readLedger(journal[:cut])
	if err != nil {
		t.Fatalf("cut at %d: %v", cut, err)
	}
	end := completeLines(journal, cut)
	want, err := readLedger(journal[:end])
	if err != nil || got != want {
		t.Fatalf("cut at %d: the ledger is not that of the complete lines (%v):\n%s\nwant\n%s", cut, err, got, want)
	}
	for _, m := range marks {
		if m.size == int64(end) && got != m.ledger {
			t.Fatalf("cut at %d: the ledger is not the acknowledged one:\n%s\nwant\n%s", cut, got, m.ledger)
		}
	}
}

func TestJournalCutAtEveryByte(t *testing.T) {
	h := newHarness(t, onDisk(t))
	marks := history(h, []int{0, 2, 3, 4, 5, 6, 7, 8, 9, 4})
	journal, err := os.ReadFile(h.opts.Path)
	if err != nil {
		t.Fatal(err)
	}
	complete := make(map[int]string)
	for cut := range len(journal) + 1 {
		end := completeLines(journal, cut)
		if _, known := complete[end]; !known {
			checkPrefix(t, journal, marks, end)
			complete[end], _ = readLedger(journal[:end])
		}
		if got, err := readLedger(journal[:cut]); err != nil || got != complete[end] {
			t.Fatalf("cut at %d (%v):\n%s\nwant\n%s", cut, err, got, complete[end])
		}
	}
}

func TestJournalLeavesForeignFilesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	const content = "not a journal\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, nil)
	h.opts.Path = path
	if _, err := Open(h.opts); !errors.Is(err, ErrJournalForeign) {
		t.Errorf("open: %v, want ErrJournalForeign", err)
	}
	if got, _ := os.ReadFile(path); string(got) != content {
		t.Errorf("the file was changed to %q", got)
	}
}

func TestJournalIsLocked(t *testing.T) {
	h := newHarness(t, onDisk(t))
	if _, err := Open(h.opts); !errors.Is(err, ErrJournalLocked) {
		t.Fatalf("second bank: %v, want ErrJournalLocked", err)
	}
	if err := h.bank.Close(); err != nil {
		t.Fatal(err)
	}
	h.open()
	if info, err := os.Stat(h.opts.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("journal: %v, %v; want a file for its owner only", info.Mode(), err)
	}
}

// replayed is the ledger of a journal.
func replayed(journal []byte) (*ledger, int64, error) {
	l := newLedger()
	read, err := readJournal(bytes.NewReader(journal), func(body []byte) error {
		var r record
		if err := json.Unmarshal(body, &r, json.RejectUnknownMembers(true)); err != nil {
			return err
		}
		return l.apply(&r)
	})
	return l, read.end, err
}
