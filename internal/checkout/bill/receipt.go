package bill

// Where the parts of the page begin, and the size of the Pix.
const (
	receiptTop = 12.0
	cutAt      = 158.0
	slipTop    = 165.0
	pixSide    = 46.0
	statements = 12
)

// receipt is the payer's part: what was bought from whom, and the Pix.
func (p *page) receipt() {
	top := p.head(receiptTop, "Recibo do pagador", 11)
	top = p.row(top, cell{"Beneficiário", p.Beneficiary.title(), 130, false, true}, cell{"Vencimento", day(p.Due), 50, true, true})
	top = p.row(top,
		cell{"Endereço do beneficiário", joined(p.Beneficiary), 130, false, false},
		cell{"Agência/Código do beneficiário", p.Agency, 50, true, false})
	top = p.row(top, cell{"Pagador", p.Payer.title(), 130, false, false}, cell{"Nosso número", p.OurNumber, 50, true, false})
	top = p.row(top,
		cell{"Nº do documento", p.DocumentNumber, 90, false, false}, cell{"Data do documento", day(p.Issued), 40, false, false},
		cell{"Valor do documento", p.amount, 50, true, true})
	top = p.row(top, cell{"Linha digitável", p.line, width, false, true})
	p.specimen(top+26, 40)
	p.statement(top)
	if p.pix != nil {
		p.payByPix(right-pixSide, top+6)
	}
	p.font("", labelSize)
	mark := latin("Autenticação mecânica")
	p.pdf.Text(right-p.pdf.GetStringWidth(mark), cutAt-14, mark)
}

// statement writes the description of the bill, left of the Pix if there is
// one.
func (p *page) statement(top float64) {
	available := width - 2*padding
	if p.pix != nil {
		available -= pixSide + 6
	}
	p.label(left+padding, top+1, "Demonstrativo")
	baseline := top + 8
	for i, line := range p.Statement {
		if i == statements {
			break
		}
		p.text(left+padding, baseline, available, "", valueSize, line)
		baseline += 4.6
	}
}

// payByPix draws the code with its quiet zone, each run of modules as a
// rectangle.
func (p *page) payByPix(x, y float64) {
	const quiet = 4 // modules
	p.font("B", 10)
	title := latin("Pague com Pix")
	p.pdf.Text(x+(pixSide-p.pdf.GetStringWidth(title))/2, y, title)
	module := pixSide / float64(p.pix.Size()+2*quiet)
	p.pdf.SetFillColor(255, 255, 255)
	p.pdf.Rect(x, y+1, pixSide, pixSide, "F")
	p.pdf.SetFillColor(0, 0, 0)
	for _, run := range p.pix.Runs() {
		p.pdf.Rect(x+float64(run.X+quiet)*module, y+1+float64(run.Y+quiet)*module, float64(run.Length)*module, module, "F")
	}
	p.font("", 7)
	for i, line := range []string{"Aponte a câmera do aplicativo do seu", "banco: o pagamento cai na hora."} {
		text := latin(line)
		p.pdf.Text(x+(pixSide-p.pdf.GetStringWidth(text))/2, y+pixSide+3.5+float64(i)*3, text)
	}
}

// cut is the dashed line between the two parts.
func (p *page) cut() {
	p.font("", labelSize)
	note := latin("Corte na linha pontilhada")
	p.pdf.Text(right-p.pdf.GetStringWidth(note), cutAt-1.2, note)
	p.pdf.SetDashPattern([]float64{1.5, 1.5}, 0)
	p.rule(left-5, cutAt, right+5, cutAt, thin)
	p.pdf.SetDashPattern(nil, 0)
}

// specimen writes SEM VALOR across a part, too pale to hide the text over it.
func (p *page) specimen(middle, size float64) {
	if !p.Specimen {
		return
	}
	const text = "SEM VALOR"
	p.pdf.SetTextColor(225, 225, 225)
	p.font("B", size)
	p.pdf.Text(left+(width-pixSide-p.pdf.GetStringWidth(text))/2, middle+size*pointMM/3, text)
	p.pdf.SetTextColor(0, 0, 0)
}

// joined is an address in one line.
func joined(party Party) string {
	second := party.address(1)
	if second == "" {
		return party.address(0)
	}
	return party.address(0) + " - " + second
}
