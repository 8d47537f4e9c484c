package codes

import "fmt"

// Dimensions of a boleto's bar code (FEBRABAN, "Layout padrão de código de
// barras"): interleaved 2 of 5, 103 mm wide and 13 mm high, no check digit of
// its own, wide elements three times a narrow one.
const (
	// BarcodeWidthMM and BarcodeHeightMM are the size of the bars on paper,
	// without quiet zone.
	BarcodeWidthMM  = 103
	BarcodeHeightMM = 13
	// BarcodeModules is the width of the bars in narrow elements: 4 for the
	// start, 18 for each of 22 pairs of digits, and 5 for the stop.
	BarcodeModules = 4 + 22*18 + 5
	// BarcodeQuietZone is the white on each side, in narrow elements: 5 mm.
	BarcodeQuietZone = 20

	barcodeDigits = 44
	wide          = 3
)

// widths has the five elements of each digit, two of which are wide.
var widths = [10][5]int{
	{1, 1, wide, wide, 1}, {wide, 1, 1, 1, wide}, {1, wide, 1, 1, wide}, {wide, wide, 1, 1, 1}, {1, 1, wide, 1, wide},
	{wide, 1, wide, 1, 1}, {1, wide, wide, 1, 1}, {1, 1, 1, wide, wide}, {wide, 1, 1, wide, 1}, {1, wide, 1, wide, 1},
}

// Bars are the widths of a bar code's bars and spaces in narrow elements,
// alternating and starting with a bar; their sum is BarcodeModules. Errors:
// ErrBarcode. It does not check that the digits are a valid boleto: see package
// boleto.
func Bars(barcode string) ([]int, error) {
	if len(barcode) != barcodeDigits {
		return nil, fmt.Errorf("%w: %d characters instead of %d digits", ErrBarcode, len(barcode), barcodeDigits)
	}
	bars := make([]int, 0, 4+barcodeDigits*5+3)
	bars = append(bars, 1, 1, 1, 1)
	for i := 0; i < len(barcode); i += 2 {
		inBars, inSpaces := barcode[i]-'0', barcode[i+1]-'0'
		if inBars > 9 || inSpaces > 9 {
			return nil, fmt.Errorf("%w: something other than digits", ErrBarcode)
		}
		for element := range 5 {
			bars = append(bars, widths[inBars][element], widths[inSpaces][element])
		}
	}
	return append(bars, wide, 1, 1), nil
}
