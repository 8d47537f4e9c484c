package codes

import "fmt"

// barsHeight is the height of the bars in narrow elements, in the proportion of
// 13 mm to 103 mm.
const barsHeight = (BarcodeModules*BarcodeHeightMM + BarcodeWidthMM/2) / BarcodeWidthMM

// QR draws a text as a QR code in SVG, with its quiet zone; a unit of the view
// box is a module. It has no size of its own: it fills its box, and is sharpest
// if a module is a whole number of pixels. Errors: ErrPayload.
func QR(payload string) ([]byte, error) {
	modules, err := Encode(payload)
	if err != nil {
		return nil, err
	}
	side := modules.Size() + 2*QuietZone
	out := canvas(side, side, "")
	// A run is a stroke through the middle of its row. Its position is relative
	// to the previous one, which is shorter.
	out = append(out, `<path stroke="#000" d="`...)
	x, y := 0, -1
	for _, run := range modules.Runs() {
		if run.Y == y {
			out = fmt.Appendf(out, "m%d 0h%d", run.X-x, run.Length)
		} else {
			out = fmt.Appendf(out, "M%d %d.5h%d", run.X+QuietZone, run.Y+QuietZone, run.Length)
		}
		x, y = run.X+run.Length, run.Y
	}
	return append(out, `"/></svg>`...), nil
}

// ITF draws the 44 digits of a boleto as interleaved 2 of 5 in SVG, with its
// quiet zones. At its own size a narrow bar is one CSS pixel wide; on paper it
// needs a width of 113.2 mm and a height of 13 mm, so that the bars are 103 mm
// wide. Errors: those of Bars.
func ITF(barcode string) ([]byte, error) {
	bars, err := Bars(barcode)
	if err != nil {
		return nil, err
	}
	const width = BarcodeModules + 2*BarcodeQuietZone
	// Bars may be stretched to any height.
	out := canvas(width, barsHeight, fmt.Sprintf(` width="%d" height="%d" preserveAspectRatio="none"`, width, barsHeight))
	out = append(out, `<path d="`...)
	x := BarcodeQuietZone
	for i, bar := range bars {
		if i%2 == 0 {
			out = fmt.Appendf(out, "M%d 0h%dv%dh-%dz", x, bar, barsHeight, bar)
		}
		x += bar
	}
	return append(out, `"/></svg>`...), nil
}

// canvas begins a drawing with its white background.
func canvas(width, height int, attributes string) []byte {
	return fmt.Appendf(make([]byte, 0, 8<<10),
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d"%s shape-rendering="crispEdges"><path fill="#fff" d="M0 0h%dv%dH0z"/>`,
		width, height, attributes, width, height)
}
