package checkout

import (
	"fmt"
	"math"
)

// The background of each theme in style.css; of a theme's two backgrounds, the
// one with the lower contrast to text.
var (
	lightBackground = color{0xf4, 0xf4, 0xf1}
	darkBackground  = color{0x20, 0x23, 0x26}
)

// contrastMin is the minimum contrast of text to its background (4.5 in WCAG
// 2.2, 1.4.3, AA), with a margin for rounding.
const contrastMin = 4.6

// colorDefault is the accent of merchants that have not set one.
const colorDefault = "#0b6b50"

// color is sRGB.
type color [3]uint8

// parseColor reads #rrggbb; ok is false for anything else.
func parseColor(text string) (c color, ok bool) {
	if len(text) != 7 || text[0] != '#' {
		return c, false
	}
	for i := range c {
		high, low := hexDigit(text[1+2*i]), hexDigit(text[2+2*i])
		if high < 0 || low < 0 {
			return c, false
		}
		c[i] = uint8(high<<4 | low)
	}
	return c, true
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// String writes #rrggbb.
func (c color) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// luminance is the relative luminance of WCAG 2.2.
func (c color) luminance() float64 {
	var linear [3]float64
	for i, v := range c {
		s := float64(v) / 255
		if s <= 0.04045 {
			linear[i] = s / 12.92
		} else {
			linear[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return 0.2126*linear[0] + 0.7152*linear[1] + 0.0722*linear[2]
}

// contrast is the contrast ratio of WCAG 2.2, 1 to 21.
func contrast(a, b color) float64 {
	la, lb := a.luminance(), b.luminance()
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// mixSteps is the number of steps in which a colour is mixed with black or
// white.
const mixSteps = 64

// withContrast returns the colour closest to c that has enough contrast to
// background: darker, or on a dark background brighter and then mixed with
// white. It serves both as text on background and as a button with text in the
// background's colour.
func (c color) withContrast(background color) color {
	var end uint8
	if background.luminance() < 0.18 {
		end = 255
		if c = c.brighten(background); contrast(c, background) >= contrastMin {
			return c
		}
	}
	for step := range mixSteps + 1 {
		var mixed color
		for i, v := range c {
			mixed[i] = uint8((int(v)*(mixSteps-step) + int(end)*step) / mixSteps)
		}
		if contrast(mixed, background) >= contrastMin {
			return mixed
		}
	}
	return color{end, end, end}
}

// brighten scales a colour up, which keeps its hue, until it has enough
// contrast or cannot be brighter.
func (c color) brighten(background color) color {
	top := int(max(c[0], c[1], c[2]))
	for level := top; level <= 255 && top > 0; level++ {
		var scaled color
		for i, v := range c {
			scaled[i] = uint8(int(v) * level / top)
		}
		if contrast(scaled, background) >= contrastMin || level == 255 {
			return scaled
		}
	}
	return c
}

// accentCSS is the merchant's part of the style: its colour, legible in both
// themes.
func accentCSS(text string) string {
	c, ok := parseColor(text)
	if !ok {
		c, _ = parseColor(colorDefault)
	}
	return fmt.Sprintf(":root{--accent:%s}@media (prefers-color-scheme:dark){:root{--accent:%s}}", c.withContrast(lightBackground), c.withContrast(darkBackground))
}
