package codes

import "rsc.io/qr/coding"

// masks is how many patterns a QR code may be overlaid with. The encoder draws
// any of them; which reads best is ours to choose.
const masks = 8

// Points against a mask, as ISO/IEC 18004, 7.8.3.1 counts them.
const (
	pointsRun     = 3  // five modules of one colour in a row, and one more for each further one
	pointsBlock   = 3  // two by two modules of one colour
	pointsFinder  = 40 // looks like a corner mark, with white before or behind it
	pointsBalance = 10 // for each full 5 % away from half dark
	runShortest   = 5
)

// finder is a corner mark's 1:1:3:1:1 with four white modules behind it;
// finderMirrored has them before it.
const (
	finderLength   = 11
	finder         = 0b10111010000
	finderMirrored = 0b00001011101
)

// penalty is how hard a code is to read: the lower, the better.
func penalty(code *coding.Code) int {
	size := code.Size
	rows := make([]byte, size*size)
	columns := make([]byte, size*size)
	dark := 0
	for y := range size {
		for x := range size {
			if code.Black(x, y) {
				rows[y*size+x], columns[x*size+y] = 1, 1
				dark++
			}
		}
	}
	points := blocks(rows, size)
	for i := 0; i < size*size; i += size {
		points += line(rows[i:i+size]) + line(columns[i:i+size])
	}
	away := dark*20 - size*size*10 // in units of a twentieth of all modules
	if away < 0 {
		away = -away
	}
	return points + away/(size*size)*pointsBalance
}

// line counts runs and false corner marks along a row or column.
func line(modules []byte) int {
	points, run, window := 0, 0, 0
	for i, module := range modules {
		if i > 0 && module == modules[i-1] {
			run++
		} else {
			run = 1
		}
		switch {
		case run == runShortest:
			points += pointsRun
		case run > runShortest:
			points++
		}
		window = (window<<1 | int(module)) & (1<<finderLength - 1)
		if i >= finderLength-1 && (window == finder || window == finderMirrored) {
			points += pointsFinder
		}
	}
	return points
}

// blocks counts squares of two by two modules of one colour.
func blocks(rows []byte, size int) int {
	points := 0
	for above := 0; above+size < len(rows); above += size {
		below := above + size
		for x := range size - 1 {
			module := rows[above+x]
			if module == rows[above+x+1] && module == rows[below+x] && module == rows[below+x+1] {
				points += pointsBlock
			}
		}
	}
	return points
}
