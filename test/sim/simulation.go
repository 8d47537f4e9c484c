package sim

import (
	"context"
	"database/sql"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/test/sim/checker"
)

// Limits of a run.
const (
	// drainWithin bounds the simulated time from the end of all faults to the end of all
	// work.
	drainWithin = 60 * 24 * time.Hour
	// stepsMax bounds the steps of a run.
	stepsMax = 200_000
)

// startTimes are when simulations begin, some days before a change of year: in the evening, and
// so that a night or a day begins in São Paulo meanwhile.
var startTimes = []time.Time{
	time.Date(2026, 12, 28, 21, 30, 0, 0, time.UTC),
	time.Date(2026, 12, 28, 22, 58, 30, 0, time.UTC),
	time.Date(2026, 12, 29, 2, 58, 30, 0, time.UTC),
}

// simulation is one run: merchants, payers, a bank, receivers, and one or two gateway
// processes on one database.
type simulation struct {
	ctx     context.Context
	options Options
	random  env.Random
	clock   *env.VirtualClock
	began   time.Time
	source  env.Env // of the gateways' ids and randomness
	queue   queue
	serial  uint64 // of the last action
	steps   int    // actions so far
	idle    []*stepper
	control chan ending // from the goroutine that runs to the scheduler
	acting  bool        // an action runs, not the scheduler
	parked  int         // goroutines
	closing bool

	plan      plan
	faultsOff bool
	daysAhead bool           // a clock was ahead by days
	turns     map[string]int // positions of round robins, by group and state

	keys       *db.Keyring
	marker     marker
	nodes      []*node
	bank       *bank
	contracts  []*contract
	accounts   map[string]*contract // by external id
	merchants  []*merchant
	placed     []*order
	late       []*order             // that are requested again at the end
	receivers  map[string]*receiver // by host
	endpoints  []*endpoint
	oldAnswers map[string][]byte   // of look-ups, by [bankCall.subject]
	deciding   map[payment.ID]bool // cases of which one of two people has decided
	mistaken   map[string]bool     // external ids of payouts and parts of refunds that people released although they were paid
	undecided  map[payment.ID]bool // cases that were seen, and whether nobody decides them

	raw        *sql.DB // the checker's own connection
	checker    *checker.Checker
	records    checker.Records
	damaged    *damage // nil while no row is
	violations []checker.Violation

	coverage coverage
	trace    trace
	result   Result
}

// checkCommit checks the last commit.
func (s *simulation) checkCommit() {
	found, err := s.checker.Commit(s.ctx)
	if err != nil {
		s.fail(err)
	}
	s.violations = append(s.violations, found...)
}

// compare compares the records of all parties.
func (s *simulation) compare(final bool) {
	var err error
	if s.records.Transfers, err = s.bank.transfers(); err == nil {
		s.records.Payments, err = s.bank.payments()
	}
	if err == nil {
		s.records.Refunds, err = s.bank.refunds()
	}
	if err == nil {
		s.records.Disputes, err = s.bank.disputes()
	}
	if err != nil {
		s.fail(err)
		return
	}
	s.records.Charges = s.bank.registered()
	s.violations = append(s.violations, s.checker.Compare(&s.records, final)...)
}

func (s *simulation) violate(i checker.Invariant, merchant, order, text string) {
	s.violations = append(s.violations, checker.Violation{Invariant: i, Merchant: merchant, Order: order, Text: text})
}

// fail ends the run because of an error of the simulation itself.
func (s *simulation) fail(err error) { s.violate(checker.Simulator, "", "", err.Error()) }

// none is the state of an order that does not exist, or not yet.
const none = "none"

// stateOf is the state of an order in the database.
func (s *simulation) stateOf(externalID string) string {
	if _, state, ok := s.checker.Order(externalID); ok {
		return state
	}
	return none
}

// countFault counts a fault about an order in a state.
func (s *simulation) countFault(group, fault, state string) {
	s.result.Faults++
	s.coverage.count(group, fault, state)
}

// groupOf is a group of faults, of pay-ins, payouts or refunds if the order exists.
func (s *simulation) groupOf(group, externalID string) string {
	switch kind, _, _ := s.checker.Order(externalID); kind {
	case checker.Payin:
		return group + ", pay-in"
	case checker.Payout:
		return group + ", payout"
	case checker.Refund:
		return group + ", refund"
	default:
		return group
	}
}

// chance is true with a probability in thousandths.
func (s *simulation) chance(perMille int) bool { return s.random.Int64N(1000) < int64(perMille) }

// between draws a duration.
func (s *simulation) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int64N(int64(most-least)+1))
}

// number draws from 0 to n-1.
func (s *simulation) number(n int) int { return int(s.random.Int64N(int64(n))) }

func pick[T any](s *simulation, list []T) T { return list[s.number(len(list))] }
