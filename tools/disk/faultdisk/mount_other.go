//go:build !linux

package faultdisk

import "errors"

// Mount is a disk in the machine's tree of files.
type Mount struct{}

// Mount mounts the disk on a folder: on Linux only.
func (d *Disk) Mount(string) (*Mount, error) {
	return nil, errors.New("faultdisk: FUSE is used on Linux only")
}

// Unmount takes the disk off its folder.
func (m *Mount) Unmount() error { return nil }
