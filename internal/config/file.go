package config

import (
	"fmt"
	"strings"
)

// envPrefix begins the name of every environment variable of this program.
const envPrefix = "PORTEIRA_"

// parseFile reads lines of "name = value". Empty lines, and those that begin
// with #, say nothing; a value goes to the end of its line, without quotes.
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
			faults = append(faults, fmt.Errorf(`%s: this line is not of the form "name = value"`, at))
		case name == fileOption:
			faults = append(faults, fmt.Errorf("%s: a file cannot name another file", at))
		case twice:
			faults = append(faults, fmt.Errorf("%s: %s is set twice", at, name))
		default:
			if _, known := find(name); !known {
				faults = append(faults, fmt.Errorf("%s: there is no option %q%s", at, name, nearest(name, func(o *Option) string { return o.Name })))
				continue
			}
			values[name] = value
		}
	}
	return values, faults
}

// foreign are variables with our prefix that are not ours to read: those of
// the tests, and those that Kubernetes sets for a service named porteira.
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
			faults = append(faults, fmt.Errorf("there is no variable %s%s", variable, meant))
			continue
		}
		values[option] = value
	}
	return values, faults
}

// nearest ends an error about an unknown name with the one that was meant, as
// show writes it.
func nearest(name string, show func(*Option) string) string {
	best, least := -1, len(name)/2
	for i := range Options {
		if d := distance(name, Options[i].Name); d < least {
			best, least = i, d
		}
	}
	if best < 0 {
		return ": porteira config lists those that there are"
	}
	return "; did you mean " + show(&Options[best]) + "?"
}

// distance counts the letters to insert, drop or change to get from a to b
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
