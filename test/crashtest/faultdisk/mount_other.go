//go:build !linux

package faultdisk

import "errors"

// Mount is a mounted disk.
type Mount struct{}

// Mount mounts the disk on a folder, on Linux only.
func (d *Disk) Mount(string) (*Mount, error) {
	return nil, errors.New("faultdisk: FUSE is used on Linux only")
}

// Unmount unmounts the disk.
func (m *Mount) Unmount() error { return nil }
