package codes_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/oned"
	"github.com/makiuchi-d/gozxing/qrcode"
	"github.com/makiuchi-d/gozxing/qrcode/decoder"
	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/checkout/codes"
)

// pix is a code as processors make them: dynamic, with an amount.
const pix = "00020101021226770014BR.GOV.BCB.PIX2555pix.example.com/qr/93598be0-1bd0-4997-8318-81776a1d8a99" +
	"520400005303986540510.005802BR5907EMPRESA6009SAO PAULO62070503***6304EEAB"

// bill is the bar code of a boleto of R$ 3,700.00, published in many test suites.
const bill = "23799755200003700003381260007827139500006330"

func TestQRReadsAsItsText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1", "A", "a", pix, "maçã, R$ 1,00 €", strings.Repeat("9", 5596), strings.Repeat("A", 3391), strings.Repeat("a", 2331)} {
		svg, err := codes.QR(text)
		if err != nil {
			t.Fatalf("%.20q: %v", text, err)
		}
		if got := readQR(t, svg); got != text {
			t.Errorf("%.20q: read as %.20q", text, got)
		}
	}
}

func TestQRRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", strings.Repeat("a", 2332), strings.Repeat("9", 5597)} {
		if _, err := codes.QR(text); !errors.Is(err, codes.ErrPayload) {
			t.Errorf("%d bytes: %v, want ErrPayload", len(text), err)
		}
	}
}

// Any text up to twice the longest Pix code is drawn so that another program
// reads it, and small enough for a page of 60 KB.
func TestQRProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom(nil, unicode.ASCII_Hex_Digit, unicode.Latin), 1, 1024, 1024).Draw(t, "text")
		svg, err := codes.QR(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := readQR(t, svg); got != text {
			t.Fatalf("read as %q", got)
		}
		if len(text) <= 512 && len(svg) > 24<<10 {
			t.Fatalf("%d bytes of SVG for a code of %d", len(svg), len(text))
		}
	})
}

func TestITFReadsAsItsDigits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[0-9]{44}`).Draw(t, "digits")
		svg, err := codes.ITF(digits)
		if err != nil {
			t.Fatal(err)
		}
		if got := readITF(t, svg); got != digits {
			t.Fatalf("read as %q", got)
		}
	})
}

func TestITFRefuses(t *testing.T) {
	t.Parallel()
	for _, digits := range []string{"", bill[1:], bill + "0", strings.Repeat("a", 44), bill[:43] + "/", bill[:43] + ":", bill[:42] + "é"} {
		if _, err := codes.ITF(digits); !errors.Is(err, codes.ErrBarcode) {
			t.Errorf("%q: %v, want ErrBarcode", digits, err)
		}
	}
}

// The drawings are part of pages with a strict policy, in light and in dark.
func TestDrawingsStandAlone(t *testing.T) {
	t.Parallel()
	qr, err := codes.QR(pix)
	if err != nil {
		t.Fatal(err)
	}
	itf, err := codes.ITF(bill)
	if err != nil {
		t.Fatal(err)
	}
	for _, svg := range [][]byte{qr, itf} {
		for _, foreign := range []string{"style", "currentColor", "href", "<script", "class", " id="} {
			if strings.Contains(string(svg), foreign) {
				t.Errorf("%s in %s", foreign, svg)
			}
		}
	}
	if len(qr) > 8<<10 || len(itf) > 4<<10 {
		t.Errorf("%d and %d bytes: want at most 8 and 4 KiB", len(qr), len(itf))
	}
}

func FuzzQR(f *testing.F) {
	f.Add(pix)
	f.Add("0123")
	f.Add("A-Z 0:9")
	f.Add("\xff\x00é")
	f.Fuzz(func(t *testing.T, text string) {
		svg, err := codes.QR(text)
		if errors.Is(err, codes.ErrPayload) && (text == "" || len(text) > 2331) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := readQRBytes(t, svg); got != text {
			t.Fatalf("%q read as %q", text, got)
		}
	})
}

func FuzzITF(f *testing.F) {
	f.Add(bill)
	f.Add("x")
	f.Fuzz(func(t *testing.T, digits string) {
		svg, err := codes.ITF(digits)
		if errors.Is(err, codes.ErrBarcode) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := readITF(t, svg); got != digits {
			t.Fatalf("%q read as %q", digits, got)
		}
	})
}

func BenchmarkQR(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := codes.QR(pix); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkITF(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := codes.ITF(bill); err != nil {
			b.Fatal(err)
		}
	}
}

// readQR reads a drawing with another library.
func readQR(t fataler, svg []byte) string {
	t.Helper()
	picture := rasterise(t, svg, 2)
	bitmap, err := gozxing.NewBinaryBitmapFromImage(picture)
	if err != nil {
		t.Fatal(err)
	}
	result, err := qrcode.NewQRCodeReader().Decode(bitmap, map[gozxing.DecodeHintType]any{
		gozxing.DecodeHintType_PURE_BARCODE: true, gozxing.DecodeHintType_CHARACTER_SET: "UTF-8",
	})
	if err != nil {
		t.Fatal(err)
	}
	return result.GetText()
}

// readQRBytes reads a drawing's raw bytes, in any character set.
func readQRBytes(t fataler, svg []byte) string {
	t.Helper()
	picture := rasterise(t, svg, 1)
	side := picture.Bounds().Dx() - 2*codes.QuietZone
	matrix, err := gozxing.NewSquareBitMatrix(side)
	if err != nil {
		t.Fatal(err)
	}
	for y := range side {
		for x := range side {
			if picture.GrayAt(x+codes.QuietZone, y+codes.QuietZone).Y == 0 {
				matrix.Set(x, y)
			}
		}
	}
	result, err := decoder.NewDecoder().Decode(matrix, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_CHARACTER_SET: "ISO-8859-1"})
	if err != nil {
		t.Fatal(err)
	}
	segments := result.GetByteSegments()
	if len(segments) == 0 {
		return result.GetText() // digits and capitals have no bytes of their own
	}
	return string(segments[0])
}

func readITF(t fataler, svg []byte) string {
	t.Helper()
	bitmap, err := gozxing.NewBinaryBitmapFromImage(rasterise(t, svg, 2))
	if err != nil {
		t.Fatal(err)
	}
	result, err := oned.NewITFReader().Decode(bitmap, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_ALLOWED_LENGTHS: []int{44}})
	if err != nil {
		t.Fatal(err)
	}
	return result.GetText()
}
