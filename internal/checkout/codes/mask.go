package codes

import (
	"math/bits"

	"rsc.io/qr/coding"
)

// masks is the number of mask patterns of a QR code. The encoder applies any of
// them; this file chooses the one with the lowest penalty.
const masks = 8

// Penalty points of ISO/IEC 18004, 7.8.3.1.
const (
	pointsRun     = 3  // five modules of one colour in a row, and a point for each further one
	pointsBlock   = 3  // two by two modules of one colour
	pointsFinder  = 40 // looks like a finder pattern, with white before or behind it
	pointsBalance = 10 // for each full 5 % away from half dark
)

// A false finder pattern is 1011101, as a line through a corner has it, with
// four white modules before or behind it.
const (
	markCore   = 7
	markWhite  = 4
	markLength = markCore + markWhite
)

// strip is a row or column of modules as bits, the first one lowest; the
// largest code has 177.
type strip [3]uint64

func (s *strip) set(at int) { s[at/64] |= 1 << (at % 64) }

// from drops the first n modules, at most 63.
func (s strip) from(n int) strip {
	return strip{s[0]>>n | s[1]<<(64-n), s[1]>>n | s[2]<<(64-n), s[2] >> n}
}

func (s strip) and(t strip) strip { return strip{s[0] & t[0], s[1] & t[1], s[2] & t[2]} }

// alike has a bit for each position at which two strips are equal.
func (s strip) alike(t strip) strip { return strip{^(s[0] ^ t[0]), ^(s[1] ^ t[1]), ^(s[2] ^ t[2])} }

func (s strip) without(t strip) strip { return strip{s[0] &^ t[0], s[1] &^ t[1], s[2] &^ t[2]} }

func (s strip) count() int {
	return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) + bits.OnesCount64(s[2])
}

// first has the first n bits set.
func first(n int) (s strip) {
	for i := range s {
		s[i] = 1<<min(max(n-64*i, 0), 64) - 1
	}
	return s
}

// penalty is the number of penalty points of a code; fewer is better.
func penalty(code *coding.Code) int {
	size := code.Size
	var rows, columns [177]strip
	dark := 0
	for y := range size {
		for x := range size {
			if code.Black(x, y) {
				rows[y].set(x)
				columns[x].set(y)
			}
		}
		dark += rows[y].count()
	}
	points := 0
	for i := range size {
		points += line(rows[i], size) + line(columns[i], size)
		if i > 0 {
			points += blocks(rows[i-1], rows[i], size)
		}
	}
	away := dark*20 - size*size*10 // in units of a twentieth of all modules
	if away < 0 {
		away = -away
	}
	return points + away/(size*size)*pointsBalance
}

// line counts runs and false finder patterns along a row or column.
func line(modules strip, size int) int {
	pairs := modules.alike(modules.from(1)).and(first(size - 1))
	// Five equal modules are four equal pairs in a row. A run of n has n-4 such
	// positions, and costs n-2 points.
	fives := pairs.and(pairs.from(1)).and(pairs.from(2)).and(pairs.from(3))
	points := fives.count() + fives.without(fives.from(1)).count()*(pointsRun-1)
	return points + marks(modules, size)*pointsFinder
}

// marks counts false finder patterns along a row or column.
func marks(modules strip, size int) int {
	core := modules.without(modules.from(1)).and(modules.from(2)).and(modules.from(3)).and(modules.from(4)).
		without(modules.from(5)).and(modules.from(6)).and(first(size - markCore + 1))
	if core == (strip{}) {
		return 0
	}
	behind, before := core, core.from(markWhite)
	for i := range markWhite {
		behind = behind.without(modules.from(markCore + i))
		before = before.without(modules.from(i))
	}
	return behind.and(first(size-markLength+1)).count() + before.count()
}

// blocks counts squares of two by two modules of one colour.
func blocks(above, below strip, size int) int {
	squares := above.alike(above.from(1)).and(below.alike(below.from(1))).and(above.alike(below)).and(first(size - 1))
	return squares.count() * pointsBlock
}
