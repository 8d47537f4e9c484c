package faultdisk

import (
	"bytes"
	"encoding/binary"
	"slices"
	"syscall"
	"testing"
)

// call sends a request as the kernel does, and returns the answer's body.
func call(t *testing.T, d *Disk, op uint32, node uint64, body ...any) ([]byte, syscall.Errno) {
	t.Helper()
	var b bytes.Buffer
	for _, v := range append([]any{uint32(0), op, uint64(77), node, uint32(10), uint32(20), uint32(30), uint32(0)}, body...) {
		if text, ok := v.(string); ok {
			v = append([]byte(text), 0)
		}
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	r, ok := parse(b.Bytes())
	if !ok {
		t.Fatal("the request is not understood")
	}
	answer := d.handle(r)
	le := binary.LittleEndian
	if int(le.Uint32(answer)) != len(answer) || le.Uint64(answer[8:]) != 77 {
		t.Fatalf("the answer's header is % x", answer[:outHeader])
	}
	return answer[outHeader:], syscall.Errno(-int32(le.Uint32(answer[4:])))
}

// Sizes of answers are part of the protocol: the kernel refuses others.
func TestProtocol(t *testing.T) {
	t.Parallel()
	d := New(1)
	le := binary.LittleEndian
	ok := func(size int, op uint32, node uint64, body ...any) []byte {
		t.Helper()
		out, err := call(t, d, op, node, body...)
		if err != 0 || size >= 0 && len(out) != size {
			t.Fatalf("call %d: %v, %d bytes, want %d", op, err, len(out), size)
		}
		return out
	}
	if out := ok(64, opInit, 0, uint32(7), uint32(40), uint32(65536), uint32(0)); le.Uint32(out) != 7 || le.Uint32(out[20:]) != writeMax {
		t.Errorf("init is answered % x", out)
	}
	created := ok(128+16, opCreate, rootID, uint32(0), uint32(0o666), uint32(0o022), uint32(0), "name")
	id := le.Uint64(created)
	if mode := le.Uint32(created[40+60:]); mode != syscall.S_IFREG|0o644 {
		t.Errorf("mode is %o", mode)
	}
	if uid, gid := le.Uint32(created[40+68:]), le.Uint32(created[40+72:]); uid != 10 || gid != 20 {
		t.Errorf("owner is %d, %d", uid, gid)
	}
	text := []byte("some text")
	if out := ok(8, opWrite, id, uint64(0), uint64(3), uint32(len(text)), uint32(0), uint64(0), uint64(0), text); le.Uint32(out) != 9 {
		t.Errorf("written: % x", out)
	}
	if out := ok(12, opRead, id, uint64(0), uint64(0), uint32(100), uint32(0)); string(out) != "\x00\x00\x00some text" {
		t.Errorf("read %q", out)
	}
	if out := ok(104, opGetAttr, id); le.Uint64(out[24:]) != 12 {
		t.Errorf("size is %d", le.Uint64(out[24:]))
	}
	ok(104, opSetAttr, id, uint32(setSize|setMode), uint32(0), uint64(0), uint64(4), [5]uint64{}, uint32(0), uint32(0o600), [4]uint32{})
	if n := d.nodes[id]; string(n.data) != "\x00\x00\x00s" || n.mode != syscall.S_IFREG|0o600 {
		t.Errorf("after setattr: %q, mode %o", n.data, n.mode)
	}
	ok(128, opMkdir, rootID, uint32(0o755), uint32(0), "folder")
	ok(128, opLink, rootID, id, "other")
	ok(0, opRename2, rootID, uint64(rootID), uint64(0), "other", "another")
	ok(0, opFsync, id, uint64(0), uint64(0))
	ok(0, opFsyncDir, rootID, uint64(0), uint64(0))
	ok(80, opStatFS, rootID)
	ok(16, opOpenDir, rootID)
	list := ok(-1, opReadDir, rootID, uint64(0), uint64(0), uint32(4096))
	for _, name := range []string{".", "..", "another", "folder", "name"} {
		if !bytes.Contains(list, []byte(name)) || len(list)%8 != 0 {
			t.Errorf("the list of names lacks %q: %q", name, list)
		}
	}
	if rest := ok(-1, opReadDir, rootID, uint64(0), uint64(4), uint32(4096)); !bytes.Contains(rest, []byte("name")) || bytes.Contains(rest, []byte("folder")) {
		t.Errorf("from the fifth name on: %q", rest)
	}
	ok(0, opUnlink, rootID, "another")
	ok(0, opRmdir, rootID, "folder")
	if _, err := call(t, d, opLookup, rootID, "folder"); err != syscall.ENOENT {
		t.Errorf("what is gone is found: %v", err)
	}
	if _, err := call(t, d, 9999, rootID); err != syscall.ENOSYS {
		t.Errorf("an unknown call: %v", err)
	}
	if r := (request{op: opForget}); d.handle(r) != nil {
		t.Error("a forget is answered")
	}
}

// Pages that come by way of a mapping have their room, whatever the disk says.
func TestMappedWrites(t *testing.T) {
	t.Parallel()
	d := New(1)
	n := file(t, d, "f")
	must(t, d.truncate(n, 6))
	d.SetReadOnly(true)
	body := []any{uint64(0), uint64(4), uint32(4), uint32(writeMapped), uint64(0), uint64(0), []byte("abcd")}
	if out, err := call(t, d, opWrite, n.id, body...); err != 0 || binary.LittleEndian.Uint32(out) != 4 {
		t.Errorf("%v, % x", err, out)
	}
	if !slices.Equal(n.data, []byte("\x00\x00\x00\x00ab")) {
		t.Errorf("it reads %q", n.data)
	}
}
