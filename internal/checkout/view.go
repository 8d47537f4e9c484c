package checkout

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/boleto"
	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/checkout/codes"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/weburl"
)

// view is the content of a page. Kind selects the template: pix, boleto, card,
// hosted, challenge, wait, outcome, error.
type view struct {
	Kind    string
	Tone    string // of the outcome's icon: good, bad, wait, back
	Title   string // of the document
	Heading string
	Lead    string
	Note    string // an additional remark

	Merchant    string
	Initial     string
	Logo        string // its URL
	Amount      string
	Description string
	Reference   string
	Items       []itemView
	ItemsMore   string

	Expires   string // formatted
	ExpiresAt int64  // milliseconds since 1970
	Now       int64
	Version   int64
	Watch     bool // the page changes when the order changes
	Reload    bool // and without script by reloading

	Code     string // a Pix code to copy
	QR       template.HTML
	Receiver string
	Line     string // the digitable line, in groups
	LineBare string
	Bars     template.HTML
	Due      string
	Bill     *billView
	Card     *cardView
	Hosted   string // URL of the processor's page
	Attempt  int

	Rows        []rowView
	Receipt     bool
	Return      string
	Sandbox     bool
	SandboxNote bool
}

type itemView struct {
	Title    string
	Quantity int64
	Price    string
}

type rowView struct {
	Label, Value string
	Code         bool // an id, which may be broken anywhere
}

// billView is the content of a printed boleto.
type billView struct {
	Beneficiary, BeneficiaryDocument string
	Payer, PayerDocument             string
	PayerAddress                     string
	OurNumber, Number                string
}

// customer is the payer as stored with the order.
type customer struct {
	Name     string `json:"name"`
	Document string `json:"document"`
	Address  struct {
		Street       string `json:"street"`
		Number       string `json:"number"`
		Complement   string `json:"complement"`
		Neighborhood string `json:"neighborhood"`
		City         string `json:"city"`
		State        string `json:"state"`
		ZipCode      string `json:"zipCode"`
	} `json:"address"`
}

// items are the order's items.
type items []struct {
	Title     string      `json:"title"`
	Quantity  int64       `json:"quantity"`
	UnitPrice money.Cents `json:"unitPrice"`
}

// itemsShown limits the number of items on a page.
const itemsShown = 20

// newView fills in what every page of an order shows.
func (p *Pages) newView(req *request, personal *payment.PersonalData) *view {
	o, m := &req.payin, req.merchant
	data := &view{
		Title: req.lang.text("pay.title", m.title()), Merchant: m.title(), Initial: initial(m.title()),
		Amount: o.Amount.BRL(), Description: o.Details.Description, Reference: o.ReferenceID,
		Expires: req.lang.formatTime(o.ExpiresAt), ExpiresAt: o.ExpiresAt.UnixMilli(), Now: p.clock.Now().UnixMilli(), Version: o.Version,
		Return: returnURL(m, o), SandboxNote: o.Processor == p.sandboxProcessor && p.sandboxProcessor != "",
	}
	data.Sandbox = data.SandboxNote && p.sandbox != nil && o.Status == payment.PayinPending
	if m.logo != "" {
		data.Logo = pagePath + req.token + "/logo/" + m.logo
	}
	var list items
	if len(personal.Items) > 0 && json.Unmarshal(personal.Items, &list) == nil {
		for _, item := range list[:min(len(list), itemsShown)] {
			data.Items = append(data.Items, itemView{item.Title, item.Quantity, item.UnitPrice.BRL()})
		}
		if more := len(list) - itemsShown; more > 0 {
			data.ItemsMore = req.lang.text("items.more", strconv.Itoa(more))
		}
	}
	paid := o.Amount - o.Lacking() // what was given back does not count
	switch part := paid > 0 && paid < o.Amount; {
	case part && o.DisputedAmount > 0: // it is not paid when the rest comes
		data.Note = req.lang.text("underpaid.disputed", paid.BRL(), o.Amount.BRL(), o.DisputedAmount.BRL(), m.title())
	case part:
		data.Note = req.lang.text("underpaid", paid.BRL(), o.Lacking().BRL())
	}
	return data
}

// initial is shown if a merchant has no logo.
func initial(name string) string {
	r, _ := utf8.DecodeRuneInString(strings.ToUpper(name))
	return string(r)
}

// returnURL is the link back to the merchant, with the reference as its only
// parameter; "" if the host is no longer one of the merchant's.
func returnURL(m *brandedMerchant, o *payment.Payin) string {
	if o.Details.ReturnURL == "" {
		return ""
	}
	u, err := weburl.Parse(o.Details.ReturnURL)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || !slices.Contains(m.ReturnHosts, u.Hostname()) && !slices.Contains(m.ReturnHosts, u.Host) {
		return ""
	}
	query := u.Query()
	query.Set("referenceId", o.ReferenceID)
	u.RawQuery = query.Encode()
	return u.String()
}

// errorView is a page without an order.
func errorView(l *language, status int) *view {
	key := "error.500"
	switch status {
	case 404, 405:
		key = "error.404"
	case 403:
		key = "error.403"
	case 503:
		key = "error.503"
	}
	heading := l.text(key + ".heading")
	return &view{Title: heading, Heading: heading, Lead: l.text(key + ".lead"), Tone: "bad"}
}

// page responds with the page of an order in its current state.
func (p *Pages) page(req *request) error {
	personal, err := p.reader.PayinPersonal(req.r.Context(), req.payin.Merchant, req.payin.ID)
	if err != nil {
		return err
	}
	data := p.newView(req, &personal)
	o := &req.payin
	kind := "outcome"
	switch {
	case o.Status == payment.PayinProcessing:
		kind = "wait"
		data.Heading, data.Lead = req.lang.text("processing.heading"), req.lang.text("processing.lead")
	case o.Status == payment.PayinPending && !o.ExpiresAt.After(p.clock.Now()):
		p.showOutcome(req, data, payment.PayinExpired, &personal)
	case o.Status == payment.PayinPending && !req.merchant.ClosedAt.IsZero():
		p.showOutcome(req, data, o.Status, &personal)
	case o.Status == payment.PayinPending && !o.Ready():
		kind = "wait"
		data.Heading, data.Lead = req.lang.text("preparing.heading"), req.lang.text("preparing.lead")
	case o.Status == payment.PayinPending:
		if kind, err = p.showMethod(req, data, &personal); err != nil {
			return err
		}
	default:
		p.showOutcome(req, data, o.Status, &personal)
	}
	_, data.Watch = payment.PayinTable.Next(o.Status, payment.OnPay) // also once it has ended: a payment may be reported later
	data.Reload = data.Watch && kind != "card"
	p.render(req, 200, kind, data)
	return nil
}

// showMethod fills in the payment method section of a pending order.
func (p *Pages) showMethod(req *request, data *view, personal *payment.PersonalData) (kind string, err error) {
	o := &req.payin
	switch o.Method {
	case payment.PIX:
		return "pix", showPix(req, data, o.Details.PIX.QRCode)
	case payment.Boleto:
		return "boleto", p.showBoleto(req, data, personal)
	default:
		if hosted := o.Details.Card.HostedURL; hosted != "" {
			data.Hosted, data.Heading = hosted, req.lang.text("card.heading")
			return "hosted", nil
		}
		if !p.acceptsTestCards(o) { // real cards are never typed here
			data.Heading, data.Lead = req.lang.text("preparing.heading"), req.lang.text("preparing.lead")
			return "wait", nil
		}
		p.showCard(req, data, nil, nil)
		return "card", nil
	}
}

// showPix fills in a Pix code.
func showPix(req *request, data *view, code string) error {
	svg, err := sizedQR(code)
	if err != nil {
		return err
	}
	data.Heading, data.Lead = req.lang.text("pix.heading"), req.lang.text("pix.until", data.Expires)
	data.Code, data.QR = code, svg
	data.Receiver = receiverOf(code)
	return nil
}

// qrSide is the approximate width of a QR code in pixels.
const qrSide = 232

// sizedQR draws a QR code in which every module is a whole number of pixels
// wide.
func sizedQR(code string) (template.HTML, error) {
	svg, err := codes.QR(code)
	if err != nil {
		return "", err
	}
	var side int
	_, box, _ := strings.Cut(string(svg), `viewBox="0 0 `)
	if _, err := fmt.Sscan(box, &side); err != nil {
		return "", fmt.Errorf("checkout: size of a QR code: %w", err)
	}
	side *= max(2, (qrSide+side/2)/side)
	sized := strings.Replace(string(svg), "<svg ", fmt.Sprintf(`<svg width="%d" height="%d" `, side, side), 1)
	return template.HTML(sized), nil //nolint:gosec // drawn here from numbers
}

// receiverOf is the name that the payer's bank will show.
func receiverOf(code string) string {
	decoded, err := brcode.DecodeForeign(code)
	if err != nil {
		return ""
	}
	return decoded.MerchantName()
}

// showBoleto fills in a boleto.
func (p *Pages) showBoleto(req *request, data *view, personal *payment.PersonalData) error {
	b := req.payin.Details.Boleto
	if b.PIXQRCode != "" {
		if err := showPix(req, data, b.PIXQRCode); err != nil {
			return err
		}
	}
	svg, err := codes.ITF(b.Barcode)
	if err != nil {
		return err
	}
	data.Heading, data.Lead, data.Bars = req.lang.text("boleto.heading"), "", template.HTML(svg) //nolint:gosec // drawn here from numbers
	data.Line, data.LineBare, data.Due = boleto.FormatLine(b.DigitableLine), b.DigitableLine, req.lang.formatDate(b.DueDate)
	if b.DueDate < payment.DayOf(p.clock.Now()) {
		last := payment.DayOf(req.payin.ExpiresAt.Add(-time.Second))
		data.Lead = req.lang.text("boleto.overdue", data.Due, req.lang.formatDate(last))
	}
	data.Bill = billOf(req, personal)
	return nil
}

// billOf is what a boleto must state in full: who pays whom.
func billOf(req *request, personal *payment.PersonalData) *billView {
	c := customerOf(personal)
	return &billView{
		Beneficiary: req.merchant.title(), BeneficiaryDocument: formatDocument(req.merchant.brand.Document),
		Payer: c.Name, PayerDocument: formatDocument(c.Document), PayerAddress: strings.Join(c.address(), ", "),
		OurNumber: req.payin.Details.Boleto.OurNumber, Number: req.payin.ReferenceID,
	}
}

func customerOf(personal *payment.PersonalData) (c customer) {
	if len(personal.Customer) > 0 {
		_ = json.Unmarshal(personal.Customer, &c) // validated when the order was created
	}
	return c
}

// address is the payer's address in two lines.
func (c *customer) address() (lines []string) {
	a := &c.Address
	street := join(", ", a.Street, a.Number, a.Complement)
	city := join(" ", join(" - ", a.Neighborhood, join("/", a.City, a.State)), a.ZipCode)
	for _, line := range []string{street, city} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// join joins the non-empty parts.
func join(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), separator)
}
