package sim

import (
	"database/sql"
	"path/filepath"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/test/sim/checker"
)

// copyKinds are the ways in which a gateway starts on an older copy of its database: what
// made the copy, and which epoch is kept outside it.
var copyKinds = []string{
	"backup",        // the gateway's own backup, and the current epoch
	"moved backup",  // the gateway's own backup, on a machine without an epoch
	"file",          // a copy of the database alone, and the current epoch
	"disk",          // a snapshot of the disk: the epoch is as old as the database
	"new container", // a copy of the database alone, without an epoch
}

// databaseCopy is a copy of the database, and what was recorded when it was made.
type databaseCopy struct {
	kind       string
	database   string // as in [Options]
	epoch      int64  // in the copy
	outside    int64  // the epoch that was kept outside the database
	deliveries int    // that had reached receivers
}

// Waits of a copy: the gateway starts on it some heartbeats after it was made.
const (
	copyAgeMin  = 15 * time.Second
	copyAgeMax  = 3 * time.Minute
	restartMax  = 5 * time.Second
	repeatWait  = 2 * time.Minute
	lateRepeat  = 8 * 24 * time.Hour
	largeAmount = openingFunds // no merchant has twice as much
)

// scheduleCopy schedules a copy within span, and a start on it.
func (s *simulation) scheduleCopy(span time.Duration) {
	if s.plan.copyKind == "" {
		return
	}
	at := s.between(0, span/2)
	back := at + s.between(copyAgeMin, copyAgeMax)
	var made *databaseCopy
	var copies func()
	copies = func() {
		if slices.ContainsFunc(s.endpoints, func(e *endpoint) bool { return e.ID == "" }) {
			s.whenIdle(time.Second, copies) // an endpoint that the copy lacks is lost
			return
		}
		made = s.copyDatabase()
	}
	s.whenIdle(at, copies)
	s.whenIdle(back, func() {
		if made != nil && !s.faultsOff {
			s.startOnCopy(made)
		}
	})
	for _, m := range s.merchants { // they have the money for one of these
		s.after(at+s.between(0, back-at), m.placeLargePayout)
		s.after(back+s.between(0, time.Minute), m.placeLargePayout)
	}
}

// whenIdle runs do after d, as soon as no process is in the middle of a step.
func (s *simulation) whenIdle(d time.Duration, do func()) {
	s.after(d, func() {
		if s.parked > 0 {
			s.whenIdle(50*time.Millisecond, do)
			return
		}
		do()
	})
}

// copyDatabase makes a copy of the database; nil if no gateway can make a backup now.
func (s *simulation) copyDatabase() *databaseCopy {
	c := &databaseCopy{kind: s.plan.copyKind, outside: s.marker.Epoch, deliveries: len(s.records.Deliveries)}
	var err error
	if c.database, err = s.copyTo(c.kind); err == nil && c.database != "" {
		err = s.onRaw(c.database, func(raw *sql.DB) error {
			return raw.QueryRowContext(s.ctx, "SELECT epoch FROM installation").Scan(&c.epoch)
		})
	}
	if err != nil {
		s.fail(err)
	}
	s.trace.linef("copy: %s, epoch %d", c.kind, c.epoch)
	if err != nil || c.database == "" {
		return nil
	}
	return c
}

func (s *simulation) copyTo(kind string) (database string, err error) {
	if db.IsPostgres(s.options.Database) {
		return s.copyPostgres()
	}
	database = filepath.Join(filepath.Dir(s.options.Database), "copy.db")
	if kind != "backup" && kind != "moved backup" {
		_, err = s.raw.ExecContext(s.ctx, "VACUUM INTO $1", database)
		return database, err
	}
	n := s.reachableNode()
	if n == nil {
		return "", nil
	}
	return database, n.store.Backup(s.ctx, database)
}

// copyPostgres copies a PostgreSQL database, to which nothing may be connected meanwhile:
// the gateways restart.
func (s *simulation) copyPostgres() (database string, err error) {
	if s.options.Copy == nil {
		return "", nil
	}
	s.stopAll()
	if err := s.closeRaw(); err != nil {
		return "", err
	}
	if database, err = s.options.Copy(s.options.Database); err != nil {
		return "", err
	}
	if s.raw, _, err = openRaw(s.options.Database); err != nil {
		return "", err
	}
	return database, s.checker.Reopen(s.ctx, s.raw)
}

// onRaw runs a function on a database without the gateway's own code.
func (s *simulation) onRaw(database string, do func(*sql.DB) error) error {
	raw, _, err := openRaw(database)
	if err != nil {
		return err
	}
	defer func() { _ = raw.Close() }()
	return do(raw)
}

// stopAll kills the gateways, which start again soon.
func (s *simulation) stopAll() {
	for _, n := range s.nodes {
		if n.up {
			n.die()
			s.after(s.between(0, restartMax), n.start)
		}
		n.close()
	}
}

func (s *simulation) closeRaw() error {
	if err := s.checker.Close(); err != nil {
		return err
	}
	return s.raw.Close()
}

// startOnCopy kills the gateways and starts them on a copy.
func (s *simulation) startOnCopy(c *databaseCopy) {
	if (c.kind == "file" || c.kind == "backup") && s.marker.Epoch <= c.epoch {
		s.trace.linef("no heartbeat followed the copy")
		return
	}
	s.compare(false)
	s.stopAll()
	switch c.kind {
	case "disk":
		s.marker.Epoch = c.outside
	case "moved backup", "new container":
		s.marker.Epoch = 0
	}
	err := s.closeRaw()
	if err == nil {
		s.raw, _, err = openRaw(c.database)
	}
	if err != nil {
		s.fail(err)
		return
	}
	s.options.Database = c.database
	o := s.checker.Options
	o.DB, o.Outcome = s.raw, nil // the outcomes until now are counted
	before := s.checker
	if s.checker, err = before.Rewind(s.ctx, o); err != nil {
		s.fail(err)
		return
	}
	s.checker.Outcome = s.countOutcome
	s.checker.Unmarked = c.kind == "disk" || c.kind == "new container"
	s.records.Deliveries = s.records.Deliveries[:c.deliveries]
	s.trace.linef("the gateways start on the copy: %s", c.kind)
	for _, o := range s.placed {
		s.forgetOrder(o, before, c.kind)
	}
}

// forgetOrder changes a client's record of an order that the copy lacks: its id means
// nothing any more. Some clients repeat their requests soon, some late, some never.
func (s *simulation) forgetOrder(o *order, before *checker.Checker, kind string) {
	if o.ID == "" {
		o.lost = true // if its answer was lost, the copy may lack it too
		return
	}
	s.countFault("copy, "+o.Kind, kind, s.stateOf(o.ExternalID))
	id, canceled, ok := s.checker.Acknowledged(o.ExternalID)
	if ok && id == o.ID {
		o.Canceled = o.Canceled && canceled
		return
	}
	_, state, _ := before.Order(o.ExternalID)
	s.countFault("copy, lost "+o.Kind, kind, state)
	o.ID, o.Canceled, o.lost = "", false, true
	if o.of != nil {
		o.Amount = o.asked
	}
	m := s.merchantOf(o)
	switch s.number(3) {
	case 0:
		s.after(s.between(0, repeatWait), func() { m.send(o, 0) })
	case 1:
		s.late = append(s.late, o)
	}
}

// repeatLate repeats requests, a long time after the copy; it reports whether there were any.
func (s *simulation) repeatLate() bool {
	if len(s.late) == 0 {
		return false
	}
	s.elapse(lateRepeat)
	for _, o := range s.late {
		s.trace.linef("late repeat of %s", o.Reference)
		s.perform(func() { s.merchantOf(o).send(o, 0) })
	}
	s.late = nil
	return true
}

// placeLargePayout requests a payout of most of the merchant's money, which it can pay once.
func (m *merchant) placeLargePayout() {
	amount := largeAmount/2 + m.sim.random.Int64N(largeAmount/2)
	m.request(m.newOrder(checker.Payout, amount))
}
