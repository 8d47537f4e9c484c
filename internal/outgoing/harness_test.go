package outgoing_test

import (
	"errors"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// raceWithin is longer than a transaction that lost a race waits, and shorter than any
// call to the bank may take.
const raceWithin = 100 * time.Millisecond

// claim claims the one payout that is due, and records the intent to send it.
func claim(g *coretest.Gateway) outgoing.ClaimedSend {
	g.T.Helper()
	due, err := g.Store.PayoutsDue(g.T.Context(), g.Clock.Now(), store.ToSend)
	g.Must(err)
	if len(due) != 1 {
		g.T.Fatalf("due: %v", due)
	}
	sends, claimed, err := g.Outgoing.Claim(g.T.Context(), due[0], 10)
	g.Must(err)
	if len(sends) != 1 || claimed != 1 {
		g.T.Fatalf("claimed %d payouts, and %d sends began", claimed, len(sends))
	}
	return sends[0]
}

// record records an answer to a send.
func record(g *coretest.Gateway, s outgoing.ClaimedSend, answer processor.TransferAnswer) {
	g.T.Helper()
	g.Must(g.Outgoing.RecordSend(g.T.Context(), s, answer))
}

// paid is the answer of a bank that has paid a request.
func paid(g *coretest.Gateway, r processor.TransferRequest) processor.TransferAnswer {
	g.Bank.Mu.Lock()
	defer g.Bank.Mu.Unlock()
	return processor.TransferAnswer{Outcome: processor.Done, Report: g.Bank.Pay(r, processor.TransferPaid)}
}

// always is an AnswerTransfer of a bank that gives one answer and makes no transfer.
func always(answer processor.TransferAnswer) func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer {
	return func(*coretest.Bank, processor.TransferRequest) processor.TransferAnswer { return answer }
}

// noAnswer is an AnswerQuery of a bank that does not answer queries.
func noAnswer(*coretest.Bank, string) processor.TransferReport { return processor.TransferReport{} }

var (
	errRefused = errors.New("connection refused")
	notSent    = processor.TransferAnswer{Outcome: processor.NotSent, Cause: errRefused}
	refused    = processor.TransferAnswer{Outcome: processor.Refused, Evidence: "AC03"}
)
