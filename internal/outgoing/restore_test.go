package outgoing_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// pay makes the bank pay a payout that the database does not show as sent, as after a
// restore.
func pay(g *coretest.Gateway, p payment.Payout, state processor.TransferState) {
	g.Bank.Mu.Lock()
	defer g.Bank.Mu.Unlock()
	g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: p.Amount}, state)
}

// Rule 12: a restored backup is recognised, by the epoch that is kept outside the
// database, and each payout is looked up before it is sent.
func TestRule12RestoreMode(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Unlisted = true // else the list shows the transfer before any look-up
		p := g.Payout("sent in the lost past", 10_00)
		pay(g, p, processor.TransferPaid)
		g.Marker.Epoch += 1000
		g.Must(g.Cluster.Join(t.Context(), g.Marker.Mark, false))
		g.Heartbeat()
		g.ClearAccount()
		g.Send()
		g.WantBank(0, 1)
		g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
		g.LookUp()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	})
}

// The same with our own backup, which only SQLite has.
func TestRule12RestoredBackup(t *testing.T) {
	g := coretest.New(t, "sqlite")
	before := g.Payout("before the backup", 10_00)
	backup := filepath.Join(t.TempDir(), "backup.db")
	g.Must(g.Store.Backup(t.Context(), backup))
	lost := g.Payout("after the backup", 20_00)
	g.Pass(3 * time.Second)
	g.Send()
	g.WantBank(2, 2)

	restored := g.On(backup, g.Marker)
	restored.WantPayout(before, payment.PayoutPending, payment.StepQueued)
	restored.Clear()
	restored.WantCases(store.CasePayoutFound)
	again := restored.Payout("after the backup", 20_00) // the merchant repeats its request
	if again.ExternalID != lost.ExternalID {
		t.Fatal("the same request has another id after the restore")
	}
	fresh := restored.Payout("requested for the first time", 30_00)
	for range 30 {
		restored.Send()
		restored.LookUp()
		restored.Pass(10 * time.Second)
	}
	for _, p := range []payment.Payout{before, again, fresh} {
		restored.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	}
	restored.WantBank(3, 3) // only the fresh one was sent
	restored.WantBalances(coretest.Opening-60_00, 0)
}

// A backup that the store made is recognised at once, before another heartbeat, and if
// no epoch is kept outside the database.
func TestRule12BackupIsMarked(t *testing.T) {
	g := coretest.New(t, "sqlite")
	backup := filepath.Join(t.TempDir(), "backup.db")
	g.Must(g.Store.Backup(t.Context(), backup))
	lost := g.Payout("after the backup", 20_00)
	g.Send()
	g.WantBank(1, 1)
	for _, marker := range []*coretest.Marker{g.Marker, {}} {
		text, err := os.ReadFile(backup)
		g.Must(err)
		database := filepath.Join(t.TempDir(), "restored.db")
		g.Must(os.WriteFile(database, text, 0o600))
		restored := g.On(database, marker)
		restored.Clear()
		again := restored.Payout("after the backup", 20_00)
		restored.Send()
		restored.LookUp()
		restored.WantPayout(again, payment.PayoutCompleted, payment.StepDone)
		if again.ExternalID != lost.ExternalID {
			t.Error("the same request has another id after the restore")
		}
		restored.WantBank(1, 1)
	}
}

// Rule 12, the other half: while the epoch cannot be written outside the database,
// a backup taken now would not be recognised. No payout is sent that the backup
// would lack.
func TestRule12NothingIsSentUnmarked(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Marker.Err = syscall.ENOSPC
		for range 5 {
			g.Clock.Advance(time.Second)
			if _, err := g.Cluster.KeepAlive(t.Context()); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("a heartbeat whose epoch was not kept: %v", err)
			}
		}
		p := g.Payout("r", 10_00)
		g.Send()
		g.WantPayout(p, payment.PayoutPending, payment.StepQueued)
		g.Marker.Err = nil
		g.Heartbeat()
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
	})
}

// A snapshot of the disk, which nothing shows to be one, lacks the send of a paid payout: the payment
// that is found has a send, as each has.
func TestSnapshotLacksASend(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: p.Amount}, processor.TransferPaid)
		g.Notify("n-1", "paid "+p.ExternalID)
		g.Apply()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		if n := g.Count("payout_sends", "outcome = 'paid'"); n != 1 {
			t.Errorf("%d paid sends", n)
		}
		g.WantBank(0, 1)
		g.WantProven()
	})
}

// rewind makes the database an older copy of itself.
const rewind = "UPDATE installation SET epoch = epoch - 3"

// A database may become an older copy of itself under a running gateway: a backup is
// restored, or a replica that lacks the latest commits takes over. Rule 12 applies
// too.
func TestRule12DatabaseRewoundUnderARunningGateway(t *testing.T) {
	for _, tt := range []struct {
		name       string
		statements []string
	}{
		{"by seconds", []string{rewind}},
		{"to before the gateway started", []string{rewind, "DELETE FROM nodes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				other := g.Second()
				g.Pass(5 * time.Second)
				other.Heartbeat()
				p := g.Payout("sent in the lost past", 10_00)
				pay(g, p, processor.TransferPaid)
				reached := g.Marker.Epoch
				g.Execute(tt.statements...)
				g.Heartbeat()
				if g.Marker.Epoch < reached {
					t.Errorf("the epoch outside went from %d to %d", reached, g.Marker.Epoch)
				}
				g.ClearAccount()
				g.Send()
				g.WantBank(0, 1) // looked up, not sent
				g.LookUp()
				g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				other.Heartbeat()
				if other.Node.RestoredAt().IsZero() {
					t.Error("the other process has not noticed it")
				}
			})
		})
	}
}

// Restore mode ends after a week.
func TestRule12RestoreModeEnds(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Execute(rewind)
		g.Heartbeat()
		g.Jump(7*24*time.Hour + time.Second)
		g.ClearAccount()
		p := g.Payout("r", 10_00)
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(1, 1)
		if g.Bank.Queries != 0 {
			g.T.Errorf("looked up %d times", g.Bank.Queries)
		}
	})
}
