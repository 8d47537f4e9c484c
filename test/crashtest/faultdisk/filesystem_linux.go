package faultdisk

import (
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// cacheTime is the time for which the kernel may cache names and attributes: only the mount
// changes them.
const cacheTime = time.Hour

const nameMax = 255

// fileSystem translates the kernel's calls into changes of the disk.
type fileSystem struct {
	fuse.RawFileSystem // refuses all other calls with ENOSYS

	disk *Disk
}

func newFileSystem(d *Disk) *fileSystem {
	return &fileSystem{fuse.NewDefaultRawFileSystem(), d}
}

// String names the file system in the list of mounts.
func (f *fileSystem) String() string { return "faultdisk" }

// do runs one call with the disk locked, once the disk is not frozen.
func (f *fileSystem) do(call func(d *Disk) syscall.Errno) fuse.Status {
	if err := f.disk.enter(); err != 0 {
		return fuse.Status(err)
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return fuse.Status(call(f.disk))
}

// doNode is do for a call on an existing node.
func (f *fileSystem) doNode(id uint64, call func(d *Disk, n *node) syscall.Errno) fuse.Status {
	return f.do(func(d *Disk) syscall.Errno {
		n := d.nodes[id]
		if n == nil {
			return syscall.ENOENT
		}
		return call(d, n)
	})
}

func (n *node) attributes(out *fuse.Attr) {
	*out = fuse.Attr{
		Ino: n.id, Size: uint64(len(n.data)), Blocks: uint64(blocks(len(n.data))) / sector, Mode: n.mode,
		Nlink: uint32(max(1, n.links)), Owner: fuse.Owner{Uid: n.uid, Gid: n.gid}, Blksize: blockSize,
	}
}

func (n *node) entry(out *fuse.EntryOut) {
	out.NodeId = n.id
	out.SetEntryTimeout(cacheTime)
	out.SetAttrTimeout(cacheTime)
	n.attributes(&out.Attr)
}

// Lookup implements [fuse.RawFileSystem].
func (f *fileSystem) Lookup(_ <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return f.do(func(d *Disk) syscall.Errno {
		p, err := d.folder(header.NodeId)
		if err != 0 {
			return err
		}
		n := d.nodes[p.children[name]]
		if n == nil {
			return syscall.ENOENT
		}
		n.entry(out)
		return 0
	})
}

// Create implements [fuse.RawFileSystem].
func (f *fileSystem) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return f.do(func(d *Disk) syscall.Errno {
		n, err := d.make(in.NodeId, name, syscall.S_IFREG|in.Mode&^in.Umask&0o7777, in.Uid, in.Gid)
		if err != 0 {
			return err
		}
		n.opened++
		n.entry(&out.EntryOut)
		return 0
	})
}

// Mkdir implements [fuse.RawFileSystem].
func (f *fileSystem) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.do(func(d *Disk) syscall.Errno {
		n, err := d.make(in.NodeId, name, syscall.S_IFDIR|in.Mode&^in.Umask&0o7777, in.Uid, in.Gid)
		if err != 0 {
			return err
		}
		n.entry(out)
		return 0
	})
}

// Link implements [fuse.RawFileSystem].
func (f *fileSystem) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.doNode(in.Oldnodeid, func(d *Disk, n *node) syscall.Errno {
		p, err := d.folder(in.NodeId)
		if err != 0 {
			return err
		}
		if _, taken := p.children[name]; taken {
			return syscall.EEXIST
		}
		if err := d.refuse(); err != 0 {
			return err
		}
		p.link(name, n)
		n.entry(out)
		return 0
	})
}

// Unlink implements [fuse.RawFileSystem].
func (f *fileSystem) Unlink(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return f.do(func(d *Disk) syscall.Errno { return d.remove(header.NodeId, name, false) })
}

// Rmdir implements [fuse.RawFileSystem].
func (f *fileSystem) Rmdir(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return f.do(func(d *Disk) syscall.Errno { return d.remove(header.NodeId, name, true) })
}

// Rename implements [fuse.RawFileSystem].
func (f *fileSystem) Rename(_ <-chan struct{}, in *fuse.RenameIn, name, newName string) fuse.Status {
	return f.do(func(d *Disk) syscall.Errno {
		if in.Flags != 0 {
			return syscall.EINVAL
		}
		return d.move(in.NodeId, name, in.Newdir, newName)
	})
}

// GetAttr implements [fuse.RawFileSystem].
func (f *fileSystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return f.doNode(in.NodeId, func(_ *Disk, n *node) syscall.Errno {
		out.SetTimeout(cacheTime)
		n.attributes(&out.Attr)
		return 0
	})
}

// SetAttr implements [fuse.RawFileSystem]: size, owner and mode. The kernel checks
// permissions.
func (f *fileSystem) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return f.doNode(in.NodeId, func(d *Disk, n *node) syscall.Errno {
		if in.Valid&fuse.FATTR_SIZE != 0 {
			if err := d.truncate(n, int(in.Size)); err != 0 {
				return err
			}
		}
		if in.Valid&(fuse.FATTR_MODE|fuse.FATTR_UID|fuse.FATTR_GID) != 0 {
			if err := d.refuse(); err != 0 {
				return err
			}
		}
		if in.Valid&fuse.FATTR_MODE != 0 {
			n.mode = n.mode&syscall.S_IFMT | in.Mode&0o7777
		}
		if in.Valid&fuse.FATTR_UID != 0 {
			n.uid = in.Uid
		}
		if in.Valid&fuse.FATTR_GID != 0 {
			n.gid = in.Gid
		}
		out.SetTimeout(cacheTime)
		n.attributes(&out.Attr)
		return 0
	})
}

// Open implements [fuse.RawFileSystem]. There are no handles: calls name their
// node.
func (f *fileSystem) Open(_ <-chan struct{}, in *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	return f.doNode(in.NodeId, func(_ *Disk, n *node) syscall.Errno {
		n.opened++
		return 0
	})
}

// OpenDir implements [fuse.RawFileSystem].
func (f *fileSystem) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return f.Open(cancel, in, out)
}

// Release implements [fuse.RawFileSystem].
func (f *fileSystem) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	f.doNode(in.NodeId, func(d *Disk, n *node) syscall.Errno {
		n.opened--
		d.release(n)
		return 0
	})
}

// ReleaseDir implements [fuse.RawFileSystem].
func (f *fileSystem) ReleaseDir(in *fuse.ReleaseIn) { f.Release(nil, in) }

// Read implements [fuse.RawFileSystem].
func (f *fileSystem) Read(_ <-chan struct{}, in *fuse.ReadIn, buffer []byte) (result fuse.ReadResult, _ fuse.Status) {
	status := f.doNode(in.NodeId, func(_ *Disk, n *node) syscall.Errno {
		count := copy(buffer[:min(len(buffer), int(in.Size))], n.data[min(int(in.Offset), len(n.data)):])
		result = fuse.ReadResultData(buffer[:count])
		return 0
	})
	return result, status
}

// Write implements [fuse.RawFileSystem]. A page of a memory mapping is written to
// space that the file already has, and its program cannot see an error.
func (f *fileSystem) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (written uint32, _ fuse.Status) {
	status := f.doNode(in.NodeId, func(d *Disk, n *node) syscall.Errno {
		at := int(in.Offset)
		if in.WriteFlags&fuse.WRITE_CACHE != 0 {
			d.change(n, change{at, slices.Clone(data[:min(len(data), max(0, len(n.data)-at))])})
			written = uint32(len(data))
			return 0
		}
		count, err := d.write(n, at, data)
		written = uint32(count)
		return err
	})
	return written, status
}

// Fsync implements [fuse.RawFileSystem].
func (f *fileSystem) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return fuse.Status(f.disk.sync(in.NodeId))
}

// FsyncDir implements [fuse.RawFileSystem].
func (f *fileSystem) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return fuse.Status(f.disk.sync(in.NodeId))
}

// ReadDir implements [fuse.RawFileSystem].
func (f *fileSystem) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.do(func(d *Disk) syscall.Errno {
		folder, err := d.folder(in.NodeId)
		if err != 0 {
			return err
		}
		list := []fuse.DirEntry{{Name: ".", Mode: syscall.S_IFDIR, Ino: folder.id}, {Name: "..", Mode: syscall.S_IFDIR, Ino: folder.id}}
		for _, name := range slices.Sorted(maps.Keys(folder.children)) {
			if child := d.nodes[folder.children[name]]; child != nil {
				list = append(list, fuse.DirEntry{Name: name, Mode: child.mode, Ino: child.id})
			}
		}
		for i := int(in.Offset); i < len(list) && out.AddDirEntry(list[i]); i++ {
		}
		return 0
	})
}

// StatFs implements [fuse.RawFileSystem].
func (f *fileSystem) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	return f.do(func(d *Disk) syscall.Errno {
		*out = fuse.StatfsOut{Blocks: 1 << 20, Bfree: 1 << 20, Files: 1 << 20, Ffree: 1 << 20, Bsize: blockSize, Frsize: blockSize, NameLen: nameMax}
		if d.capacity > 0 {
			out.Blocks, out.Bfree = uint64(d.capacity/blockSize), uint64(max(0, d.capacity-d.used)/blockSize)
		}
		out.Bavail = out.Bfree
		return 0
	})
}
