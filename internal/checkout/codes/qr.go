package codes

import (
	"fmt"

	"rsc.io/qr/coding"
)

// QuietZone is the white border that a QR code needs, in modules (ISO/IEC
// 18004, 5.3.8).
const QuietZone = 4

// level corrects errors in 15 % of the code, as is usual for payment codes: a
// lower level does not survive a scratched screen, and a higher one makes the
// modules of a long Pix code too small for an old camera.
const level = coding.M

// Modules are the squares of a QR code, without its quiet zone.
type Modules struct {
	code *coding.Code
}

// Size is the number of modules along each side, 21 to 177.
func (m Modules) Size() int { return m.code.Size }

// Dark reports whether a module is dark; false outside the code.
func (m Modules) Dark(x, y int) bool { return m.code.Black(x, y) }

// Run is a row of adjacent dark modules.
type Run struct{ X, Y, Length int }

// Runs lists the dark modules from left to right and from top to bottom,
// adjacent ones of a row as one run.
func (m Modules) Runs() []Run {
	runs := make([]Run, 0, m.Size()*m.Size()/4)
	for y := range m.Size() {
		for x := 0; x < m.Size(); x++ {
			first := x
			for m.Dark(x, y) {
				x++
			}
			if x > first {
				runs = append(runs, Run{X: first, Y: y, Length: x - first})
			}
		}
	}
	return runs
}

// Encode makes the smallest QR code that holds a text, with the mask of the
// lowest penalty. Errors: ErrPayload.
func Encode(payload string) (Modules, error) {
	if payload == "" {
		return Modules{}, fmt.Errorf("%w: it is empty", ErrPayload)
	}
	text := encoding(payload)
	version := coding.Version(coding.MinVersion)
	for text.Bits(version) > version.DataBytes(level)*8 {
		if version++; version > coding.MaxVersion {
			return Modules{}, fmt.Errorf("%w: %d bytes do not fit", ErrPayload, len(payload))
		}
	}
	var best Modules
	lowest := -1
	for mask := range coding.Mask(masks) {
		plan, err := coding.NewPlan(version, level, mask)
		if err != nil {
			return Modules{}, fmt.Errorf("plan a QR code: %w", err)
		}
		code, err := plan.Encode(text)
		if err != nil {
			return Modules{}, fmt.Errorf("encode a QR code: %w", err)
		}
		if points := penalty(code); lowest < 0 || points < lowest {
			best, lowest = Modules{code}, points
		}
	}
	return best, nil
}

// encoding is the densest mode for a text.
func encoding(payload string) coding.Encoding {
	switch {
	case coding.Num(payload).Check() == nil:
		return coding.Num(payload)
	case coding.Alpha(payload).Check() == nil:
		return coding.Alpha(payload)
	default:
		return coding.String(payload)
	}
}
