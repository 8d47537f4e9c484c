package config

import (
	"fmt"
	"strings"

	"github.com/porteira/porteira/internal/problem"
)

// envPrefix is the prefix of all environment variables of this program.
const envPrefix = "PORTEIRA_"

// parseFile parses lines of "name = value". It ignores empty lines and lines that begin
// with #. A value extends to the end of its line, and has no quotes.
func parseFile(path, text string) (values map[string]string, faults []error) {
	values = map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := fmt.Sprintf("%s:%d", path, i+1)
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch _, twice := values[name]; {
		case !ok:
			faults = append(faults, fmt.Errorf(`%s: the line must have the form "name = value"`, at))
		case name == fileOption:
			faults = append(faults, fmt.Errorf("%s: a file cannot include another file", at))
		case twice:
			faults = append(faults, fmt.Errorf("%s: %s is set twice", at, name))
		default:
			if _, known := find(name); !known {
				faults = append(faults, fmt.Errorf("%s: unknown option %q%s", at, name, nearest(name, func(o *Option) string { return o.Name })))
				continue
			}
			values[name] = value
		}
	}
	return values, faults
}

// foreign reports whether a variable with our prefix is ignored: those of tests, and
// those that Kubernetes sets for a service named porteira.
func foreign(name string) bool {
	return strings.HasPrefix(name, "TEST_") || name == "REQUIRE_POSTGRES" ||
		strings.HasPrefix(name, "SERVICE_") || name == "PORT" || strings.HasPrefix(name, "PORT_")
}

// fromEnvironment reads the options that are set as environment variables.
func fromEnvironment(environ []string) (values map[string]string, faults []error) {
	values = map[string]string{}
	for _, pair := range environ {
		variable, value, _ := strings.Cut(pair, "=")
		name, ours := strings.CutPrefix(variable, envPrefix)
		if !ours || foreign(name) {
			continue
		}
		option := strings.ReplaceAll(strings.ToLower(name), "_", "-")
		if o, known := find(option); !known || o.Env() != variable {
			meant := nearest(option, func(o *Option) string { return o.Env() })
			faults = append(faults, fmt.Errorf("unknown variable %s%s", variable, meant))
			continue
		}
		values[option] = value
	}
	return values, faults
}

// nearest returns the end of an error about an unknown name: the most similar name,
// formatted by show.
func nearest(name string, show func(*Option) string) string {
	var best *Option
	for i := range Options {
		o := &Options[i]
		if problem.IsNear(name, o.Name) && (best == nil || problem.Distance(name, o.Name) < problem.Distance(name, best.Name)) {
			best = o
		}
	}
	if best == nil {
		return ": porteira config lists all options"
	}
	return "; did you mean " + show(best) + "?"
}
