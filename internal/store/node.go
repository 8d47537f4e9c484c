package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// Node is a process that claims work. It is dead if its heartbeat stops.
type Node struct {
	ID        payment.ID
	Heartbeat int64 // only increases
	// Clock is its wall clock at the last heartbeat, which may differ from those of others. Its
	// later orders have ids of later times.
	Clock time.Time
}

// Installation is the id of the database's owner, and its epoch.
type Installation struct {
	ID    payment.ID
	Epoch int64 // only increases; also kept outside the database
	// History numbers the time since the last cold start; 0 if there was none. The database may be a
	// copy from before it: rows and counters of an earlier history may be missing in this one.
	History      int64
	RestoredAt   time.Time // when the history began
	RestoredFrom time.Time // until when the database is known to be complete, or earlier; zero if unknown
	// ProvedAt is when this database was last proved to be an older copy: by the epoch outside, or by
	// a transfer that it lacks. Zero if never.
	ProvedAt  time.Time
	StopToken string // of a clean stop; "" while a gateway runs, and after another end
	StoppedAt time.Time
	UpdatedAt time.Time // of the epoch; zero if no gateway has run
}

// Restored is the installation after a restore that is proved now.
func (v Installation) Restored(epoch int64, now time.Time) Installation {
	v = v.ColdStart(now)
	v.Epoch, v.ProvedAt = epoch, now
	return v
}

// ColdStart is the installation after a start that is not known to continue its last process: the
// database may be an older copy.
func (v Installation) ColdStart(now time.Time) Installation {
	v.RestoredAt, v.RestoredFrom = now, v.UpdatedAt
	if v.RestoredFrom.After(now) {
		v.RestoredFrom = now
	}
	// The same backup may be restored twice: the two histories differ in their times.
	v.History = max(v.History+1, now.Unix())
	return v
}

// nodeRow is a node with its other stored values.
type nodeRow struct {
	Node

	startedAt time.Time
}

var nodeTable = newTable("nodes", []string{"id"},
	idColumn("id", func(n *nodeRow) *payment.ID { return &n.ID }),
	intColumn("heartbeat", func(n *nodeRow) *int64 { return &n.Heartbeat }).as(mutable),
	timeColumn("clock", func(n *nodeRow) *time.Time { return &n.Clock }).as(mutable),
	timeColumn("started_at", func(n *nodeRow) *time.Time { return &n.startedAt }).as(hidden),
)

var nodeUpdate = nodeTable.updateBy("", "id")

func scanNode(r db.Scanner) (Node, error) {
	var n nodeRow
	err := nodeTable.scan(r, &n)
	return n.Node, err
}

// installationRow is the installation, the only row of its table.
type installationRow struct {
	Installation

	singleton     int64  // 1
	externalIDKey []byte // see [payment.ExternalIDs]
	createdAt     time.Time
}

// History is the epoch and the latest history of the database, as a claim reads them.
type History struct {
	Epoch, Number            int64
	RestoredAt, RestoredFrom time.Time
	ProvedAt                 time.Time
}

// Latest is the epoch and the latest history of the database.
func (v Installation) Latest() History {
	return History{Epoch: v.Epoch, Number: v.History, RestoredAt: v.RestoredAt, RestoredFrom: v.RestoredFrom, ProvedAt: v.ProvedAt}
}

var installationTable = newTable("installation", []string{"singleton"},
	intColumn("singleton", func(v *installationRow) *int64 { return &v.singleton }).as(hidden),
	idColumn("id", func(v *installationRow) *payment.ID { return &v.ID }),
	intColumn("epoch", func(v *installationRow) *int64 { return &v.Epoch }).as(mutable),
	intColumn("history", func(v *installationRow) *int64 { return &v.History }).as(mutable),
	timeColumn("restored_at", func(v *installationRow) *time.Time { return &v.RestoredAt }).as(mutable),
	timeColumn("restored_from", func(v *installationRow) *time.Time { return &v.RestoredFrom }).as(mutable),
	timeColumn("proved_at", func(v *installationRow) *time.Time { return &v.ProvedAt }).as(mutable),
	textColumn("stop_token", func(v *installationRow) *string { return &v.StopToken }).as(mutable),
	timeColumn("stopped_at", func(v *installationRow) *time.Time { return &v.StoppedAt }).as(mutable),
	timeColumn("updated_at", func(v *installationRow) *time.Time { return &v.UpdatedAt }).as(mutable),
	bytesColumn("external_id_key", func(v *installationRow) *[]byte { return &v.externalIDKey }).as(hidden),
	timeColumn("created_at", func(v *installationRow) *time.Time { return &v.createdAt }).as(hidden),
)

var installationUpdate = installationTable.updateBy("", "singleton")

func scanInstallation(r db.Scanner) (Installation, error) {
	var v installationRow
	err := installationTable.scan(r, &v)
	return v.Installation, err
}

type nodeNeeds struct {
	claiming   []payment.ID
	heartbeats []payment.ID
}

// ClaimingNode reads whether a node is alive, and locks it until the transaction ends. A node that
// declares it dead waits for that lock, and then releases its claims too.
func (n *Needs) ClaimingNode(id payment.ID) { n.nodes.claiming = append(n.nodes.claiming, id) }

// Heartbeat reads a node and the installation, to advance both.
func (n *Needs) Heartbeat(id payment.ID) { n.nodes.heartbeats = append(n.nodes.heartbeats, id) }

type loadedNodes struct {
	alive        map[payment.ID]bool
	nodes        map[payment.ID]Node
	installation Installation
	history      History
}

func (l *Loaded) loadNodes(ctx context.Context, tx *db.Tx, n *Needs) error {
	l.nodes = loadedNodes{alive: map[payment.ID]bool{}, nodes: map[payment.ID]Node{}}
	claiming := n.nodes.claiming
	if l.capacity.any() {
		claiming = append(claiming, l.capacity.Node)
	}
	for _, id := range claiming {
		if _, known := l.nodes.alive[id]; known {
			continue
		}
		h := &l.nodes.history
		err := db.NotFound(tx.QueryRow(ctx, `SELECT i.epoch, i.history, i.restored_at, i.restored_from, i.proved_at
			FROM nodes n CROSS JOIN installation i WHERE n.id = $1`+tx.KeyShare("n"), id[:]).
			Scan(&h.Epoch, &h.Number, (*timeDest)(&h.RestoredAt), (*timeDest)(&h.RestoredFrom), (*timeDest)(&h.ProvedAt)))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		l.nodes.alive[id] = err == nil
	}
	if !l.nodes.alive[l.capacity.Node] { // it was declared dead: rows that it makes due are for the others
		l.capacity.Notices, l.capacity.Deliveries = nil, nil
	}
	for _, id := range n.nodes.heartbeats {
		v, err := scanNode(tx.QueryRow(ctx, "SELECT "+nodeTable.selected+" FROM nodes t WHERE t.id = $1"+tx.NoKeyUpdate("t"), id[:]))
		switch err = db.NotFound(err); {
		case errors.Is(err, ErrNotFound):
			continue
		case err != nil:
			return err
		}
		l.nodes.nodes[id] = v
	}
	if len(n.nodes.heartbeats) == 0 {
		return nil
	}
	var err error
	l.nodes.installation, err = scanInstallation(tx.QueryRow(ctx, "SELECT "+installationTable.selected+" FROM installation t"+tx.NoKeyUpdate("t")))
	return err
}

// NodeAlive reports whether a loaded node may claim.
func (l *Loaded) NodeAlive(id payment.ID) bool { return l.nodes.alive[id] }

// History is the history of the database, loaded with a claiming node.
func (l *Loaded) History() History { return l.nodes.history }

// Node is a node loaded for its heartbeat; false if it was declared dead.
func (l *Loaded) Node(id payment.ID) (Node, bool) {
	n, ok := l.nodes.nodes[id]
	return n, ok
}

// Installation is the installation, loaded with a heartbeat.
func (l *Loaded) Installation() Installation { return l.nodes.installation }

type nodeChanges struct {
	nodes        []Node
	installation *Installation
	restored     bool // it began a new history
}

// SetNode changes a loaded node.
func (c *Changes) SetNode(n Node) {
	c.l.nodes.nodes[n.ID] = n
	c.nodes.nodes = append(c.nodes.nodes, n)
	c.count++
}

// SetInstallation changes the loaded installation.
func (c *Changes) SetInstallation(v Installation) {
	c.nodes.restored = v.History != c.l.nodes.installation.History
	c.l.nodes.installation = v
	c.nodes.installation = &v
	c.count++
}

func (c *Changes) saveNodes(ctx context.Context, tx *db.Tx) error {
	for _, n := range c.nodes.nodes {
		missed, err := tx.Update(ctx, nodeUpdate.RowUpdate, nodeUpdate.row(&nodeRow{Node: n}))
		if err == nil && len(missed) > 0 {
			err = ErrConflict
		}
		if err != nil {
			return fmt.Errorf("heartbeat: %w", err)
		}
	}
	if v := c.nodes.installation; v != nil {
		if err := setInstallation(ctx, tx, *v); err != nil {
			return fmt.Errorf("installation: %w", err)
		}
		if c.nodes.restored {
			return beginHistory(ctx, tx, v.History)
		}
	}
	return nil
}

// beginHistory records the last event of each merchant that the restore kept, and the last row
// of its statement.
func beginHistory(ctx context.Context, tx *db.Tx, history int64) error {
	platform := payment.ID{}
	for _, text := range []string{
		"INSERT INTO event_histories (merchant_id, history, last_number, last_statement) VALUES ($2, $1, 0, 0) ON CONFLICT DO NOTHING",
		`INSERT INTO event_histories (merchant_id, history, last_number, last_statement) SELECT m.id, $1,
			coalesce((SELECT c.last_number FROM event_counters c WHERE c.merchant_id = m.id), 0),
			coalesce((SELECT SUM(b.postings) FROM balances b WHERE b.merchant_id = m.id AND b.account IN ` + statementAccounts + `), 0)
			FROM merchants m WHERE m.id <> $2 ON CONFLICT DO NOTHING`,
	} {
		if _, err := tx.Exec(ctx, text, history, platform[:]); err != nil {
			return fmt.Errorf("begin history: %w", err)
		}
	}
	return nil
}

func setInstallation(ctx context.Context, tx *db.Tx, v Installation) error {
	_, err := tx.Update(ctx, installationUpdate.RowUpdate, installationUpdate.row(&installationRow{Installation: v, singleton: 1}))
	return err
}

// BeginHistory changes the installation after a restore, and records the last event of
// each merchant that the restore kept, and the last row of its statement.
func (tx *Tx) BeginHistory(ctx context.Context, v Installation) error {
	if err := setInstallation(ctx, tx.Tx, v); err != nil {
		return err
	}
	return beginHistory(ctx, tx.Tx, v.History)
}

// SetInstallation changes the installation.
func (tx *Tx) SetInstallation(ctx context.Context, v Installation) error {
	return setInstallation(ctx, tx.Tx, v)
}

// Installation reads the installation and locks it.
func (tx *Tx) Installation(ctx context.Context) (Installation, error) {
	return scanInstallation(tx.QueryRow(ctx, "SELECT "+installationTable.selected+" FROM installation t"+tx.NoKeyUpdate("t")))
}

// RegisterNode lets this process claim work.
func (tx *Tx) RegisterNode(ctx context.Context, id payment.ID) error {
	return tx.InsertNew(ctx, nodeTable.insert, nodeTable.row(&nodeRow{Node{id, 1, tx.Now}, tx.Now}))
}

// clockTolerance is how far the clock of a row may be ahead of the transaction's.
const clockTolerance = time.Minute

// RescheduleFuture makes all work due now that was scheduled by a clock that was ahead: rows that
// it wrote, and rows due after latest. It is for the start of a process, and for a clock that was
// set back.
//
//   - The rows of found transfers and notices do not show when they were scheduled, and a feed may
//     wait for hours. So these are due now if they wait for more than a minute, which does no harm.
//   - The date of a restore that is later than now counts from now, and so do the hours in which an
//     endpoint fails.
//
// step is how far that clock was set back; 0 if that is not known. If it was ahead for longer than
// step, its rows look like others, so all work is due earlier by step. Another process with the
// right clock may have scheduled it. That does no harm: a query, a send or an attempt comes too
// early. Work that must not be early has a time of its own: the deadline of a send, from which the
// quiet period counts, the time of a first "not found", the end of an approval.
func (tx *Tx) RescheduleFuture(ctx context.Context, latest time.Time, step time.Duration) error {
	soon := tx.Now.Add(clockTolerance)
	now, ahead := micros(tx.Now), micros(soon)
	const scheduled = " SET next_at = $1 WHERE next_at > $1 AND next_at > 0 AND "
	for _, v := range []struct {
		text string
		late time.Time
	}{
		{"UPDATE payouts" + scheduled + "(next_at > $2 OR updated_at > $3) AND " + ToSend.sql(), latest},
		{"UPDATE payouts" + scheduled + "(next_at > $2 OR updated_at > $3) AND " + ToLookUp.sql(), latest},
		{"UPDATE deliveries" + scheduled + "(next_at > $2 OR updated_at > $3)", latest},
		{"UPDATE charges" + scheduled + "(next_at > $2 OR updated_at > $3)", latest},
		{"UPDATE refund_parts" + scheduled + "(next_at > $2 OR updated_at > $3)", latest},
		{"UPDATE dispute_answers" + scheduled + "(next_at > $2 OR updated_at > $3)", latest},
		{"UPDATE found_transfers" + scheduled + "(next_at > $2 OR created_at > $3)", soon},
		{"UPDATE notices" + scheduled + "(next_at > $2 OR received_at > $3)", soon},
		{"UPDATE feeds" + scheduled + "(next_at > $2 OR updated_at > $3)", soon},
		{"UPDATE webhook_endpoints SET counted_at = $1 WHERE counted_at > $1 AND (counted_at > $2 OR counted_at > $3)", latest},
		{"UPDATE installation SET restored_at = $1 WHERE restored_at > $2 OR restored_at > $3", latest},
		{"UPDATE installation SET proved_at = $1 WHERE proved_at > $2 OR proved_at > $3", latest},
	} {
		if _, err := tx.Exec(ctx, v.text, now, micros(v.late), ahead); err != nil {
			return fmt.Errorf("reschedule work: %w", err)
		}
	}
	if step <= 0 {
		return nil
	}
	const earlier = " SET next_at = CASE WHEN next_at - $2 > $1 THEN next_at - $2 ELSE $1 END WHERE next_at > $1 AND next_at > 0"
	for _, text := range []string{
		"UPDATE payouts" + earlier + " AND " + ToSend.sql(), "UPDATE payouts" + earlier + " AND " + ToLookUp.sql(),
		"UPDATE refund_parts" + earlier + " AND " + ToSend.sql(), "UPDATE refund_parts" + earlier + " AND " + ToLookUp.sql(),
		"UPDATE deliveries" + earlier, "UPDATE charges" + earlier, "UPDATE dispute_answers" + earlier,
	} {
		if _, err := tx.Exec(ctx, text, now, step.Microseconds()); err != nil {
			return fmt.Errorf("reschedule work: %w", err)
		}
	}
	return nil
}

// ReleaseNode removes a dead process if its heartbeat is still the one that was read, and makes its
// claimed work due for others; else ErrConflict. A payout, or a part of a refund, that it may have
// been sending becomes unknown: it is looked up. A delivery attempt that it may have made is
// recorded without an end.
func (tx *Tx) ReleaseNode(ctx context.Context, n Node) (released int64, err error) {
	if err := tx.ExecOne(ctx, "DELETE FROM nodes WHERE id = $1 AND heartbeat = $2", n.ID[:], n.Heartbeat); err != nil {
		return 0, err
	}
	now := micros(tx.Now)
	if _, err := tx.Exec(ctx, `UPDATE payout_sends SET outcome = 'unknown' WHERE outcome = 'intent' AND (merchant_id, payout_id) IN (
		SELECT merchant_id, id FROM payouts WHERE claimed_by = $1 AND length(claimed_by) > 0 AND step = 'intent')`, n.ID[:]); err != nil {
		return 0, fmt.Errorf("release sends: %w", err)
	}
	release := func(text string) error {
		count, err := tx.ExecCount(ctx, text, []byte{}, now, n.ID[:])
		released += count
		return err
	}
	err = release(`UPDATE payouts SET claimed_by = $1, next_at = $2, step = CASE WHEN step = 'intent' THEN 'unknown' ELSE step END
		WHERE claimed_by = $3 AND length(claimed_by) > 0`)
	if err != nil {
		return 0, fmt.Errorf("release payouts: %w", err)
	}
	if err := tx.recordCutOff(ctx, n.ID); err != nil {
		return 0, fmt.Errorf("release attempts: %w", err)
	}
	for _, text := range []string{
		"UPDATE deliveries SET claimed_by = $1, next_at = CASE WHEN state = 'pending' THEN CAST($2 AS BIGINT) ELSE 0 END WHERE claimed_by = $3 AND length(claimed_by) > 0",
		"UPDATE charges SET claimed_by = $1, next_at = CASE WHEN state = 'made' THEN 0 ELSE CAST($2 AS BIGINT) END WHERE claimed_by = $3 AND length(claimed_by) > 0",
		"UPDATE refund_parts SET " + releaseEffects + " WHERE claimed_by = $3 AND length(claimed_by) > 0",
		`UPDATE dispute_answers SET claimed_by = $1, next_at = $2, may_exist = CASE WHEN step = 'intent' THEN 1 ELSE may_exist END,
			step = CASE WHEN step = 'intent' THEN 'unknown' ELSE step END WHERE claimed_by = $3 AND length(claimed_by) > 0`,
		"UPDATE notices SET claimed_by = $1, next_at = $2 WHERE claimed_by = $3 AND length(claimed_by) > 0",
		"UPDATE feeds SET claimed_by = $1, next_at = $2 WHERE claimed_by = $3 AND length(claimed_by) > 0",
	} {
		if err := release(text); err != nil {
			return 0, fmt.Errorf("release: %w", err)
		}
	}
	return released, nil
}

// Nodes lists the registered processes, alive or dead.
func (s *Store) Nodes(ctx context.Context) ([]Node, error) {
	rows, err := s.db.Query(ctx, "SELECT "+nodeTable.selected+" FROM nodes t ORDER BY t.id")
	list, err := db.Collect(rows, err, scanNode)
	return list, s.db.ReadError("nodes", err)
}

// ReadInstallation reads the installation.
func (s *Store) ReadInstallation(ctx context.Context) (Installation, error) {
	v, err := scanInstallation(s.db.QueryRow(ctx, "SELECT "+installationTable.selected+" FROM installation t"))
	return v, s.db.ReadError("installation", err)
}
