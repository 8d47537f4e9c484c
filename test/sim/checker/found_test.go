package checker

import (
	"context"
	"testing"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// lister is a bank that lists a transfer.
type lister struct {
	bank

	externalID string
}

func (lister) Feeds() map[processor.Feed]processor.FeedSpec {
	return map[processor.Feed]processor.FeedSpec{processor.FeedTransfers: {}}
}

func (b lister) Read(context.Context, processor.Feed, string) (page processor.Page, err error) {
	page.Facts = []processor.Fact{{Transfer: &processor.ListedTransfer{
		ExternalID: b.externalID, EndToEndID: "E9", State: processor.TransferPaid, Amount: lostAmount,
	}}}
	return page, nil
}

// lostAmount is the amount in cents of the payout that the database lacks.
const lostAmount = 600

// findLost books a transfer whose payout, with the reference out-lost, the database lacks.
func (s *scene) findLost() {
	s.t.Helper()
	id := s.store.ExternalID(&s.merchant, payment.OperationPayout, "out-lost")
	s.records.Transfers = append(s.records.Transfers, BankTransfer{ExternalID: id, Amount: lostAmount, State: "paid", EndToEndID: "E9"})
	s.processors[bankName] = lister{externalID: id}
	s.withLease(func(ctx context.Context) {
		_, err := s.Notices.ReadFeeds(ctx)
		s.must(err)
	})
	s.processors[bankName] = bank{}
}

// A transfer that no payout has is booked once, and accounted for.
func TestFoundTransfer(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.findLost()
		s.wantSound()
		changed := s.corrupt([]string{"UPDATE found_transfers SET total = total + 1"}, nil)
		s.want("another total", changed, SingleTransfer, "was of 600, and is of 601")
		s.records.Transfers[0].Amount++
		s.want("another amount", s.checker.Compare(&s.records, true), SingleTransfer, "is booked as 600")
		s.records.Transfers = nil
		s.want("no transfer", s.checker.Compare(&s.records, false), SingleTransfer, "the bank has no transfer")
	})
}

// A checker that is rewound has seen what was committed before the copy.
func TestRewind(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.payout("out-1", 500)
		before := s.checker.History("out-1")
		o := s.checker.Options
		seen := s.checker.seq
		s.send(done(processor.TransferPaid))
		s.payout("out-2", 700)
		_, err := s.raw.ExecContext(s.ctx, "DELETE FROM checker_log WHERE seq > $1", seen)
		s.must(err)
		then, err := s.checker.Rewind(s.ctx, o)
		s.must(err)
		defer func() { s.must(then.Close()) }()
		if got := then.History("out-1"); got != before {
			s.t.Errorf("history:\n%s\nwant:\n%s", got, before)
		}
		if _, _, ok := then.Acknowledged(s.store.ExternalID(&s.merchant, payment.OperationPayout, "out-2")); ok {
			s.t.Error("a payout from after the copy is known")
		}
		// Money that left in the past that the copy lacks is found later.
		s.records.Orders = s.records.Orders[:1]
		found := then.Compare(&s.records, false)
		if len(found) != 0 {
			s.t.Errorf("found %v", found)
		}
		s.want("never found", then.Compare(&s.records, true), SingleTransfer, "the bank says paid")
	})
}
