package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Print writes the report as text: a table, a chart of the first series's latencies,
// and the result of the check.
func (v *Report) Print(w io.Writer) {
	_, _ = fmt.Fprintf(w, "%s on %s, %s\n\n", v.Mode, v.Engine, v.loop())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "\tper second\tcount\tp50\tp90\tp99\tp99.9\tmax\terrors\t")
	for i := range v.Series {
		s := &v.Series[i]
		l := s.Latency
		cells := []string{s.Name, strconv.FormatFloat(s.PerSecond, 'f', 0, 64), strconv.FormatInt(s.Count, 10)}
		for _, micros := range []int64{l.P50, l.P90, l.P99, l.P999, l.Max} {
			cells = append(cells, shownLatency(micros, s.Count))
		}
		_, _ = fmt.Fprintln(t, strings.Join(append(cells, shownErrors(s.Errors)), "\t")+"\t")
	}
	_ = t.Flush()
	for i := range v.Series {
		if r := v.Series[i].Rejection; r != nil {
			_, _ = fmt.Fprintf(w, "  %s, answered 503: p50 %s, p99 %s, max %s\n", v.Series[i].Name, shownMicros(r.P50), shownMicros(r.P99), shownMicros(r.Max))
		}
		for _, name := range slices.Sorted(maps.Keys(v.Series[i].Samples)) {
			_, _ = fmt.Fprintf(w, "  %s, first %s: %s\n", v.Series[i].Name, name, v.Series[i].Samples[name])
		}
	}
	if v.histogram != nil && v.Series[0].Count > 0 {
		_, _ = fmt.Fprintf(w, "\nLatency of %s\n\n", v.Series[0].Name)
		writeChart(w, v.histogram.buckets(), v.Series[0].Latency)
	}
	_, _ = fmt.Fprintln(w)
	v.printResources(w)
	v.printCheck(w)
}

func (v *Report) loop() string {
	text := fmt.Sprintf("closed loop of %d connections", v.Concurrency)
	if v.Loop == "open" {
		text = fmt.Sprintf("open loop of %d requests/s over %d connections", v.Rate, v.Concurrency)
	}
	if v.Merchants > 1 {
		text += fmt.Sprintf(", %d merchants", v.Merchants)
	}
	return fmt.Sprintf("%s, %.1f s after %.1f s of warm-up", text, v.Seconds, v.WarmupSeconds)
}

// shownLatency formats microseconds with a suitable unit.
func shownLatency(micros, count int64) string {
	if count == 0 {
		return "-"
	}
	return shownMicros(micros)
}

func shownMicros(micros int64) string {
	switch d := time.Duration(micros) * time.Microsecond; {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", micros)
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(micros)/1e3)
	case d < 10*time.Second:
		return fmt.Sprintf("%.0f ms", float64(micros)/1e3)
	default:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
}

func shownErrors(errors map[string]int64) string {
	if len(errors) == 0 {
		return "0"
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(errors)) {
		list = append(list, fmt.Sprintf("%d × %s", errors[name], name))
	}
	return strings.Join(list, ", ")
}

const notAvailable = "n/a"

func (v *Report) printResources(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, cells ...string) {
		_, _ = fmt.Fprintln(t, "  "+name+"\t"+strings.Join(cells, "\t"))
	}
	g := &v.Gateway
	row("CPU of the gateway", shown(g.CPUMicros, "%.0f µs each"), shown(g.CPUSeconds, "%.2f s in total"))
	row("CPU of the load", shown(v.Generator.CPUMicros, "%.0f µs each"), shown(v.Generator.CPUSeconds, "%.2f s in total"))
	peak := notAvailable
	if g.PeakMemoryBytes != nil {
		peak = fmt.Sprintf("%.1f MB", float64(*g.PeakMemoryBytes)/1e6)
	}
	row("peak memory of the gateway", peak)
	written := shown(g.WrittenPer, "%.0f bytes each")
	if g.WrittenBy != "" {
		written += ", by the " + g.WrittenBy
	}
	row("written to disk", written)
	if v.Lag != nil {
		row("delay of the load generator", "p50 "+shownMicros(v.Lag.P50), "p99 "+shownMicros(v.Lag.P99))
	}
	_ = t.Flush()
	if v.Unsent > 0 {
		_, _ = fmt.Fprintf(w, "  %d requests were due but found no free connection: their latencies are not counted.\n", v.Unsent)
	}
}

func shown(v *float64, form string) string {
	if v == nil {
		return notAvailable
	}
	return fmt.Sprintf(form, *v)
}

func (v *Report) printCheck(w io.Writer) {
	c := &v.Check
	_, _ = fmt.Fprintf(w, "\nAcknowledged %d orders; found %d of them in the lists, and read %d by id.", c.Acknowledged, c.Found, c.Sampled)
	if c.Verified && len(c.Defects) == 0 {
		_, _ = fmt.Fprint(w, " The ledger is correct.")
	}
	_, _ = fmt.Fprintln(w)
	for _, group := range []struct {
		title string
		n     int64
		list  []string
	}{{"MISSING", c.MissingCount, c.Missing}, {"WRONG", c.WrongCount, c.Wrong}, {"DEFECTS", int64(len(c.Defects)), c.Defects}} {
		if group.n > 0 {
			_, _ = fmt.Fprintf(w, "%s: %d\n  %s\n", group.title, group.n, strings.Join(group.list, "\n  "))
		}
	}
	for _, note := range v.Notes {
		_, _ = fmt.Fprintln(w, note)
	}
}
