package jobs_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// Rule 12: a restored backup is recognised, and everything that it may have
// forgotten is asked about before it is sent.
func TestRule12RestoreMode(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		if g.engine != "sqlite" {
			// The same by the marker alone: a server's backup is not a file.
			forgotten := g.payout("sent in the lost past", 10_00)
			g.bank.pay(processor.TransferRequest{ExternalID: forgotten.ExternalID, Amount: 10_00}, processor.TransferPaid)
			g.marker.beat += 1000
			g.must(g.flow.Join(t.Context(), g.marker.beat, false))
			g.beat()
			g.submit()
			g.wantPaid(0, 1)
			g.want(forgotten, payment.PayoutProcessing, payment.StepUnknown)
			g.resolve()
			g.want(forgotten, payment.PayoutCompleted, payment.StepDone)
			return
		}
		before := g.payout("before the backup", 10_00)
		backup := filepath.Join(t.TempDir(), "backup.db")
		g.must(g.store.Backup(t.Context(), backup))
		lost := g.payout("after the backup", 20_00)
		g.pass(3 * time.Second)
		g.submit()
		g.wantPaid(2, 2)

		o := g.options
		o.Database = backup
		restored := newGateway(t, o, g.env, g.clock, g.bank, g.marker)
		restored.merchant = g.merchant
		restored.want(before, payment.PayoutPending, payment.StepQueued)
		again := restored.payout("after the backup", 20_00) // the merchant repeats its request
		if again.ExternalID != lost.ExternalID {
			t.Fatal("the same request has another id after the restore")
		}
		fresh := restored.payout("never asked for before", 30_00)
		for range 30 {
			restored.submit()
			restored.resolve()
			restored.pass(10 * time.Second)
		}
		for _, p := range []payment.Payout{before, again, fresh} {
			restored.want(p, payment.PayoutCompleted, payment.StepDone)
		}
		restored.wantPaid(3, 3) // only the fresh one was sent
		restored.wantBalances(opening-60_00, 0)
	})
}

// A backup that the store made is known for one at once, before another beat,
// and where nothing outside the database tells how far that had come.
func TestRule12BackupKnowsItself(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		if g.engine != "sqlite" {
			return // a server's backup is its own
		}
		backup := filepath.Join(t.TempDir(), "backup.db")
		g.must(g.store.Backup(t.Context(), backup))
		lost := g.payout("after the backup", 20_00)
		g.submit()
		g.wantPaid(1, 1)
		for _, marker := range []*memoryMarker{g.marker, {}} {
			o := g.options
			o.Database = filepath.Join(t.TempDir(), "restored.db")
			text, err := os.ReadFile(backup)
			g.must(err)
			g.must(os.WriteFile(o.Database, text, 0o600))
			restored := newGateway(t, o, g.env, g.clock, g.bank, marker)
			restored.merchant = g.merchant
			again := restored.payout("after the backup", 20_00)
			restored.submit()
			restored.resolve()
			restored.want(again, payment.PayoutCompleted, payment.StepDone)
			if again.ExternalID != lost.ExternalID {
				t.Error("the same request has another id after the restore")
			}
			restored.wantPaid(1, 1)
		}
	})
}

// Rule 12, its other half: while the beat cannot be kept outside the database,
// a backup could be taken that would not be known for one. Nothing is sent that
// it would lack.
func TestRule12NothingLeavesUnmarked(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.marker.err = syscall.ENOSPC
		for range 5 {
			g.clock.Advance(time.Second)
			if _, err := g.jobs.KeepAlive(t.Context()); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("a beat that was not kept: %v", err)
			}
		}
		p := g.payout("r", 10_00)
		g.submit()
		g.want(p, payment.PayoutPending, payment.StepQueued)
		g.marker.err = nil
		g.beat()
		g.submit()
		g.want(p, payment.PayoutCompleted, payment.StepDone)
	})
}
