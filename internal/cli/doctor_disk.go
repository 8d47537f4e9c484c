package cli

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/processor"
)

// Free space of a disk, bytes, below which it is a problem, and below which it is noted. A
// pay-in takes about 12 kB.
const (
	spaceLow   = 1 << 30
	spaceNoted = 5 << 30

	spaceUnknown = math.MaxUint64
)

// foldersOf lists the folders that a gateway writes to.
func foldersOf(cfg *config.Config) []string {
	folders := []string{cfg.Data}
	if !db.IsPostgres(cfg.Database) {
		if folder := filepath.Dir(strings.TrimPrefix(cfg.Database, "sqlite:")); filepath.Clean(folder) != filepath.Clean(cfg.Data) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// checkFolder checks that a folder can be written, and the free space of its disk.
func checkFolder(folder string, measure func(folder string) (free uint64, err error)) processor.Finding {
	f := processor.Finding{Check: "disk of " + folder}
	free, err := measure(folder)
	switch {
	case err != nil:
		f.Problem, f.Action = "it cannot be written: "+err.Error(), "porteira migrate creates a missing folder. Otherwise correct its owner or its disk, or choose another folder with --data."
	case free < spaceLow:
		f.Problem, f.Action = gibibytes(free)+" free", "Make space: if the disk is full, orders are answered with 503 and no payout is sent (docs/disk.md)."
	case free < spaceNoted:
		f.Detail, f.Action = gibibytes(free)+" free", "Make space soon."
	case free == spaceUnknown:
		f.Detail = "the free space is not known on this system"
	default:
		f.Detail = gibibytes(free) + " free"
	}
	return f
}

func gibibytes(bytes uint64) string {
	return fmt.Sprintf("%d.%d GiB", bytes>>30, bytes>>20%1024*10/1024)
}

// measureFolder writes a file to a folder and removes it, as a disk may be read-only, and
// returns the free space, bytes.
func measureFolder(folder string) (free uint64, err error) {
	file, err := os.CreateTemp(folder, ".porteira-doctor-")
	if err != nil {
		return 0, err
	}
	_, err = file.Write([]byte{0})
	if closing := file.Close(); err == nil {
		err = closing
	}
	if removing := os.Remove(file.Name()); err == nil {
		err = removing
	}
	if err != nil {
		return 0, err
	}
	return freeSpace(folder)
}
