package results

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// run is one line of runs.jsonl.
type run struct {
	Date    string           `json:"date"`    // UTC
	Commit  string           `json:"commit"`  // with + where files had changed since
	Machine machine          `json:"machine"` // what it ran on
	Kind    string           `json:"kind"`    // one of kinds
	Command string           `json:"command"` // repeats it
	Figures map[string]int64 `json:"figures"` // each named in words
}

var (
	commitForm = regexp.MustCompile(`^[0-9a-f]{7,40}\+?$`)
	// figureForm keeps names readable, and the page's tables whole.
	figureForm = regexp.MustCompile(`^[\pL\pN][\pL\pN ,.:()'-]{0,79}$`)
)

// check refuses a run that would not be understood, or would spoil the page.
func (r run) check() error {
	if _, err := time.Parse(time.DateOnly, r.Date); err != nil {
		return err
	}
	if !commitForm.MatchString(r.Commit) {
		return fmt.Errorf("commit %q", r.Commit)
	}
	if r.Machine.CPU == "" || r.Machine.Cores < 1 || r.Machine.System == "" || r.Machine.Go == "" {
		return fmt.Errorf("machine %+v", r.Machine)
	}
	if _, known := kindOf(r.Kind); !known {
		return fmt.Errorf("there is no kind %q of runs", r.Kind)
	}
	if r.Command == "" || len(r.Figures) == 0 {
		return errors.New("a run has a command and figures")
	}
	for name, value := range r.Figures {
		if !figureForm.MatchString(name) || value < 0 {
			return fmt.Errorf("figure %q: %d", name, value)
		}
	}
	return nil
}

// parseRuns reads runs.jsonl. A damaged line is refused and never skipped: the
// figures are sums, and nobody would see that one is missing.
func parseRuns(text []byte) ([]run, error) {
	var runs []run
	for number := 1; len(text) > 0; number++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		var r run
		err := strictly(line, &r)
		if err == nil && !whole {
			err = errors.New("the line is cut off")
		}
		if err == nil {
			err = r.check()
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", runsFile, number, err)
		}
		runs, text = append(runs, r), rest
	}
	return runs, nil
}

// greatest says whether a figure is a maximum, rather than a sum, over runs.
func greatest(name string) bool {
	return strings.HasPrefix(name, "slowest") || strings.HasPrefix(name, "max")
}

// total joins the figures of runs.
func total(runs []run) map[string]int64 {
	joined := map[string]int64{}
	for _, r := range runs {
		for name, value := range r.Figures {
			if greatest(name) {
				joined[name] = max(joined[name], value)
			} else {
				joined[name] += value
			}
		}
	}
	return joined
}

var (
	place   = regexp.MustCompile(`(^|[\s=])/\S*/`)
	address = regexp.MustCompile(`\b([a-z][a-z0-9+.-]*)://\S+`)
)

// withoutPlaces takes from a command what only this machine has: folders, and
// addresses, which may hold a password.
func withoutPlaces(command string) string {
	command = address.ReplaceAllString(command, "$1:…")
	return place.ReplaceAllString(command, "$1")
}
