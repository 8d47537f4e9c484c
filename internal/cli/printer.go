package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
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

// newestOf is that text for a list of the newest entries that a route lists in full.
func newestOf(shown int, route string) string {
	return fmt.Sprintf("The newest %d; there are more: GET %s lists all, or --status fewer.", shown, route)
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

// plural formats a count with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
