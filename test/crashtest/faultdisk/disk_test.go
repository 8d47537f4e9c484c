package faultdisk

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
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

func TestFull(t *testing.T) {
	t.Parallel()
	d := New(1)
	n := file(t, d, "f")
	d.Limit(2 * blockSize)
	write(t, d, n, 0, string(make([]byte, blockSize+1)))
	write(t, d, n, 0, "over old data") // takes no space
	if count, err := d.write(n, blockSize, make([]byte, 2*blockSize)); count != blockSize || err != 0 {
		t.Errorf("a write that fits in part: %d, %v", count, err)
	}
	if count, err := d.write(n, 2*blockSize, []byte("x")); count != 0 || err != syscall.ENOSPC {
		t.Errorf("a write that does not fit: %d, %v", count, err)
	}
	if err := d.truncate(n, 3*blockSize); err != syscall.ENOSPC {
		t.Errorf("growing: %v", err)
	}
	if d.Used() != 2*blockSize || d.Counts().Full != 3 {
		t.Errorf("%d bytes are used, %d calls refused", d.Used(), d.Counts().Full)
	}
	must(t, d.remove(rootID, "f", false))
	if d.Used() != 0 {
		t.Errorf("%d bytes are used by a file that is gone", d.Used())
	}
	write(t, d, file(t, d, "g"), 0, "x")
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	d := New(1)
	n := file(t, d, "f")
	write(t, d, n, 0, "x")
	d.SetReadOnly(true)
	_, err1 := d.write(n, 0, []byte("y"))
	_, err2 := d.make(rootID, "g", syscall.S_IFREG, 0, 0)
	for i, err := range []syscall.Errno{
		err1, err2, d.truncate(n, 0), d.sync(n.id), d.remove(rootID, "f", false), d.move(rootID, "f", rootID, "g"),
	} {
		if err != syscall.EROFS {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if got := find(d, "f"); string(got) != "x" || d.Counts().ReadOnly != 6 {
		t.Errorf("it reads %q; %d calls were refused", got, d.Counts().ReadOnly)
	}
	d.SetReadOnly(false)
	must(t, d.sync(n.id))
}

// Calls wait while the disk is frozen, and fail with FailFrozen.
func TestFreeze(t *testing.T) {
	t.Parallel()
	d := New(1)
	n := file(t, d, "f")
	write(t, d, n, 0, "x")
	frozen := d.FailSyncAndFreeze("f")
	if err := d.sync(n.id); err != syscall.EIO {
		t.Errorf("the sync that freezes the disk: %v", err)
	}
	<-frozen
	ended := make(chan syscall.Errno, 1)
	go func() { ended <- d.sync(n.id) }()
	select {
	case err := <-ended:
		t.Fatalf("a frozen disk answers %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	d.FailFrozen()
	if err := <-ended; err != syscall.EIO {
		t.Errorf("a frozen call ends with %v", err)
	}
	if err := d.sync(n.id); err != syscall.EIO {
		t.Errorf("before it thaws: %v", err)
	}
	d.Thaw()
	must(t, d.sync(n.id))
}

func TestFolders(t *testing.T) {
	t.Parallel()
	d := New(1)
	sub, err := d.make(rootID, "sub", syscall.S_IFDIR|0o700, 0, 0)
	must(t, err)
	n, err := d.make(sub.id, "f", syscall.S_IFREG|0o600, 0, 0)
	must(t, err)
	for i, c := range []struct{ got, want syscall.Errno }{
		{d.remove(rootID, "sub", true), syscall.ENOTEMPTY},
		{d.remove(rootID, "sub", false), syscall.EISDIR},
		{d.remove(sub.id, "f", true), syscall.ENOTDIR},
		{d.remove(rootID, "none", false), syscall.ENOENT},
		{d.move(rootID, "none", rootID, "x"), syscall.ENOENT},
		{d.move(sub.id, "f", rootID, "f"), 0},
		{d.remove(rootID, "sub", true), 0},
	} {
		if !errors.Is(c.got, c.want) && c.got != c.want {
			t.Errorf("call %d: %v, want %v", i, c.got, c.want)
		}
	}
	if _, err := d.make(rootID, "f", syscall.S_IFREG, 0, 0); err != syscall.EEXIST {
		t.Errorf("a name that is taken: %v", err)
	}
	d.SyncAll()
	d.PowerCut()
	if d.nodes[n.id] == nil || n.links != 1 || d.nodes[sub.id] != nil {
		t.Errorf("after a power cut: the file has %d names", n.links)
	}
}

// Delays differ, and their mean over a few dozen fsyncs is stable.
func TestSlow(t *testing.T) {
	t.Parallel()
	const most = 1600 * time.Millisecond
	d := New(1)
	n := file(t, d, "f")
	d.Slow(most)
	orders := map[string]bool{}
	for range 20 {
		var order string
		var sum time.Duration
		seen := map[time.Duration]bool{}
		for range slowSteps {
			wait := d.extraDelay(n)
			if wait < 0 || wait > most/2 {
				t.Fatalf("an fsync takes %v beyond the least", wait)
			}
			step := min(wait/(most/2/slowSteps), slowSteps-1)
			seen[step] = true
			order += fmt.Sprint(int(step))
			sum += wait
		}
		if least := most / 2 * (slowSteps - 1) / 2; sum < least || sum > least+most/2 || len(seen) != slowSteps {
			t.Errorf("%d in a row take %v beyond the least, in the order %s", slowSteps, sum, order)
		}
		orders[order] = true
	}
	if len(orders) < 15 {
		t.Errorf("%d orders in 20 times", len(orders))
	}
}
