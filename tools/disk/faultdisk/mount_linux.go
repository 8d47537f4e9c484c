package faultdisk

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
)

// Mount is a disk in the machine's tree of files.
type Mount struct {
	path string
	fd   int
	runs sync.WaitGroup
}

// Mount mounts the disk on a folder. That takes /dev/fuse and the right to
// mount; the error says what lacks.
func (d *Disk) Mount(path string) (*Mount, error) {
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("faultdisk: open /dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", fd)
	if err := syscall.Mount("faultdisk", path, "fuse", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		return nil, errors.Join(fmt.Errorf("faultdisk: mount: %w", err), syscall.Close(fd))
	}
	m := &Mount{path: path, fd: fd}
	m.runs.Go(func() { m.serve(d) })
	return m, nil
}

func (m *Mount) serve(d *Disk) {
	for {
		buffer := make([]byte, requestMax)
		n, err := syscall.Read(m.fd, buffer)
		switch {
		case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOENT):
			continue // interrupted, or the call was
		case err != nil:
			return // unmounted
		}
		if r, ok := parse(buffer[:n]); ok {
			m.runs.Go(func() {
				if answer := d.handle(r); answer != nil {
					_, _ = syscall.Write(m.fd, answer) // fails where nobody waits for it any more
				}
			})
		}
	}
}

// Unmount takes the disk off its folder. Nobody may have a file of it open.
func (m *Mount) Unmount() error {
	if err := syscall.Unmount(m.path, 0); err != nil {
		return fmt.Errorf("faultdisk: unmount %s: %w", m.path, err)
	}
	m.runs.Wait()
	return syscall.Close(m.fd)
}
