package faultdisk

import (
	"encoding/binary"
	"slices"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// caller is the header of a call on a node by a user.
func caller(node uint64) fuse.InHeader {
	return fuse.InHeader{NodeId: node, Caller: fuse.Caller{Owner: fuse.Owner{Uid: 10, Gid: 20}}}
}

func names(t *testing.T, f *fileSystem, offset uint64) []string {
	t.Helper()
	buffer := make([]byte, 4096)
	out := fuse.NewDirEntryList(buffer, offset)
	in := fuse.ReadIn{InHeader: caller(rootID), Offset: offset, Size: uint32(len(buffer))}
	if status := f.ReadDir(nil, &in, out); !status.Ok() {
		t.Fatal(status)
	}
	// An entry of the protocol: node, offset, length of the name, type, name, padding.
	var list []string
	for rest := buffer; ; {
		length := int(binary.NativeEndian.Uint32(rest[16:]))
		if length == 0 {
			return list
		}
		list = append(list, string(rest[24:24+length]))
		rest = rest[(24+length+7)/8*8:]
	}
}

// Each call of the kernel reaches the disk with its arguments, and the answer is
// the disk's.
func TestFileSystem(t *testing.T) {
	t.Parallel()
	d := New(1)
	f := newFileSystem(d)
	root := caller(rootID)
	ok := func(status fuse.Status) {
		t.Helper()
		if !status.Ok() {
			t.Fatal(status)
		}
	}
	var created fuse.CreateOut
	ok(f.Create(nil, &fuse.CreateIn{InHeader: root, Mode: 0o666, Umask: 0o022}, "name", &created))
	id := created.NodeId
	if a := created.Attr; a.Mode != syscall.S_IFREG|0o644 || a.Uid != 10 || a.Gid != 20 {
		t.Errorf("created: %+v", a)
	}
	if count, status := f.Write(nil, &fuse.WriteIn{InHeader: caller(id), Offset: 3}, []byte("some text")); count != 9 || !status.Ok() {
		t.Errorf("written: %d, %v", count, status)
	}
	result, status := f.Read(nil, &fuse.ReadIn{InHeader: caller(id), Size: 100}, make([]byte, 200))
	ok(status)
	if text, _ := result.Bytes(nil); string(text) != "\x00\x00\x00some text" {
		t.Errorf("read %q", text)
	}
	var out fuse.AttrOut
	ok(f.GetAttr(nil, &fuse.GetAttrIn{InHeader: caller(id)}, &out))
	if out.Attr.Size != 12 || out.Attr.Ino != id {
		t.Errorf("attributes: %+v", out.Attr)
	}
	set := fuse.SetAttrIn{}
	set.InHeader, set.Valid, set.Size, set.Mode = caller(id), fuse.FATTR_SIZE|fuse.FATTR_MODE, 4, 0o600
	ok(f.SetAttr(nil, &set, &out))
	if n := d.nodes[id]; string(n.data) != "\x00\x00\x00s" || n.mode != syscall.S_IFREG|0o600 {
		t.Errorf("after setattr: %q, mode %o", n.data, n.mode)
	}
	var entry fuse.EntryOut
	ok(f.Mkdir(nil, &fuse.MkdirIn{InHeader: root, Mode: 0o755}, "folder", &entry))
	ok(f.Link(nil, &fuse.LinkIn{InHeader: root, Oldnodeid: id}, "other", &entry))
	ok(f.Rename(nil, &fuse.RenameIn{InHeader: root, Newdir: rootID}, "other", "another"))
	ok(f.Fsync(nil, &fuse.FsyncIn{InHeader: caller(id)}))
	ok(f.FsyncDir(nil, &fuse.FsyncIn{InHeader: root}))
	if d.counts.Syncs != 2 {
		t.Errorf("%d syncs", d.counts.Syncs)
	}
	if list := names(t, f, 0); !slices.Equal(list, []string{".", "..", "another", "folder", "name"}) {
		t.Errorf("names: %q", list)
	}
	if list := names(t, f, 4); !slices.Equal(list, []string{"name"}) {
		t.Errorf("from the fifth name on: %q", list)
	}
	ok(f.Unlink(nil, &root, "another"))
	ok(f.Rmdir(nil, &root, "folder"))
	if status := f.Lookup(nil, &root, "folder", &entry); status != fuse.ENOENT {
		t.Errorf("a removed name: %v", status)
	}
	if status := f.Mknod(nil, &fuse.MknodIn{InHeader: root}, "device", &entry); status != fuse.ENOSYS {
		t.Errorf("an unknown call: %v", status)
	}
}
