package bench

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Print writes a report for people.
func (v *GrowthReport) Print(w io.Writer) {
	orders := v.Payins + v.Payouts
	_, _ = fmt.Fprintf(w, "%d pay-ins and %d payouts on %s, %.2f GB", v.Payins, v.Payouts, v.Engine, float64(v.Bytes)/1e9)
	if orders > 0 {
		_, _ = fmt.Fprintf(w, ", %d bytes an order", v.Bytes/orders)
	}
	_, _ = fmt.Fprintf(w, "; %s, %d CPUs\n\n", v.Machine, v.CPUs)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "\tp50\tp99\tsamples\tto the base\t")
	for i := range v.Figures {
		f := &v.Figures[i]
		cells := []string{f.Name, shownMicros(f.P50), shownMicros(f.P99)}
		if f.PerSecond > 0 {
			cells = []string{f.Name, fmt.Sprintf("%.0f/s", f.PerSecond), "-"}
		}
		ratio := "-"
		if f.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", f.Ratio)
		}
		_, _ = fmt.Fprintln(t, strings.Join(append(cells, strconv.Itoa(f.Count), ratio), "\t")+"\t")
	}
	_ = t.Flush()
}
