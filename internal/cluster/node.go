// Package cluster implements nodes, heartbeats, leases, the epoch, and the detection
// of a restored backup.
//
// Every process registers as a node, under whose id it claims work. Its heartbeat
// increments the node's counter and the installation's epoch. The epoch is also kept
// outside the database: a database with a lower epoch is a restored backup, or a replica
// that lacks the latest commits. A node whose heartbeat stops for [deadAfter] is declared
// dead, and its claims are released.
package cluster

import (
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

// A node writes a heartbeat every second, sends nothing leaseTime after the last one, and
// is declared dead deadAfter after it. The difference is a margin for a call in flight.
const (
	leaseTime = 2500 * time.Millisecond
	deadAfter = 3 * time.Second
)

// Node is the identity under which this process claims work: its id, its lease, and
// whether the database was restored. It is safe for concurrent use.
type Node struct {
	Lease *Lease

	mu            sync.Mutex
	id            payment.ID
	epoch         int64 // of the installation, the last one seen
	lastHeartbeat int64 // of this process under its id, the last one
	restoredAt    time.Time
	provedAt      time.Time
	history       int64           // of the database
	cleared       map[string]bool // accounts whose payouts need not wait
	claimsUnknown bool
	wallClock     time.Time // at the monotonic clock's zero, as of the last heartbeat, or of Join
}

// NewNode returns a node that has not joined: its id is zero and it claims nothing.
func NewNode(clock env.Clock) *Node { return &Node{Lease: NewLease(clock, leaseTime)} }

// ID is the id under which this process claims work; zero before Join.
func (n *Node) ID() payment.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id
}

// heartbeat is the operation of the next heartbeat.
func (n *Node) heartbeat() *heartbeat {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &heartbeat{node: n.id, seen: n.epoch, last: n.lastHeartbeat}
}

// recordHeartbeat records a heartbeat that was committed. An earlier one, or one under a previous id,
// may be recorded after it.
func (n *Node) recordHeartbeat(op *heartbeat) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.epoch = op.after.Epoch
	if n.id == op.node && (op.rewound || op.next > n.lastHeartbeat) {
		n.lastHeartbeat = op.next
	}
}

// RestoredAt is the time at which the database's history began, UTC: the last cold start, which may
// be a restore. It is zero if there was none.
func (n *Node) RestoredAt() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.restoredAt
}

// ProvedAt is the time at which the database was last proved to be an older copy, UTC; zero if never.
func (n *Node) ProvedAt() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.provedAt
}

// History is the number of the database's history, which increases with each cold start and each
// restore; 0 if there was none.
func (n *Node) History() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.history
}

// Frozen reports whether the payouts of an account wait after a cold start, because the account's
// transfers are not read yet.
func (n *Node) Frozen(account string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.history > 0 && !n.cleared[account]
}

// BeginHistory records a history that this process has begun, because a transfer proved that
// the database is an older copy. Other processes see it with their next heartbeat.
func (n *Node) BeginHistory(history int64, restoredAt time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.history, n.restoredAt, n.provedAt, n.cleared = history, restoredAt, restoredAt, map[string]bool{}
}

// Epoch is the highest epoch that this process has seen.
func (n *Node) Epoch() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.epoch
}

// ClaimsUnknown records that the outcome of a commit with claims is unknown: this process
// may own claims that it has not recorded. It will join again under a new id.
func (n *Node) ClaimsUnknown() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.claimsUnknown = true
}
