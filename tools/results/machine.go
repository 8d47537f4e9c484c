package results

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
)

// machine is what a run ran on, as far as it tells about the figures. It does
// not tell whose machine it is.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	System string `json:"system"`
	Go     string `json:"go"`
}

func thisMachine() machine {
	m := machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), System: runtime.GOOS, Go: runtime.Version()}
	// Linux tells; elsewhere the architecture has to do.
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if model := regexp.MustCompile(`(?m)^model name\s*: *(.+)$`).FindSubmatch(text); model != nil {
			m.CPU = string(model[1])
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += " " + regexp.MustCompile(`^\d+(\.\d+)?`).FindString(string(text))
	}
	return m
}

// commitOf is the commit that is checked out, marked with + where a file
// differs from it; what this package writes does not count.
func commitOf(root string) (string, error) {
	commit, err := git(root, "rev-parse", "--short", "HEAD")
	if err != nil {
		return "", err
	}
	changed, err := git(root, "status", "--porcelain", "--", ".", ":!"+page, ":!"+page+".new", ":!"+runsFile, ":!"+findingsFile)
	if err != nil {
		return "", err
	}
	if changed != "" {
		commit += "+"
	}
	return commit, nil
}

func git(root string, arguments ...string) (string, error) {
	command := exec.Command("git", arguments...) //nolint:noctx // it takes milliseconds, and the caller is a tool
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", arguments[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}
