package bill

import "github.com/porteira/porteira/internal/checkout/codes"

// The slip has a column of amounts at its right.
const (
	amountsWidth = 45.0
	mainWidth    = width - amountsWidth
	instructions = 6
)

// slip is the part that a bank clears.
func (p *page) slip() {
	top := p.head(slipTop, p.line, 12)
	top = p.row(top,
		cell{"Local de pagamento", "Pagável em qualquer banco ou correspondente, e no aplicativo do seu banco", mainWidth, false, false},
		cell{"Vencimento", day(p.Due), amountsWidth, true, true})
	top = p.row(top,
		cell{"Beneficiário", p.Beneficiary.title(), mainWidth, false, false},
		cell{"Agência/Código do beneficiário", p.Agency, amountsWidth, true, false})
	top = p.row(top,
		cell{"Data do documento", day(p.Issued), 25, false, false}, cell{"Nº do documento", p.DocumentNumber, 45, false, false},
		cell{"Espécie doc.", "DM", 17, false, false}, cell{"Aceite", "N", 13, false, false},
		cell{"Data do processamento", day(p.Issued), 35, false, false}, cell{"Nosso número", p.OurNumber, amountsWidth, true, false})
	top = p.row(top,
		cell{"Uso do banco", "", 25, false, false}, cell{"Carteira", p.Wallet, 25, false, false},
		cell{"Espécie", "R$", 20, false, false}, cell{"Quantidade", "", 30, false, false},
		cell{"(x) Valor", "", 35, false, false}, cell{"(=) Valor do documento", p.amount, amountsWidth, true, true})
	top = p.adjustments(top)
	top = p.payer(top)
	p.barcode(top + 3)
}

// adjustments are the cashier's column, right of the instructions.
func (p *page) adjustments(top float64) float64 {
	p.specimen(top+rowHeight*2.8, 32)
	p.label(left+padding, top, "Instruções (texto de responsabilidade do beneficiário)")
	baseline := top + 7
	for i, line := range p.Instructions {
		if i == instructions {
			break
		}
		p.text(left+padding, baseline, mainWidth-2*padding, "", valueSize, line)
		baseline += 4.6
	}
	names := []string{"(-) Desconto/Abatimento", "(-) Outras deduções", "(+) Mora/Multa", "(+) Outros acréscimos", "(=) Valor cobrado"}
	first := top
	for _, name := range names {
		p.label(left+mainWidth+padding, top, name)
		top += rowHeight
		if name != names[len(names)-1] {
			p.rule(left+mainWidth, top, right, top, thin)
		}
	}
	p.rule(left+mainWidth, first, left+mainWidth, top, thin)
	p.rule(left, top, right, top, thin)
	return top
}

// payer names the payer, and the final beneficiary if there is one.
func (p *page) payer(top float64) float64 {
	const height = 15.5
	available := width - 20.0
	p.label(left+padding, top, "Pagador")
	p.text(left+18, top+3.4, available, "", valueSize, p.Payer.title())
	p.text(left+18, top+7.2, available, "", valueSize, p.Payer.address(0))
	p.text(left+18, top+11, available, "", valueSize, p.Payer.address(1))
	p.label(left+padding, top+height-3.2, "Beneficiário final")
	p.text(left+18, top+height-0.9, available-30, "", 7, p.Guarantor.title())
	p.label(right-30, top+height-3.2, "Código de baixa")
	p.rule(left, top+height, right, top+height, thick)
	return top + height
}

// barcode draws the bars in their standard size, after 5 mm of white.
func (p *page) barcode(top float64) {
	const module = float64(codes.BarcodeWidthMM) / codes.BarcodeModules
	x := left + 5.0
	p.pdf.SetFillColor(0, 0, 0)
	for i, bar := range p.bars {
		if i%2 == 0 {
			p.pdf.Rect(x, top, float64(bar)*module, codes.BarcodeHeightMM, "F")
		}
		x += float64(bar) * module
	}
	p.font("", labelSize)
	note := latin("Autenticação mecânica -")
	p.font("B", 8)
	name := latin("Ficha de Compensação")
	nameWidth := p.pdf.GetStringWidth(name)
	p.pdf.Text(right-nameWidth, top+1, name)
	p.font("", labelSize)
	p.pdf.Text(right-nameWidth-1-p.pdf.GetStringWidth(note), top+1, note)
}
