package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// printer writes the output of a command as text or as JSON.
type printer struct {
	w    io.Writer
	json bool
}

// people writes text output during a command; JSON is written once, at the end.
func (p *printer) people(write func(w io.Writer)) {
	if !p.json {
		write(p.w)
	}
}

// show writes value as JSON, or calls people.
func (p *printer) show(value any, people func(w io.Writer)) error {
	if !p.json {
		people(p.w)
		return nil
	}
	encoder := json.NewEncoder(p.w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("cli: print: %w", err)
	}
	return nil
}

// table writes rows in aligned columns; the first row names them.
func table(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				_, _ = fmt.Fprint(t, "\t")
			}
			_, _ = fmt.Fprint(t, oneLine(cell))
		}
		_, _ = fmt.Fprintln(t)
	}
	_ = t.Flush()
}

// tableOr writes rows as table does, or a text if there is no row after the first.
func tableOr(w io.Writer, rows [][]string, none string) {
	if len(rows) == 1 {
		_, _ = fmt.Fprintln(w, none)
		return
	}
	table(w, rows)
}

// tableWidth is the width that tables fit: half of a screen.
const tableWidth = 100

// fit shortens cells of some columns until the rows fit the width of a table.
func fit(rows [][]string, columns ...int) [][]string {
	widths := map[int]int{}
	total := 0
	for i := range rows[0] {
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		total += widths[i]
		if i > 0 {
			total += 2
		}
	}
	const least = 6
	for total > tableWidth {
		widest := columns[0]
		for _, c := range columns {
			if widths[c] > widths[widest] {
				widest = c
			}
		}
		if widths[widest] <= least {
			break
		}
		widths[widest]--
		total--
	}
	for _, row := range rows {
		for _, c := range columns {
			if text := []rune(row[c]); len(text) > widths[c] {
				row[c] = string(text[:widths[c]-1]) + "…"
			}
		}
	}
	return rows
}

// pairs writes names and values, without those that have no value.
func pairs(w io.Writer, rows [][]string) {
	table(w, slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" }))
}

// section writes rows below a title, if there are any.
func section(w io.Writer, title string, rows [][]string) {
	if len(rows) > 0 {
		_, _ = fmt.Fprintf(w, "\n%s:\n", title)
		table(w, rows)
	}
}

// sayMore says that a list leaves some out: below it, or, if it is JSON, on Stderr.
func (r *runner) sayMore(more bool, text string) {
	switch {
	case !more:
	case r.out.json:
		r.sentence(text)
	default:
		_, _ = fmt.Fprintf(r.out.w, "\n%s\n", text)
	}
}

// oneLine is a text that may come from a processor, fit for a terminal: without line breaks and
// other control characters.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// stamp formats a time, UTC; "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// tableTime formats a time for a table, UTC: without the year if it is that of now.
func tableTime(t, now time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.UTC().Year() == now.UTC().Year():
		return t.UTC().Format("01-02 15:04:05")
	default:
		return t.UTC().Format("2006-01-02 15:04")
	}
}

// within formats how far a time is from now: in 3m, or 2h ago.
func within(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	text := short(t.Sub(now).Abs())
	if t.After(now) {
		return "in " + text
	}
	return text + " ago"
}

// short formats a duration by its largest unit.
func short(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%dd", d/day)
	case d >= time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	default:
		return fmt.Sprintf("%ds", d/time.Second)
	}
}

// plural formats a count with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
