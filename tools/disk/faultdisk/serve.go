package faultdisk

import (
	"slices"
	"sort"
	"syscall"
)

// handle answers one call; nil answers nothing.
func (d *Disk) handle(r request) []byte {
	switch r.op {
	case opForget, opBatchForget, opInterrupt:
		return nil
	case opInit:
		out := newReply(r.unique, 0)
		out.initialised(r.u32(8))
		return out.bytes()
	case opDestroy, opFlush:
		return newReply(r.unique, 0).bytes()
	case opFsync, opFsyncDir:
		return newReply(r.unique, d.sync(r.node)).bytes()
	}
	if err := d.enter(); err != 0 {
		return newReply(r.unique, err).bytes()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	out := newReply(r.unique, 0)
	if err := d.answer(&r, out); err != 0 {
		return newReply(r.unique, err).bytes()
	}
	return out.bytes()
}

// answer does what a call asks for; the lock is held.
func (d *Disk) answer(r *request, out *reply) syscall.Errno {
	switch r.op {
	case opLookup, opCreate, opMkdir, opLink:
		return d.answerName(r, out)
	case opUnlink, opRmdir:
		name, _ := r.names(0)
		return d.remove(r.node, name, r.op == opRmdir)
	case opRename:
		from, to := r.names(8)
		return d.move(r.node, from, r.u64(0), to)
	case opRename2:
		if r.u32(8) != 0 {
			return syscall.EINVAL
		}
		from, to := r.names(16)
		return d.move(r.node, from, r.u64(0), to)
	case opStatFS:
		d.answerStat(out)
		return 0
	}
	n := d.nodes[r.node]
	if n == nil {
		return syscall.ENOENT
	}
	switch r.op {
	case opGetAttr:
		out.attributesAlone(n)
	case opSetAttr:
		if err := d.setAttributes(n, r); err != 0 {
			return err
		}
		out.attributesAlone(n)
	case opOpen, opOpenDir:
		n.opened++
		out.opened()
	case opRelease, opReleaseDir:
		n.opened--
		d.release(n)
	case opRead:
		at := min(int(r.u64(8)), len(n.data))
		out.b = append(out.b, n.data[at:min(len(n.data), at+int(r.u32(16)))]...)
	case opWrite:
		at, p := int(r.u64(8)), r.body[min(40, len(r.body)):]
		if r.u32(20)&writeMapped != 0 { // into room that it has, and programs do not hear of it
			d.change(n, change{at, slices.Clone(p[:min(len(p), max(0, len(n.data)-at))])})
			out.u64(uint64(len(p)))
			return 0
		}
		count, err := d.write(n, at, p)
		if err != 0 {
			return err
		}
		out.u64(uint64(count))
	case opReadDir:
		d.list(n, int(r.u64(8)), int(r.u32(16)), out)
	default:
		return syscall.ENOSYS
	}
	return 0
}

// answerName answers calls that end in a node with a name.
func (d *Disk) answerName(r *request, out *reply) syscall.Errno {
	var n *node
	var err syscall.Errno
	switch r.op {
	case opLookup:
		name, _ := r.names(0)
		p, err := d.folder(r.node)
		if err != 0 {
			return err
		}
		if n = d.nodes[p.children[name]]; n == nil {
			return syscall.ENOENT
		}
	case opCreate:
		name, _ := r.names(16)
		if n, err = d.make(r.node, name, syscall.S_IFREG|r.u32(4)&^r.u32(8)&0o7777, r.uid, r.gid); err != 0 {
			return err
		}
		n.opened++
		out.entry(n)
		out.opened()
		return 0
	case opMkdir:
		name, _ := r.names(8)
		if n, err = d.make(r.node, name, syscall.S_IFDIR|r.u32(0)&^r.u32(4)&0o7777, r.uid, r.gid); err != 0 {
			return err
		}
	case opLink:
		name, _ := r.names(8)
		p, err := d.folder(r.node)
		if err != 0 {
			return err
		}
		if n = d.nodes[r.u64(0)]; n == nil {
			return syscall.ENOENT
		}
		if _, taken := p.children[name]; taken {
			return syscall.EEXIST
		}
		if err := d.refuse(); err != 0 {
			return err
		}
		p.link(name, n)
	}
	out.entry(n)
	return 0
}

// setAttributes changes size, owner and mode; who may is the kernel's to say.
func (d *Disk) setAttributes(n *node, r *request) syscall.Errno {
	valid := r.u32(0)
	if valid&setSize != 0 {
		if err := d.truncate(n, int(r.u64(16))); err != 0 {
			return err
		}
	}
	if valid&(setMode|setUID|setGID) == 0 {
		return 0
	}
	if err := d.refuse(); err != 0 {
		return err
	}
	if valid&setMode != 0 {
		n.mode = n.mode&syscall.S_IFMT | r.u32(68)&0o7777
	}
	if valid&setUID != 0 {
		n.uid = r.u32(76)
	}
	if valid&setGID != 0 {
		n.gid = r.u32(80)
	}
	return 0
}

func (d *Disk) answerStat(out *reply) {
	total, free := uint64(1<<20), uint64(1<<20)
	if d.capacity > 0 {
		total = uint64(d.capacity / blockSize)
		free = uint64(max(0, d.capacity-d.used) / blockSize)
	}
	for _, v := range []uint64{total, free, free, 1 << 20, 1 << 20} {
		out.u64(v)
	}
	out.u32(blockSize)
	out.u32(nameMax)
	out.u32(blockSize)
	out.zeros(4 + 24)
}

// list answers with the names of a folder from the offset on.
func (d *Disk) list(n *node, offset, size int, out *reply) {
	names := make([]string, 0, len(n.children))
	for name := range n.children {
		names = append(names, name)
	}
	sort.Strings(names)
	names = slices.Insert(names, 0, ".", "..")
	for i := offset; i < len(names); i++ {
		id, mode := n.id, uint32(syscall.S_IFDIR)
		if i > 1 {
			child := d.nodes[n.children[names[i]]]
			if child == nil {
				continue
			}
			id, mode = child.id, child.mode
		}
		if len(out.b)-outHeader+24+len(names[i])+7 > size {
			return
		}
		out.entryOfFolder(id, uint64(i)+1, names[i], mode)
	}
}
