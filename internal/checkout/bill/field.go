package bill

import "time"

// The page, in millimetres.
const (
	left      = 15.0
	width     = 180.0
	right     = left + width
	padding   = 1.2
	rowHeight = 7.5
	thin      = 0.15
	thick     = 0.5
)

// dateLayout is the Brazilian format of a day.
const dateLayout = "02/01/2006"

// cell is a field of a row: its label on top, its text below.
type cell struct {
	label, text string
	width       float64
	right, bold bool
}

// row draws the fields next to each other from the left edge, with a line
// below.
func (p *page) row(top float64, cells ...cell) float64 {
	x := left
	for i, c := range cells {
		if i > 0 {
			p.rule(x, top, x, top+rowHeight, thin)
		}
		p.field(x, top, c)
		x += c.width
	}
	p.rule(left, top+rowHeight, x, top+rowHeight, thin)
	return top + rowHeight
}

// field writes a field's label and text.
func (p *page) field(x, top float64, c cell) {
	p.label(x+padding, top, c.label)
	style := ""
	if c.bold {
		style = "B"
	}
	inner := c.width - 2*padding
	text := p.fit(c.text, style, valueSize, valueSizeMin, inner)
	at := x + padding
	if c.right {
		at += inner - p.pdf.GetStringWidth(text)
	}
	p.pdf.Text(at, top+rowHeight-1.6, text)
}

func (p *page) label(x, top float64, text string) {
	p.font("", labelSize)
	p.pdf.Text(x, top+2.3, latin(text))
}

// text writes one line that is cut to the width.
func (p *page) text(x, baseline, width float64, style string, size float64, text string) {
	p.pdf.Text(x, baseline, p.fit(text, style, size, size, width))
}

func (p *page) rule(x1, y1, x2, y2, weight float64) {
	p.pdf.SetLineWidth(weight)
	p.pdf.Line(x1, y1, x2, y2)
}

// day prints a day; "" for the zero time.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(dateLayout)
}

// head draws the bank's name, its number and the digitable line, at the top of
// both parts of the page.
func (p *page) head(top float64, text string, size float64) float64 {
	const nameWidth, codeWidth, height = 50.0, 18.0, 9.0
	bottom := top + height
	p.pdf.Text(left, bottom-2.2, p.fit(p.Bank, "B", 11, 7, nameWidth-2))
	p.rule(left+nameWidth, top+1.5, left+nameWidth, bottom, thick)
	p.rule(left+nameWidth+codeWidth, top+1.5, left+nameWidth+codeWidth, bottom, thick)
	p.font("B", 14)
	code := bankCode(p.Barcode[:3])
	p.pdf.Text(left+nameWidth+(codeWidth-p.pdf.GetStringWidth(code))/2, bottom-2, code)
	shown := p.fit(text, "B", size, 8, width-nameWidth-codeWidth-2)
	p.pdf.Text(right-p.pdf.GetStringWidth(shown), bottom-2.2, shown)
	p.rule(left, bottom, right, bottom, thick)
	return bottom
}

// bankCode is a bank's number with its check digit: modulo 11, weights 4, 3 and
// 2. A check digit of 10 is printed as 0, by Sicredi as X.
func bankCode(bank string) string {
	if bank == "748" {
		return "748-X"
	}
	sum := int(bank[0]-'0')*4 + int(bank[1]-'0')*3 + int(bank[2]-'0')*2
	digit := 11 - sum%11
	if digit > 9 {
		digit = 0
	}
	return bank + "-" + string(rune('0'+digit))
}
