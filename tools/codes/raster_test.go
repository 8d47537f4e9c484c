package codes_test

import (
	"encoding/xml"
	"image"
	"image/color"
	"regexp"
	"strconv"
	"strings"
)

// fataler is implemented by tests of each kind.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// drawing is the subset of SVG that the package writes.
type drawing struct {
	XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
	ViewBox string   `xml:"viewBox,attr"`
	Paths   []struct {
		Fill   string `xml:"fill,attr"`
		Stroke string `xml:"stroke,attr"`
		D      string `xml:"d,attr"`
	} `xml:"path"`
}

var pathStep = regexp.MustCompile(`([MmhvHz])([-0-9. ]*)`)

// rasterise draws like a browser, each unit as scale pixels. It supports runs (M, m and h
// with a stroke) and upright boxes (M, h, v, z).
func rasterise(t fataler, svg []byte, scale int) *image.Gray {
	t.Helper()
	var in drawing
	if err := xml.Unmarshal(svg, &in); err != nil {
		t.Fatal(err)
	}
	box := numbers(t, in.ViewBox)
	picture := image.NewGray(image.Rect(0, 0, int(box[2])*scale, int(box[3])*scale))
	for _, path := range in.Paths {
		shade := color.Gray{}
		if path.Fill == "#fff" {
			shade.Y = 255
		}
		for _, area := range areas(t, path.D, path.Stroke != "") {
			for y := area.Min.Y * scale; y < area.Max.Y*scale; y++ {
				for x := area.Min.X * scale; x < area.Max.X*scale; x++ {
					picture.SetGray(x, y, shade)
				}
			}
		}
	}
	return picture
}

// areas are the boxes that a path paints.
func areas(t fataler, d string, stroked bool) []image.Rectangle {
	t.Helper()
	var out []image.Rectangle
	var x, y, width, height float64
	for _, step := range pathStep.FindAllStringSubmatch(d, -1) {
		values := numbers(t, step[2])
		switch {
		case step[1] == "M":
			x, y, width, height = values[0], values[1], 0, 0
		case step[1] == "m":
			x, y = x+values[0], y+values[1]
		case step[1] == "h" && stroked:
			out = append(out, image.Rect(int(x), int(y-0.5), int(x+values[0]), int(y+0.5)))
			x += values[0]
		case step[1] == "h":
			width = max(width, values[0])
		case step[1] == "v":
			height = values[0]
		case step[1] == "z":
			out = append(out, image.Rect(int(x), int(y), int(x+width), int(y+height)))
		}
	}
	return out
}

func numbers(t fataler, text string) []float64 {
	t.Helper()
	var out []float64
	for _, field := range strings.Fields(text) {
		value, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, value)
	}
	return out
}
