package faultdisk

import (
	"bytes"
	"fmt"
	"slices"
	"syscall"
	"testing"
)

// must ends the test if a call fails.
func must(t *testing.T, err syscall.Errno) {
	t.Helper()
	if err != 0 {
		t.Fatal(err)
	}
}

// file makes a file whose name is durable.
func file(t *testing.T, d *Disk, name string) *node {
	t.Helper()
	n, err := d.make(rootID, name, syscall.S_IFREG|0o600, 0, 0)
	must(t, err)
	must(t, d.sync(rootID))
	return n
}

func write(t *testing.T, d *Disk, n *node, at int, text string) {
	t.Helper()
	if count, err := d.write(n, at, []byte(text)); count != len(text) || err != 0 {
		t.Fatalf("wrote %d of %d, %v", count, len(text), err)
	}
}

// find reads a file by its name; nil if there is none.
func find(d *Disk, name string) []byte {
	if n := d.nodes[d.nodes[rootID].children[name]]; n != nil {
		return n.data
	}
	return nil
}

// A power cut keeps synced writes; of the others it keeps some, loses some, and tears
// some.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	const old, fresh = 'a', 'b'
	kept, lost, torn := 0, 0, 0
	for seed := range uint64(100) {
		d := New(seed)
		n := file(t, d, "f")
		write(t, d, n, 0, string(bytes.Repeat([]byte{old}, 3*sector)))
		must(t, d.sync(n.id))
		write(t, d, n, sector, string(bytes.Repeat([]byte{fresh}, 2*sector)))
		d.PowerCut()
		got := find(d, "f")
		if len(got) != 3*sector || bytes.ContainsRune(got[:sector], fresh) {
			t.Fatalf("seed %d: the synced part is %q", seed, got)
		}
		switch bytes.Count(got, []byte{fresh}) {
		case 2 * sector:
			kept++
		case 0:
			lost++
		case sector:
			torn++
		default:
			t.Fatalf("seed %d: torn within a sector", seed)
		}
		if d.Counts().Lost == 0 && bytes.Count(got, []byte{fresh}) < 2*sector {
			t.Fatalf("seed %d: a loss is not counted", seed)
		}
	}
	if kept == 0 || lost == 0 || torn == 0 {
		t.Errorf("kept %d, lost %d, torn %d times: each must happen", kept, lost, torn)
	}
}

// Names are durable once their folder is synced, and changed in order.
func TestPowerCutOfNames(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(100) {
		d := New(seed)
		n := file(t, d, "old")
		write(t, d, n, 0, "x")
		must(t, d.sync(n.id))
		must(t, d.move(rootID, "old", rootID, "new"))
		_, err := d.make(rootID, "later", syscall.S_IFREG|0o600, 0, 0)
		must(t, err)
		d.PowerCut()
		var names []string
		for name := range d.nodes[rootID].children {
			names = append(names, name)
		}
		slices.Sort(names)
		seen[fmt.Sprint(names)]++
		if string(find(d, "old"))+string(find(d, "new")) != "x" {
			t.Fatalf("seed %d: the renamed file has no name, or two: %v", seed, names)
		}
	}
	for _, names := range []string{"[old]", "[new]", "[later new]"} {
		if seen[names] == 0 {
			t.Errorf("never %s: %v", names, seen)
		}
	}
	if len(seen) != 3 {
		t.Errorf("a later change came without an earlier one: %v", seen)
	}
}

// The writes before a failed sync can be read, the next sync succeeds without them, and
// they are gone after a power cut.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	d := New(1)
	n, other := file(t, d, "data.wal"), file(t, d, "data")
	d.FailSyncs(".wal", 1)
	write(t, d, other, 0, "other")
	must(t, d.sync(other.id))
	write(t, d, n, 0, "lost")
	if err := d.sync(n.id); err != syscall.EIO {
		t.Errorf("the sync that is to fail: %v", err)
	}
	write(t, d, n, 4, "kept")
	must(t, d.sync(n.id))
	if got := find(d, "data.wal"); string(got) != "lostkept" {
		t.Errorf("before the power cut it reads %q", got)
	}
	d.PowerCut()
	if got := find(d, "data.wal"); string(got) != "\x00\x00\x00\x00kept" {
		t.Errorf("afterwards it reads %q", got)
	}
	if got := d.Counts(); got.FailedSyncs != 1 || got.Syncs != 4 {
		t.Errorf("%+v", got)
	}
}
