package faultdisk

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Mount is a mounted disk.
type Mount struct {
	path   string
	server *fuse.Server
}

// writeMax bounds one write request of the kernel, in bytes.
const writeMax = 128 << 10

// Mount mounts the disk on a folder. That requires /dev/fuse and the right to
// mount; the error says what is missing.
func (d *Disk) Mount(path string) (*Mount, error) {
	// A child process must not inherit the connection: a program that waits for
	// the disk would keep the disk's own server side open, and never end.
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("faultdisk: open /dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", fd)
	if err := syscall.Mount("faultdisk", path, "fuse", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		return nil, errors.Join(fmt.Errorf("faultdisk: mount: %w", err), syscall.Close(fd))
	}
	server, err := fuse.NewServer(newFileSystem(d), fmt.Sprintf("/dev/fd/%d", fd), &fuse.MountOptions{
		MaxBackground: 64, MaxWrite: writeMax, DisableXAttrs: true, DisableReadDirPlus: true,
		DisabledCapabilities: fuse.CAP_AUTO_INVAL_DATA, // nothing but the mount changes a file
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("faultdisk: %w", err), syscall.Unmount(path, 0))
	}
	go server.Serve()
	m := &Mount{path, server}
	if err := m.refusePoll(); err != nil {
		return nil, errors.Join(fmt.Errorf("faultdisk: %w", err), m.Unmount())
	}
	return m, nil
}

// refusePoll makes the kernel ask once whether the disk supports polling; it does
// not. Otherwise the kernel would ask when this process first opens a file of the
// disk, inside a system call of the Go runtime that blocks the garbage collector,
// which the disk's server may be waiting for.
func (m *Mount) refusePoll() error {
	fd, err := syscall.Open(m.path+"/"+pollFile, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return errors.Join(err, syscall.Close(fd))
}

// pollFile is a file that go-fuse has in the root of every mount, for this use.
const pollFile = ".go-fuse-epoll-hack"

// Unmount unmounts the disk. It fails with EBUSY while a file of it is open.
func (m *Mount) Unmount() error {
	if err := syscall.Unmount(m.path, 0); err != nil {
		return fmt.Errorf("faultdisk: unmount %s: %w", m.path, err)
	}
	m.server.Wait()
	return nil
}
