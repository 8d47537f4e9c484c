package bill

import (
	"strings"
	"unicode"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// Font sizes in points. A text too long for its field gets a smaller font
// first, and is then cut.
const (
	labelSize    = 5.5
	valueSize    = 8.5
	valueSizeMin = 6.5
	pointMM      = 25.4 / 72
)

// ellipsis ends a text that was cut, in the font's character set.
const ellipsis = "\x85"

// legible removes control characters, marks of direction and line breaks from a
// text, and composes its letters.
func legible(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, norm.NFC.String(text))
	return strings.Join(strings.Fields(text), " ")
}

// latin encodes a text in Windows-1252, the character set of the fonts that
// every PDF reader has. A letter that it lacks loses its marks; if it is still
// missing, it becomes "?".
func latin(text string) string {
	var out strings.Builder
	for _, r := range legible(text) {
		if c, ok := charmap.Windows1252.EncodeRune(r); ok {
			out.WriteByte(c)
			continue
		}
		base := []rune(norm.NFKD.String(string(r)))[0]
		if c, ok := charmap.Windows1252.EncodeRune(base); ok {
			out.WriteByte(c)
		} else if !unicode.IsMark(r) {
			out.WriteByte('?')
		}
	}
	return out.String()
}

// font selects a style: "" or "B" for bold.
func (p *page) font(style string, size float64) { p.pdf.SetFont("Helvetica", style, size) }

// fit sets the size at which a text fits a width, at least smallest, and
// returns the text, cut if necessary.
func (p *page) fit(text, style string, size, smallest, width float64) string {
	text = latin(text)
	for ; size > smallest; size -= 0.5 {
		if p.font(style, size); p.pdf.GetStringWidth(text) <= width {
			return text
		}
	}
	p.font(style, smallest)
	return p.shorten(text, width)
}

// shorten cuts a text to a width at the current font size.
func (p *page) shorten(text string, width float64) string {
	if p.pdf.GetStringWidth(text) <= width {
		return text
	}
	available := width - p.pdf.GetStringWidth(ellipsis)
	for i := range len(text) {
		if available -= p.pdf.GetStringWidth(text[i : i+1]); available < 0 {
			return text[:i] + ellipsis
		}
	}
	return text
}

// document formats a CPF or CNPJ with its punctuation; other texts are returned
// as they are.
func document(bare string) string {
	switch len(bare) {
	case 11:
		return "CPF " + bare[0:3] + "." + bare[3:6] + "." + bare[6:9] + "-" + bare[9:]
	case 14:
		return "CNPJ " + bare[0:2] + "." + bare[2:5] + "." + bare[5:8] + "/" + bare[8:12] + "-" + bare[12:]
	default:
		return bare
	}
}

// title is a party's name and document in one line.
func (p Party) title() string {
	if p.Document == "" {
		return p.Name
	}
	return p.Name + " - " + document(p.Document)
}

// address is one line of a party's address, or "".
func (p Party) address(line int) string {
	if line < len(p.Address) {
		return p.Address[line]
	}
	return ""
}
