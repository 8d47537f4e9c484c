package faultdisk

import (
	"bytes"
	"encoding/binary"
	"syscall"
)

// What the kernel asks for, by the numbers of include/uapi/linux/fuse.h.
const (
	opLookup      = 1
	opForget      = 2
	opGetAttr     = 3
	opSetAttr     = 4
	opMkdir       = 9
	opUnlink      = 10
	opRmdir       = 11
	opRename      = 12
	opLink        = 13
	opOpen        = 14
	opRead        = 15
	opWrite       = 16
	opStatFS      = 17
	opRelease     = 18
	opFsync       = 20
	opFlush       = 25
	opInit        = 26
	opOpenDir     = 27
	opReadDir     = 28
	opReleaseDir  = 29
	opFsyncDir    = 30
	opCreate      = 35
	opInterrupt   = 36
	opDestroy     = 38
	opBatchForget = 42
	opRename2     = 45
)

// Sizes and limits of the protocol.
const (
	inHeader   = 40
	outHeader  = 16
	writeMax   = 128 << 10
	requestMax = writeMax + 4096
	nameMax    = 255

	protocolMajor = 7
	protocolMinor = 31
	flagBigWrites = 1 << 5

	// writeMapped marks what was written by way of a mapping.
	writeMapped = 1 << 0

	// Which of a file's attributes are to be set.
	setMode = 1 << 0
	setUID  = 1 << 1
	setGID  = 1 << 2
	setSize = 1 << 3

	// lasting is for how many seconds the kernel may remember names and
	// attributes: nobody else changes them.
	lasting = 3600
)

// request is one call of the kernel.
type request struct {
	op     uint32
	unique uint64
	node   uint64
	uid    uint32
	gid    uint32
	body   []byte
}

func parse(b []byte) (request, bool) {
	if len(b) < inHeader {
		return request{}, false
	}
	le := binary.LittleEndian
	return request{
		op: le.Uint32(b[4:]), unique: le.Uint64(b[8:]), node: le.Uint64(b[16:]),
		uid: le.Uint32(b[24:]), gid: le.Uint32(b[28:]), body: b[inHeader:],
	}, true
}

// u32 and u64 read a field of the body; a short body reads as zero.
func (r *request) u32(at int) uint32 {
	if len(r.body) < at+4 {
		return 0
	}
	return binary.LittleEndian.Uint32(r.body[at:])
}

func (r *request) u64(at int) uint64 {
	if len(r.body) < at+8 {
		return 0
	}
	return binary.LittleEndian.Uint64(r.body[at:])
}

// names reads names that end with a zero, behind the body's fixed part.
func (r *request) names(at int) (first, second string) {
	rest := r.body[min(at, len(r.body)):]
	a, rest, _ := bytes.Cut(rest, []byte{0})
	b, _, _ := bytes.Cut(rest, []byte{0})
	return string(a), string(b)
}

// reply builds an answer.
type reply struct{ b []byte }

func newReply(unique uint64, err syscall.Errno) *reply {
	r := &reply{}
	r.u32(0)
	r.u32(uint32(-int32(err)))
	r.u64(unique)
	return r
}

func (r *reply) u16(v uint16) { r.b = binary.LittleEndian.AppendUint16(r.b, v) }
func (r *reply) u32(v uint32) { r.b = binary.LittleEndian.AppendUint32(r.b, v) }
func (r *reply) u64(v uint64) { r.b = binary.LittleEndian.AppendUint64(r.b, v) }

func (r *reply) zeros(n int) { r.b = append(r.b, make([]byte, n)...) }

// bytes ends the answer: its length leads.
func (r *reply) bytes() []byte {
	binary.LittleEndian.PutUint32(r.b, uint32(len(r.b)))
	return r.b
}

func (r *reply) attributes(n *node) {
	size := uint64(len(n.data))
	r.u64(n.id)
	r.u64(size)
	r.u64(uint64(blocks(len(n.data))) / sector)
	r.zeros(3*8 + 3*4) // times
	r.u32(n.mode)
	r.u32(uint32(max(1, n.links)))
	r.u32(n.uid)
	r.u32(n.gid)
	r.u32(0)
	r.u32(blockSize)
	r.u32(0)
}

func (r *reply) entry(n *node) {
	r.u64(n.id)
	r.u64(0)
	r.u64(lasting)
	r.u64(lasting)
	r.u64(0)
	r.attributes(n)
}

func (r *reply) attributesAlone(n *node) {
	r.u64(lasting)
	r.u64(0)
	r.attributes(n)
}

// opened names no handle: calls name their node.
func (r *reply) opened() { r.zeros(16) }

func (r *reply) initialised(readAhead uint32) {
	r.u32(protocolMajor)
	r.u32(protocolMinor)
	r.u32(readAhead)
	r.u32(flagBigWrites)
	r.u16(64) // requests in the background
	r.u16(48)
	r.u32(writeMax)
	r.u32(1) // granularity of times, ns
	r.zeros(36)
}

func (r *reply) entryOfFolder(id, next uint64, name string, mode uint32) {
	r.u64(id)
	r.u64(next)
	r.u32(uint32(len(name)))
	r.u32(mode >> 12)
	r.b = append(r.b, name...)
	r.zeros((8 - len(name)%8) % 8)
}
