// Package faultdisk is a disk in memory with faults on demand: it is full,
// read-only or slow, an fsync fails, or the power is cut and writes that were not
// synced are lost or torn. FUSE mounts it, so any program can run on it unchanged.
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

// blockSize is the unit of allocation, in bytes.
const blockSize = 4096

// Counts are the numbers of faults that have fired.
type Counts struct {
	Syncs       int64 // fsyncs that succeeded, of files and folders
	FailedSyncs int64 // fsyncs that failed
	Full        int64 // calls refused because the disk was full
	ReadOnly    int64 // calls refused because the disk was read-only
	Slow        int64 // fsyncs that were delayed
	Lost        int64 // writes that a power cut undid, fully or in part
}

// Disk is a file system. Its methods may be called while it is mounted.
type Disk struct {
	mu       sync.Mutex
	nodes    map[uint64]*node
	next     uint64
	used     int64
	capacity int64 // 0 is unlimited
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
	frozen chan struct{} // closed when the last one has failed; nil if the disk keeps working
}

// New returns an empty disk. The seed determines the delays of a slow disk and
// which writes survive a power cut.
func New(seed uint64) *Disk {
	d := &Disk{nodes: map[uint64]*node{}, next: rootID, random: env.SeededRandom(seed), clock: env.NewSystemClock()}
	d.add(&node{mode: syscall.S_IFDIR | 0o755, children: map[string]uint64{}, stableChildren: map[string]uint64{}})
	return d
}

// Limit sets the capacity in bytes; 0 is unlimited. A disk that already stores
// more is full.
func (d *Disk) Limit(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = bytes
}

// Used is the size of its files in bytes.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used
}

// SetReadOnly makes every change fail with EROFS, or allows changes again.
func (d *Disk) SetReadOnly(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readOnly = on
}

// slowSteps is the number of steps into which the delay of slow fsyncs is divided.
// Each step occurs once in as many consecutive fsyncs of a file, in random order:
// so the mean delay of a few dozen fsyncs is stable, and measurements of half a
// minute can be compared.
const slowSteps = 8

// Slow makes each fsync take between half of most and most; 0 ends that.
func (d *Disk) Slow(most time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slowest = most
}

// FailSyncs makes the next fsyncs of files whose name ends in suffix fail with
// EIO. As on Linux, the unsynced writes are dropped: they can still be read, the
// next fsync succeeds without them, and they are gone after a power cut.
func (d *Disk) FailSyncs(suffix string, times int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failing = append(d.failing, &failingSync{suffix: suffix, left: times})
}

// FailSyncAndFreeze makes the next fsync of such a file fail and freezes the disk
// at the same time: a process that is killed then has done nothing after the
// failure. The channel is closed when the disk is frozen.
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

// Freeze blocks every later call, as the instant before a power cut. Call
// FailFrozen once the processes that wait for these calls have been killed.
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

// FailFrozen fails the blocked calls with EIO, and all later calls until Thaw.
func (d *Disk) FailFrozen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.thaw)
}

// Thaw makes a frozen disk work again.
func (d *Disk) Thaw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.thaw = nil
}

// enter blocks while the disk is frozen, and fails calls that were blocked.
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

// PowerCut undoes changes that were not synced: each write since the last sync of
// its file survives, is lost, or is torn at a sector. Folders keep a prefix of
// their unsynced changes. The disk must not be mounted.
func (d *Disk) PowerCut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.thaw = nil
	for _, id := range slices.Sorted(maps.Keys(d.nodes)) { // in one order, so that the seed determines the outcome
		n := d.nodes[id]
		for _, w := range n.pending {
			d.counts.Lost += w.persist(d.random, n)
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

// sweep removes files that no folder names, and counts the links of the others.
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

// extraDelay draws the delay of an fsync beyond the least one. d.mu is locked.
func (d *Disk) extraDelay(n *node) time.Duration {
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

// sync makes the changes of a file or a folder durable.
func (d *Disk) sync(id uint64) syscall.Errno {
	d.mu.Lock()
	var wait time.Duration
	if n := d.nodes[id]; n != nil && d.slowest > 0 {
		wait = d.slowest/2 + d.extraDelay(n)
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
	n.persist()
	d.counts.Syncs++
	return 0
}

// SyncAll makes every change durable.
func (d *Disk) SyncAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.nodes {
		n.persist()
	}
}

// syncFails reports whether this sync fails, and if so drops the unsynced writes.
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

// refuse returns why nothing may be written now, 0 if it may.
func (d *Disk) refuse() syscall.Errno {
	if d.readOnly {
		d.counts.ReadOnly++
		return syscall.EROFS
	}
	return 0
}

// allocate allocates space for a file to grow, and returns the size that it may reach.
func (d *Disk) allocate(n *node, size int) (allowed int) {
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
