package codes

import (
	"testing"

	"pgregory.net/rapid"
	"rsc.io/qr/coding"
)

// The penalty equals the one computed module by module.
func TestPenaltyAsTheStandardCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		version := coding.Version(rapid.IntRange(coding.MinVersion, coding.MaxVersion).Draw(t, "version"))
		plan, err := coding.NewPlan(version, level, coding.Mask(rapid.IntRange(0, masks-1).Draw(t, "mask")))
		if err != nil {
			t.Fatal(err)
		}
		code, err := plan.Encode(coding.String(rapid.StringN(0, 10, 10).Draw(t, "text")))
		if err != nil {
			t.Fatal(err)
		}
		// Random damage adds patterns that no text produces.
		for at, value := range rapid.MapOfN(rapid.IntRange(0, len(code.Bitmap)-1), rapid.Byte(), 0, 50).Draw(t, "damage") {
			code.Bitmap[at] = value
		}
		if got, want := penalty(code), counted(code); got != want {
			t.Fatalf("%d points, want %d", got, want)
		}
	})
}

func counted(code *coding.Code) int {
	points, dark, size := 0, 0, code.Size
	for y := range size {
		row, column := make([]bool, size), make([]bool, size)
		for x := range size {
			row[x], column[x] = code.Black(x, y), code.Black(y, x)
			if row[x] {
				dark++
			}
			if x > 0 && y > 0 && row[x] == row[x-1] && row[x] == code.Black(x, y-1) && row[x] == code.Black(x-1, y-1) {
				points += 3
			}
		}
		points += countedLine(row) + countedLine(column)
	}
	percent := dark * 100 / (size * size)
	if rest := dark * 100 % (size * size); percent < 50 && rest > 0 {
		percent++ // towards the middle
	}
	if percent < 50 {
		percent = 100 - percent
	}
	return points + (percent-50)/5*10
}

func countedLine(modules []bool) int {
	points, run := 0, 0
	for i, module := range modules {
		if i == 0 || module != modules[i-1] {
			run = 0
		}
		if run++; run == 5 {
			points += 3
		} else if run > 5 {
			points++
		}
		if i+11 <= len(modules) {
			text := ""
			for _, m := range modules[i : i+11] {
				text += map[bool]string{true: "1", false: "0"}[m]
			}
			if text == "10111010000" || text == "00001011101" {
				points += 40
			}
		}
	}
	return points
}
