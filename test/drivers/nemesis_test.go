package drivers

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// nemesis decides at which points the process dies.
type nemesis struct {
	random *rand.Rand
	next   int    // point of the next death; 0: none
	name   string // of the point of the first death, instead of next
	left   int    // deaths

	off, wasOff bool
	points      []string // that were passed
	killed      []string // points of deaths
	resolved    int      // cases, by people
}

// kills passes a point, and reports whether the process dies there.
func (n *nemesis) kills(name string) bool {
	if n.off {
		return false
	}
	n.points = append(n.points, name)
	switch {
	case n.name != "" && name != n.name, n.name == "" && len(n.points) != n.next:
		return false
	case n.name != "":
		n.name, n.next = "", len(n.points)
	}
	n.killed = append(n.killed, name)
	if n.left--; n.left > 0 {
		n.next += 1 + n.random.IntN(gapMax)
	}
	return true
}

// lateMax is shorter than any processor's quiet period.
const lateMax = 8 * time.Second

// late reports whether a request that is sent while the process dies arrives nevertheless, and
// how late.
func (n *nemesis) late(method string) (time.Duration, bool) {
	if method == http.MethodGet || n.random.IntN(2) == 0 {
		return 0, false
	}
	n.killed[len(n.killed)-1] += ", which arrives"
	return time.Duration(n.random.Int64N(int64(lateMax))), true
}
