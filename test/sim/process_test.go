package sim

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// Two simulations in one process contend for the locks of the SQLite library's allocator,
// which costs a quarter of the time. So with many seeds there is a process per CPU.

// processesFrom is the number of seeds from which on more processes are started.
const processesFrom = 20

// process simulates seeds in another process, one by one.
type process struct {
	seeds   *gob.Encoder
	results *gob.Decoder
}

// startProcess starts a process, which ends with the test.
func startProcess(t *testing.T) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	results, resultsOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run=^TestSeeds$", "-test.timeout=0", "-process", "-orders="+strconv.Itoa(*orders))
	c.Env = append(os.Environ(), "GOMAXPROCS=1")
	c.Stdout, c.Stderr, c.ExtraFiles = os.Stderr, os.Stderr, []*os.File{resultsOut}
	seeds, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err = errors.Join(err, resultsOut.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(seeds.Close(), c.Wait(), results.Close()); err != nil {
			t.Errorf("process: %v", err)
		}
	})
	return &process{gob.NewEncoder(seeds), gob.NewDecoder(results)}
}

// run is runner.run in the other process; there is no trace.
func (p *process) run(t *testing.T, seed uint64, _ func(string)) (result Result) {
	t.Helper()
	err := p.seeds.Encode(seed)
	if err == nil {
		err = p.results.Decode(&result)
	}
	if err != nil {
		t.Errorf("seed %d: process: %v", seed, err)
	}
	return result
}

// serveSeeds is the main function of the other process.
func serveSeeds(t *testing.T) {
	r := newRunner(t, "sqlite")
	seeds, results := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.NewFile(3, "results"))
	for {
		var seed uint64
		err := seeds.Decode(&seed)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = results.Encode(r.run(t, seed, nil))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
