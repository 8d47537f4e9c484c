package simulate

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// Two simulations in one process wait for each other at the locks of the SQLite
// library's allocator, which costs a quarter of the time. So where many seeds
// are simulated, each processor has a process of its own.

// helpFrom is how many seeds are worth the start of more processes.
const helpFrom = 20

// helperProcess simulates the seeds that it is given, one by one.
type helperProcess struct {
	seeds   *gob.Encoder
	results *gob.Decoder
}

// newHelper starts a process; it ends with the test.
func newHelper(t *testing.T) *helperProcess {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	answers, answering, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run=^TestSeeds$", "-test.timeout=0", "-helper", "-orders="+strconv.Itoa(*orders))
	c.Env = append(os.Environ(), "GOMAXPROCS=1")
	c.Stdout, c.Stderr, c.ExtraFiles = os.Stderr, os.Stderr, []*os.File{answering}
	asking, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err = errors.Join(err, answering.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(asking.Close(), c.Wait(), answers.Close()); err != nil {
			t.Errorf("helper: %v", err)
		}
	})
	return &helperProcess{gob.NewEncoder(asking), gob.NewDecoder(answers)}
}

// run is place.run in the other process; there is no trace.
func (h *helperProcess) run(t *testing.T, seed uint64, _ func(string)) (result Result) {
	t.Helper()
	err := h.seeds.Encode(seed)
	if err == nil {
		err = h.results.Decode(&result)
	}
	if err != nil {
		t.Errorf("seed %d: helper: %v", seed, err)
	}
	return result
}

// help is what a helper does.
func help(t *testing.T) {
	p := newPlace(t, "sqlite")
	seeds, results := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.NewFile(3, "results"))
	for {
		var seed uint64
		err := seeds.Decode(&seed)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = results.Encode(p.run(t, seed, nil))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
