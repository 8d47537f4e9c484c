package sandboxcontrol_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxcontrol"
)

// bank counts how often its faults are removed.
type bank struct {
	sandboxcontrol.Bank

	down     bool
	disarmed int
}

func (b *bank) Disarm(context.Context) error {
	if b.down {
		return errors.New("connection refused")
	}
	b.disarmed++
	return nil
}

// anyProcessor is the processor of an account.
type anyProcessor struct{ processor.Processor }

// The faults of all banks that answer are removed; accounts whose banks do not are named.
func TestClearFaults(t *testing.T) {
	t.Parallel()
	own, first, last := &bank{}, &bank{}, &bank{}
	banks := map[string]*bank{"a": first, "dead": {down: true}, "late": {down: true}, "z": last}
	accounts := processor.Registry{"foreign": anyProcessor{}}
	for id := range banks {
		accounts[id] = anyProcessor{}
	}
	c := sandboxcontrol.New(sandboxcontrol.Options{Bank: own, Processors: accounts, BankOf: func(id string) sandboxcontrol.Bank {
		if b := banks[id]; b != nil {
			return b
		}
		return nil
	}})
	err := c.ClearFaults(t.Context())
	if !problem.Is(err, problem.Unavailable) || !strings.Contains(problem.From(err).Detail, ": dead, late.") {
		t.Errorf("answered %v", err)
	}
	if own.disarmed != 1 || first.disarmed != 1 || last.disarmed != 1 {
		t.Errorf("removed at %d, %d and %d", own.disarmed, first.disarmed, last.disarmed)
	}
	banks["dead"].down, banks["late"].down = false, false
	if err := c.ClearFaults(t.Context()); err != nil {
		t.Errorf("answered %v", err)
	}
	own.down = true
	if err := c.ClearFaults(t.Context()); !problem.Is(err, problem.Unavailable) {
		t.Errorf("answered %v", err)
	}
}
