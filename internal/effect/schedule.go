package effect

import "time"

// Schedules of waits. The last one repeats.
var (
	// LookUpAfter is that of look-ups of an effect that is unknown or accepted.
	LookUpAfter = []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
		time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
	}
	// SendAgainAfter is that of sends after one that did not leave.
	SendAgainAfter = []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute,
	}
	// LaterAfter is that of sends after one that the processor did not take.
	LaterAfter = []time.Duration{5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute}
)

// LongestLater is the longest wait that a processor may name.
const LongestLater = 6 * time.Hour

// LookUpsSkipped is how many waits of its schedule an accepted effect skips: a notice normally
// reports its end sooner.
const LookUpsSkipped = 2

// wait is the nth wait of a schedule, from 0, with its jitter.
func wait(schedule []time.Duration, n int, in *Input) time.Duration {
	d := schedule[min(max(n, 0), len(schedule)-1)]
	return d + d/1000*time.Duration(in.Jitter)
}
