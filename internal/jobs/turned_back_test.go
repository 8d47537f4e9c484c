package jobs_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
)

// behind changes the database behind the gateway's back.
func (g *gateway) behind(texts ...string) {
	g.t.Helper()
	driver := "sqlite"
	if g.engine == "postgres" {
		driver = "pgx"
	}
	db, err := sql.Open(driver, g.options.Database)
	g.must(err)
	defer func() { _ = db.Close() }()
	for _, text := range texts {
		_, err = db.ExecContext(g.t.Context(), text)
		g.must(err)
	}
}

// A database may become an older copy of itself under a gateway that runs: a
// backup is restored beside it, or a replica that lacks the latest commits takes
// over. Rule 12 of docs/payouts.md holds then too.
func TestDatabaseTurnedBackUnderARunningGateway(t *testing.T) {
	const backwards = "UPDATE installation SET beat = beat - 3"
	for _, tt := range []struct {
		name  string
		texts []string
	}{
		{"a moment", []string{backwards}},
		{"to before the gateway started", []string{backwards, "DELETE FROM nodes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, g *gateway) {
				other := g.second()
				g.pass(5 * time.Second)
				other.beat()
				p := g.payout("sent in the lost past", 10_00)
				g.bank.pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 10_00}, processor.TransferPaid)
				reached := g.marker.beat
				g.behind(tt.texts...)
				g.beat()
				if g.marker.beat < reached {
					t.Errorf("beat outside went from %d to %d", reached, g.marker.beat)
				}
				g.submit()
				g.wantPaid(0, 1) // asked about, not sent
				g.resolve()
				g.want(p, payment.PayoutCompleted, payment.StepDone)
				other.beat()
				if other.flow.RestoredAt().IsZero() {
					t.Error("the other process has not learned of it")
				}
			})
		})
	}
}

// A payout that a restored database takes for unsent may have been paid: until
// its processor was asked, canceling it would give the money back without proof.
func TestCancelInRestoreModeNeedsProof(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.payout("sent in the lost past", 10_00)
		g.bank.pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 10_00}, processor.TransferPaid)
		g.behind("UPDATE installation SET beat = beat - 3")
		g.beat()
		if _, err := g.flow.CancelPayout(t.Context(), p.Merchant, p.ID); !problem.Is(err, problem.InvalidState) {
			t.Errorf("cancel: %v, want invalid_state", err)
		}
		g.wantBalances(opening-10_00, 10_00)
		g.submit()
		g.resolve()
		g.want(p, payment.PayoutCompleted, payment.StepDone)
		g.wantExceptions()
	})
}

// The processor's proof that a payout was paid counts, even where the gateway
// has not sent it yet as far as it knows: it does not send it then.
func TestProofOfAPayoutThatWaits(t *testing.T) {
	for _, tt := range []struct {
		state  processor.TransferState
		status payment.PayoutStatus
		step   payment.PayoutStep
	}{
		{processor.TransferPaid, payment.PayoutCompleted, payment.StepDone},
		{processor.TransferProcessing, payment.PayoutProcessing, payment.StepAccepted},
	} {
		t.Run(string(tt.state), func(t *testing.T) {
			each(t, func(t *testing.T, g *gateway) {
				p := g.payout("r", 10_00)
				g.bank.pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 10_00}, tt.state)
				g.notify("n", p.ExternalID)
				g.apply()
				g.want(p, tt.status, tt.step)
				g.submit()
				g.wantPaid(0, 1)
				g.wantExceptions()
			})
		})
	}
}
