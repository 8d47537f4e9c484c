package faultdisk

import (
	"slices"
	"syscall"

	"github.com/porteira/porteira/internal/env"
)

const rootID = 1

// node is a file or a folder: its current state and its durable state.
type node struct {
	id     uint64
	name   string // the latest, for faults that are set by name
	mode   uint32
	uid    uint32
	gid    uint32
	links  int
	opened int
	slow   []int // delay steps left for its next fsyncs, in any order

	data    []byte
	stable  []byte
	pending []change // from stable to data, in order

	children       map[string]uint64 // nil for a file
	stableChildren map[string]uint64
	renames        []func(map[string]uint64)
}

// change is one write; if data is nil, the file was truncated or grown to at.
type change struct {
	at   int
	data []byte
}

func (c change) apply(to *[]byte) {
	if c.data == nil {
		*to = resize(*to, c.at)
		return
	}
	*to = resize(*to, max(len(*to), c.at+len(c.data)))
	copy((*to)[c.at:], c.data)
}

// sector is the unit, in bytes, that a disk writes atomically.
const sector = 512

// persist applies the durable part of a change, and returns 1 if any of it was lost.
func (c change) persist(random env.Random, n *node) (lost int64) {
	switch {
	case random.Int64N(3) == 0:
		return 1
	case c.data == nil || random.Int64N(2) == 0:
		c.apply(&n.stable)
		return 0
	}
	n.stable = resize(n.stable, max(len(n.stable), c.at+len(c.data)))
	for from := 0; from < len(c.data); {
		to := min(len(c.data), (c.at+from)/sector*sector+sector-c.at)
		if random.Int64N(2) == 0 {
			copy(n.stable[c.at+from:], c.data[from:to])
		}
		from = to
	}
	return 1
}

func resize(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size]
	}
	old := len(b)
	b = slices.Grow(b, size-old)[:size]
	clear(b[old:])
	return b
}

func (d *Disk) add(n *node) *node {
	n.id = d.next
	d.next++
	d.nodes[n.id] = n
	return n
}

// folder returns an existing folder.
func (d *Disk) folder(id uint64) (*node, syscall.Errno) {
	n := d.nodes[id]
	if n == nil {
		return nil, syscall.ENOENT
	}
	if n.children == nil {
		return nil, syscall.ENOTDIR
	}
	return n, 0
}

// persist makes the changes of a node durable.
func (n *node) persist() {
	for _, w := range n.pending {
		w.apply(&n.stable)
	}
	for _, rename := range n.renames {
		rename(n.stableChildren)
	}
	n.pending, n.renames = nil, nil
}

// link adds a name to a folder; unlink removes one. Both become durable with the
// next sync of the folder.
func (n *node) link(name string, child *node) {
	child.name = name
	child.links++
	n.rename(func(names map[string]uint64) { names[name] = child.id })
}

func (n *node) unlink(name string) {
	n.rename(func(names map[string]uint64) { delete(names, name) })
}

func (n *node) rename(change func(map[string]uint64)) {
	change(n.children)
	n.renames = append(n.renames, change)
}

// release frees the space of a file that has neither a name nor an open handle.
// A power cut may undo the removal until its folder is synced, so the stable bytes
// stay.
func (d *Disk) release(n *node) {
	if n.links == 0 && n.opened == 0 && n.data != nil {
		d.used -= blocks(len(n.data))
		n.data = nil
	}
}

// make adds a file or a folder.
func (d *Disk) make(parent uint64, name string, mode, uid, gid uint32) (*node, syscall.Errno) {
	p, err := d.folder(parent)
	if err != 0 {
		return nil, err
	}
	if _, taken := p.children[name]; taken {
		return nil, syscall.EEXIST
	}
	if err := d.refuse(); err != 0 {
		return nil, err
	}
	n := d.add(&node{mode: mode, uid: uid, gid: gid, data: []byte{}})
	if mode&syscall.S_IFMT == syscall.S_IFDIR {
		n.children, n.stableChildren = map[string]uint64{}, map[string]uint64{}
	}
	p.link(name, n)
	return n, 0
}

// write writes as much as there is space for.
func (d *Disk) write(n *node, at int, p []byte) (int, syscall.Errno) {
	if err := d.refuse(); err != 0 {
		return 0, err
	}
	if allowed := d.allocate(n, at+len(p)); allowed < at+len(p) {
		if allowed <= at {
			return 0, syscall.ENOSPC
		}
		p = p[:allowed-at]
	}
	d.change(n, change{at, slices.Clone(p)})
	return len(p), 0
}

// truncate sets the size of a file.
func (d *Disk) truncate(n *node, size int) syscall.Errno {
	if err := d.refuse(); err != 0 {
		return err
	}
	if d.allocate(n, size) < size {
		return syscall.ENOSPC
	}
	d.change(n, change{size, nil})
	return 0
}

func (d *Disk) change(n *node, c change) {
	before := blocks(len(n.data))
	c.apply(&n.data)
	d.used += blocks(len(n.data)) - before
	n.pending = append(n.pending, c)
}

// remove removes a name.
func (d *Disk) remove(parent uint64, name string, folder bool) syscall.Errno {
	p, err := d.folder(parent)
	if err != 0 {
		return err
	}
	n := d.nodes[p.children[name]]
	switch {
	case n == nil:
		return syscall.ENOENT
	case folder && n.children == nil:
		return syscall.ENOTDIR
	case !folder && n.children != nil:
		return syscall.EISDIR
	case len(n.children) > 0:
		return syscall.ENOTEMPTY
	}
	if err := d.refuse(); err != 0 {
		return err
	}
	p.unlink(name)
	n.links--
	d.release(n)
	return 0
}

// move renames a node, and replaces a node of the new name.
func (d *Disk) move(from uint64, name string, to uint64, newName string) syscall.Errno {
	p, err := d.folder(from)
	if err != 0 {
		return err
	}
	q, err := d.folder(to)
	if err != 0 {
		return err
	}
	n := d.nodes[p.children[name]]
	if n == nil {
		return syscall.ENOENT
	}
	if err := d.refuse(); err != 0 {
		return err
	}
	old := d.nodes[q.children[newName]]
	if old == n {
		return 0
	}
	if old != nil && len(old.children) > 0 {
		return syscall.ENOTEMPTY
	}
	if p == q { // one change of the folder: a crash leaves exactly one of both names
		n.name = newName
		p.rename(func(names map[string]uint64) {
			names[newName] = n.id
			delete(names, name)
		})
	} else {
		q.link(newName, n)
		p.unlink(name)
		n.links--
	}
	if old != nil {
		old.links--
		d.release(old)
	}
	return 0
}
