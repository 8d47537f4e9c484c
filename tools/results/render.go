package results

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// kind is a kind of runs, and how the page speaks of it.
type kind struct {
	name  string
	intro string
}

// kinds are all that there are, in the order of the page.
var kinds = []kind{
	{"simulate", "The whole gateway in one process under a virtual clock: merchants, payers, the sandbox bank and receivers that delay, repeat, lie and die, and crashes between any two commits. After every step the books of clients, gateway, bank and receivers are compared. A seed repeats a run."},
	{"torture", "The real program, its bank, its clients and its receivers as processes that are killed and stopped, with connections cut at message boundaries, on SQLite and PostgreSQL; then the four books are compared."},
	{"disk", "A disk that is full, slow, read-only or fails to sync, and an older backup restored under the retries of all clients."},
	{"mutants", "Bugs planted on purpose, each of which a test must notice."},
	{"fuzz", "Inputs made by Go's fuzzer, which looks for those that reach new code; each target asserts a property."},
}

func kindOf(name string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// rowsMax is how many rows of a list are shown before the rest is folded away.
const rowsMax = 20

// render is RESULTS.md.
func render(runs []run, findings []finding) string {
	b := &strings.Builder{}
	b.WriteString(`# Results

<!-- Written by the tools from tools/results/runs.jsonl and findings.json: edit those,
then run "go test ./tools/results -update". -->

How hard this program was tried, and what that found. Every figure was recorded by the
tool that ran, when it was run with ` + "`-record`" + `, and every command repeats here what it did
there. Left alone overnight, the same commands add to the figures.

## Figures of all runs
`)
	for _, k := range kinds {
		writeTotals(b, k, slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return r.Kind != k.name }))
	}
	writeRuns(b, runs)
	writeFindings(b, findings)
	return b.String()
}

func writeTotals(b *strings.Builder, k kind, runs []run) {
	fmt.Fprintf(b, "\n### %s\n%s\n", k.name, k.intro)
	if len(runs) == 0 {
		b.WriteString("\nNot run yet.\n")
		return
	}
	b.WriteString("\n| figure | total |\n|---|---:|\n")
	fmt.Fprintf(b, "| runs | %s |\n", grouped(int64(len(runs))))
	figures := total(runs)
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		fmt.Fprintf(b, "| %s | %s |\n", name, quantity(name, figures[name]))
	}
}

// writeRuns lists the runs, newest first. Runs of one command on one commit
// and machine share a row.
func writeRuns(b *strings.Builder, runs []run) {
	b.WriteString("\n## Runs\nA commit with + had changes that were not committed. Equal commands on one commit share a row; figures with a detail are in the tables above.\n")
	type row struct {
		kind, command, commit string
		machine               machine
	}
	grouped := map[row][]run{}
	for _, r := range runs {
		of := row{r.Kind, r.Command, r.Commit, r.Machine}
		grouped[of] = append(grouped[of], r)
	}
	rows := slices.Collect(maps.Values(grouped))
	last := func(group []run) string {
		return slices.MaxFunc(group, func(a, b run) int { return cmp.Compare(a.Date, b.Date) }).Date
	}
	slices.SortFunc(rows, func(one, other []run) int {
		a, b := one[0], other[0]
		return cmp.Or(cmp.Compare(last(other), last(one)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Command, b.Command),
			cmp.Compare(a.Commit, b.Commit), cmp.Compare(a.Machine.String(), b.Machine.String()))
	})
	writeTable(b, "| date | commit | machine | command | runs | figures |\n|---|---|---|---|---:|---|\n", len(rows), func(i int) string {
		r := rows[i][0]
		return fmt.Sprintf("| %s | %s | %s | `%s` | %d | %s |\n", last(rows[i]), r.Commit, cell(r.Machine.String()), cell(r.Command), len(rows[i]), summary(total(rows[i])))
	})
}

// writeTable writes a table, and folds away what follows its first rows.
func writeTable(b *strings.Builder, head string, rows int, row func(int) string) {
	b.WriteString("\n" + head)
	for i := range rows {
		if i == rowsMax {
			fmt.Fprintf(b, "\n<details><summary>%d more</summary>\n\n%s", rows-i, head)
		}
		b.WriteString(row(i))
	}
	if rows > rowsMax {
		b.WriteString("\n</details>\n")
	}
}

// summary names the figures that have no detail; if all have one, all.
func summary(figures map[string]int64) string {
	names := slices.Sorted(maps.Keys(figures))
	plain := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.Contains(name, ":") })
	if len(plain) > 0 {
		names = plain
	}
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = name + " " + quantity(name, figures[name])
	}
	return strings.Join(parts, "; ")
}

func writeFindings(b *strings.Builder, findings []finding) {
	b.WriteString("\n## What was found, and mended\n")
	if len(findings) == 0 {
		b.WriteString("\nNothing yet, which deserves doubt.\n")
		return
	}
	b.WriteString("\n| | found by | what was wrong | what could have happened | mended |\n|---|---|---|---|---|\n")
	for _, f := range slices.SortedFunc(slices.Values(findings), func(a, b finding) int { return cmp.Compare(a.ID, b.ID) }) {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", cell(f.ID), cell(f.FoundBy), cell(f.Wrong), cell(f.Consequence), cell(f.Mended))
	}
}

// String is the machine as the page shows it.
func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, %s", m.CPU, m.Cores, m.System, m.Go)
}

// cell is text that stays within its cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// quantity writes a figure, and a time of two hours or more also in the
// largest unit that it fills.
func quantity(name string, value int64) string {
	text := grouped(value)
	if !strings.HasSuffix(name, "seconds") || strings.HasSuffix(name, "milliseconds") {
		return text
	}
	for _, unit := range []struct {
		name    string
		seconds int64
	}{{"years", 365 * 86400}, {"days", 86400}, {"hours", 3600}} {
		if value >= 2*unit.seconds {
			return fmt.Sprintf("%s (%s %s)", text, grouped(value/unit.seconds), unit.name)
		}
	}
	return text
}

// grouped writes 1234567 as 1,234,567.
func grouped(value int64) string {
	digits := strconv.FormatInt(value, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
