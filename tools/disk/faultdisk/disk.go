// Package faultdisk is a disk in memory that fails as it is told: it is full,
// read-only or slow, an fsync of it fails, or its power is cut and what was not
// synced is lost or torn. FUSE mounts it, so that a program which knows nothing
// of it can be tried on it.
package faultdisk

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// blockSize is in what portions room is taken.
const blockSize = 4096

// Counts tell which faults have fired: one that never did proves nothing.
type Counts struct {
	Syncs       int64 // fsyncs that succeeded, of files and folders
	FailedSyncs int64 // fsyncs that failed
	Full        int64 // calls refused for want of room
	ReadOnly    int64 // calls refused as nothing may be written
	Slow        int64 // fsyncs that were delayed
	Lost        int64 // writes that a power cut undid, wholly or in part
}

// Disk is a file system. Its methods may be called while it is mounted.
type Disk struct {
	mu       sync.Mutex
	nodes    map[uint64]*node
	next     uint64
	used     int64
	capacity int64 // 0 has no end
	readOnly bool
	slowest  time.Duration
	failing  []*failingSync
	counts   Counts
	thaw     chan struct{} // not nil while frozen
	random   env.Random
	clock    env.Clock
}

type failingSync struct {
	suffix string
	left   int
	frozen chan struct{} // closed when the last one has failed; nil where the disk goes on
}

// New returns an empty disk. The seed decides how slow it is within its bounds,
// and what a power cut leaves.
func New(seed uint64) *Disk {
	d := &Disk{nodes: map[uint64]*node{}, next: rootID, random: env.SeededRandom(seed), clock: env.NewSystemClock()}
	d.add(&node{mode: syscall.S_IFDIR | 0o755, children: map[string]uint64{}, stableChildren: map[string]uint64{}})
	return d
}

// Limit makes the disk hold this many bytes and no more; 0 has no end. A disk
// that holds more already is full.
func (d *Disk) Limit(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = bytes
}

// Used is how many bytes its files take up.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used
}

// SetReadOnly makes every change fail with EROFS, or ends that.
func (d *Disk) SetReadOnly(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readOnly = on
}

// slowSteps is into how many parts the time of slow fsyncs is divided: of as
// many in a row of one file each has another, in an order that is drawn. So any
// few dozens of them are equally slow, and what is measured in half a minute of
// them can be compared with the half minute after.
const slowSteps = 8

// Slow makes each fsync take up to this long, and half of it at the least.
func (d *Disk) Slow(most time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slowest = most
}

// FailSyncs lets the next fsyncs of files whose name ends in suffix fail with
// EIO. As on Linux, what was to be synced is dropped: it can still be read, the
// next fsync succeeds without it, and a power cut shows that it is gone.
func (d *Disk) FailSyncs(suffix string, times int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failing = append(d.failing, &failingSync{suffix: suffix, left: times})
}

// FailSyncAndFreeze lets the next fsync of such a file fail, and freezes the
// disk there and then: whoever is killed now has done nothing since.
func (d *Disk) FailSyncAndFreeze(suffix string) (frozen <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &failingSync{suffix, 1, make(chan struct{})}
	d.failing = append(d.failing, f)
	return f.frozen
}

// Counts returns which faults have fired so far.
func (d *Disk) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

// Freeze keeps every call that comes from now on from being answered, as the
// last moment before a power cut. Fail them when the programs that wait for
// them have been killed.
func (d *Disk) Freeze() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.freeze()
}

func (d *Disk) freeze() {
	if d.thaw == nil {
		d.thaw = make(chan struct{})
	}
}

// FailFrozen fails the calls that were frozen, and all that come until Thaw.
func (d *Disk) FailFrozen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.thaw)
}

// Thaw lets a disk that was frozen go on.
func (d *Disk) Thaw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.thaw = nil
}

// enter waits while the disk is frozen, and fails calls that had to.
func (d *Disk) enter() syscall.Errno {
	d.mu.Lock()
	thaw := d.thaw
	d.mu.Unlock()
	if thaw == nil {
		return 0
	}
	<-thaw
	return syscall.EIO
}

// PowerCut undoes what was never synced: each write since the last sync of its
// file is kept, lost, or torn at a sector. Folders keep a part of what was done
// to them, in its order. The disk must not be mounted.
func (d *Disk) PowerCut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.thaw = nil
	for _, id := range slices.Sorted(maps.Keys(d.nodes)) { // in one order, for the seed's sake
		n := d.nodes[id]
		for _, w := range n.pending {
			d.counts.Lost += w.survive(d.random, n)
		}
		n.pending = nil
		n.data = append([]byte(nil), n.stable...)
		for len(n.renames) > 0 && d.random.Int64N(2) == 0 {
			n.renames[0](n.stableChildren)
			n.renames = n.renames[1:]
		}
		n.renames = nil
		if n.children != nil {
			n.children = maps.Clone(n.stableChildren)
		}
	}
	d.sweep()
}

// sweep forgets files that no folder names, and counts the others.
func (d *Disk) sweep() {
	linked := map[uint64]int{rootID: 1}
	for _, n := range d.nodes {
		for _, id := range n.children {
			linked[id]++
		}
	}
	d.used = 0
	for id, n := range d.nodes {
		if n.links = linked[id]; n.links == 0 {
			delete(d.nodes, id)
			continue
		}
		n.opened = 0
		d.used += blocks(len(n.data))
	}
}

// drawSlowness draws what an fsync of a file takes beyond the least; the caller
// holds the lock.
func (d *Disk) drawSlowness(n *node) time.Duration {
	if len(n.slow) == 0 {
		for step := range slowSteps {
			n.slow = append(n.slow, step)
		}
	}
	drawn := int(d.random.Int64N(int64(len(n.slow))))
	step := n.slow[drawn]
	n.slow = slices.Delete(n.slow, drawn, drawn+1)
	part := d.slowest / 2 / slowSteps
	return time.Duration(step)*part + time.Duration(d.random.Int64N(int64(part)+1))
}

// sync makes what was written to a file, or done to a folder, durable.
func (d *Disk) sync(id uint64) syscall.Errno {
	d.mu.Lock()
	var wait time.Duration
	if n := d.nodes[id]; n != nil && d.slowest > 0 {
		wait = d.slowest/2 + d.drawSlowness(n)
		d.counts.Slow++
	}
	d.mu.Unlock()
	if wait > 0 {
		<-d.clock.NewTimer(wait).C()
	}
	if err := d.enter(); err != 0 { // frozen meanwhile
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.nodes[id]
	if n == nil {
		return syscall.ENOENT
	}
	if d.readOnly && (len(n.pending) > 0 || len(n.renames) > 0) {
		d.counts.ReadOnly++
		return syscall.EROFS
	}
	if d.syncFails(n) {
		return syscall.EIO
	}
	n.settle()
	d.counts.Syncs++
	return 0
}

// SyncAll makes all durable that was ever done, as time would.
func (d *Disk) SyncAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.nodes {
		n.settle()
	}
}

// syncFails drops what was to be synced, if this sync is to fail.
func (d *Disk) syncFails(n *node) bool {
	for _, f := range d.failing {
		if f.left > 0 && n.children == nil && strings.HasSuffix(n.name, f.suffix) {
			f.left--
			n.pending = nil
			d.counts.FailedSyncs++
			if f.frozen != nil {
				d.freeze()
				close(f.frozen)
			}
			return true
		}
	}
	return false
}

// refuse says why nothing may be written now; 0 where it may.
func (d *Disk) refuse() syscall.Errno {
	if d.readOnly {
		d.counts.ReadOnly++
		return syscall.EROFS
	}
	return 0
}

// take finds room for a file to grow, and says how long it may become.
func (d *Disk) take(n *node, size int) (allowed int) {
	if size <= len(n.data) {
		return size
	}
	grow := blocks(size) - blocks(len(n.data))
	if d.capacity > 0 && d.used+grow > d.capacity {
		d.counts.Full++
		free := max(0, d.capacity-d.used)
		return max(len(n.data), min(size, int(blocks(len(n.data))+free/blockSize*blockSize)))
	}
	return size
}

func blocks(size int) int64 { return (int64(size) + blockSize - 1) / blockSize * blockSize }
