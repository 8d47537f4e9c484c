package checkout

import (
	"fmt"
	"html/template"
	"net/url"
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
)

// view is what a page shows. Kind picks the part of the template: pix, boleto,
// card, hosted, challenge, wait, after, failed.
type view struct {
	Kind    string
	Tone    string // of the sign over an end: good, bad, wait, back
	Title   string // of the document
	Heading string
	Lead    string
	Note    string // what is to be known besides

	Merchant    string
	Initial     string
	Logo        string // its address
	Amount      string
	Description string
	Reference   string
	Items       []itemView
	ItemsMore   string

	Expires   string // as people read it
	ExpiresAt int64  // milliseconds since 1970
	Now       int64
	Version   int64
	Watch     bool // the page changes when the order does
	Reload    bool // and without script by asking again

	Code     string // a Pix to copy
	QR       template.HTML
	Receiver string
	Line     string // of a bill, in groups
	LineBare string
	Bars     template.HTML
	Due      string
	Bill     *billView
	Card     *cardView
	Hosted   string // the processor's page
	Attempt  int

	Rows      []rowView
	Receipt   bool
	Return    string
	Sandbox   bool
	Worthless bool
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

// billView is what a boleto that is printed says.
type billView struct {
	Beneficiary, BeneficiaryDocument string
	Payer, PayerDocument             string
	PayerAddress                     string
	OurNumber, Number                string
}

// customer is the payer as the order holds it.
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

// items are what the order holds of what is sold.
type items []struct {
	Title     string      `json:"title"`
	Quantity  int64       `json:"quantity"`
	UnitPrice money.Cents `json:"unitPrice"`
}

// itemsShown bounds a page's size; the rest is counted.
const itemsShown = 20

// newView is what every page of an order shows.
func (p *Pages) newView(v *visit, personal *payment.PersonalData) *view {
	o, m := &v.payin, v.merchant
	shown := &view{
		Title: v.lang.say("pay.title", m.title()), Merchant: m.title(), Initial: initial(m.title()),
		Amount: o.Amount.BRL(), Description: o.Details.Description, Reference: o.ReferenceID,
		Expires: v.lang.at(o.ExpiresAt), ExpiresAt: o.ExpiresAt.UnixMilli(), Now: p.clock.Now().UnixMilli(), Version: o.Version,
		Return: returnURL(m, o), Worthless: o.Processor == p.sandboxProcessor && p.sandboxProcessor != "",
	}
	shown.Sandbox = shown.Worthless && p.sandbox != nil && o.Status == payment.PayinPending
	if m.logo != "" {
		shown.Logo = pagePath + v.token + "/logo/" + m.logo
	}
	var list items
	if len(personal.Items) > 0 && json.Unmarshal(personal.Items, &list) == nil {
		for _, item := range list[:min(len(list), itemsShown)] {
			shown.Items = append(shown.Items, itemView{item.Title, item.Quantity, item.UnitPrice.BRL()})
		}
		if more := len(list) - itemsShown; more > 0 {
			shown.ItemsMore = v.lang.say("items.more", strconv.Itoa(more))
		}
	}
	if o.PaidAmount > 0 && o.PaidAmount < o.Amount {
		shown.Note = v.lang.say("underpaid", o.PaidAmount.BRL(), (o.Amount - o.PaidAmount).BRL())
	}
	return shown
}

// initial stands where a merchant has no logo.
func initial(name string) string {
	r, _ := utf8.DecodeRuneInString(strings.ToUpper(name))
	return string(r)
}

// returnURL is the payer's way back, if its host is still one of the
// merchant's: with the reference, and nothing that could be trusted.
func returnURL(m *branded, o *payment.Payin) string {
	if o.Details.ReturnURL == "" {
		return ""
	}
	u, err := url.Parse(o.Details.ReturnURL)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || !slices.Contains(m.ReturnHosts, u.Hostname()) && !slices.Contains(m.ReturnHosts, u.Host) {
		return ""
	}
	query := u.Query()
	query.Set("referenceId", o.ReferenceID)
	u.RawQuery = query.Encode()
	return u.String()
}

// failedView is a page of no order.
func failedView(l *language, status int) *view {
	key := "error.500"
	switch status {
	case 404, 405:
		key = "error.404"
	case 403:
		key = "error.403"
	case 503:
		key = "error.503"
	}
	heading := l.say(key + ".heading")
	return &view{Title: heading, Heading: heading, Lead: l.say(key + ".lead"), Tone: "bad"}
}

// page answers with the page of an order as it stands.
func (p *Pages) page(v *visit) error {
	personal, err := p.reader.PayinPersonal(v.r.Context(), v.payin.Merchant, v.payin.ID)
	if err != nil {
		return err
	}
	shown := p.newView(v, &personal)
	o := &v.payin
	kind := "after"
	switch {
	case o.Status == payment.PayinProcessing:
		kind = "wait"
		shown.Heading, shown.Lead = v.lang.say("processing.heading"), v.lang.say("processing.lead")
	case o.Status == payment.PayinPending && !o.ExpiresAt.After(p.clock.Now()):
		p.showEnd(v, shown, payment.PayinExpired, &personal)
	case o.Status == payment.PayinPending && !o.Ready():
		kind = "wait"
		shown.Heading, shown.Lead = v.lang.say("preparing.heading"), v.lang.say("preparing.lead")
	case o.Status == payment.PayinPending:
		if kind, err = p.showWay(v, shown, &personal); err != nil {
			return err
		}
	default:
		p.showEnd(v, shown, o.Status, &personal)
	}
	shown.Watch = o.Status == payment.PayinPending || o.Status == payment.PayinProcessing
	shown.Reload = shown.Watch && kind != "card"
	p.show(v, 200, kind, shown)
	return nil
}

// showWay fills in how a pending order is paid.
func (p *Pages) showWay(v *visit, shown *view, personal *payment.PersonalData) (kind string, err error) {
	o := &v.payin
	switch o.Method {
	case payment.PIX:
		return "pix", showPix(v, shown, o.Details.PIX.QRCode)
	case payment.Boleto:
		return "boleto", p.showBoleto(v, shown, personal)
	default:
		if hosted := o.Details.Card.HostedURL; hosted != "" {
			shown.Hosted, shown.Heading = hosted, v.lang.say("card.heading")
			return "hosted", nil
		}
		if !p.takesTestCards(o) { // a card that is real is never typed here
			shown.Heading, shown.Lead = v.lang.say("preparing.heading"), v.lang.say("preparing.lead")
			return "wait", nil
		}
		p.showCard(v, shown, nil, nil)
		return "card", nil
	}
}

// showPix fills in a Pix code.
func showPix(v *visit, shown *view, code string) error {
	svg, err := sizedQR(code)
	if err != nil {
		return err
	}
	shown.Heading, shown.Lead = v.lang.say("pix.heading"), v.lang.say("pix.until", shown.Expires)
	shown.Code, shown.QR = code, svg
	shown.Receiver = receiverOf(code)
	return nil
}

// qrSide is about how wide a QR code is shown, in pixels.
const qrSide = 232

// sizedQR draws a QR code in which every module has a whole number of pixels.
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
	return template.HTML(sized), nil //nolint:gosec // a drawing of ours, made of numbers
}

// receiverOf is the name that the payer's bank will show.
func receiverOf(code string) string {
	decoded, err := brcode.Decode(code)
	if err != nil {
		return ""
	}
	return decoded.MerchantName()
}

// showBoleto fills in a bill.
func (p *Pages) showBoleto(v *visit, shown *view, personal *payment.PersonalData) error {
	b := v.payin.Details.Boleto
	if b.PIXQRCode != "" {
		if err := showPix(v, shown, b.PIXQRCode); err != nil {
			return err
		}
	}
	svg, err := codes.ITF(b.Barcode)
	if err != nil {
		return err
	}
	shown.Heading, shown.Lead, shown.Bars = v.lang.say("boleto.heading"), "", template.HTML(svg) //nolint:gosec // a drawing of ours, made of numbers
	shown.Line, shown.LineBare, shown.Due = boleto.FormatLine(b.DigitableLine), b.DigitableLine, v.lang.date(b.DueDate)
	if b.DueDate < payment.DayOf(p.clock.Now()) {
		last := payment.DayOf(v.payin.ExpiresAt.Add(-time.Second))
		shown.Lead = v.lang.say("boleto.overdue", shown.Due, v.lang.date(last))
	}
	shown.Bill = billOf(v, personal)
	return nil
}

// billOf is what the bill must say in full: who pays whom.
func billOf(v *visit, personal *payment.PersonalData) *billView {
	c := customerOf(personal)
	return &billView{
		Beneficiary: v.merchant.title(), BeneficiaryDocument: formatDocument(v.merchant.brand.Document),
		Payer: c.Name, PayerDocument: formatDocument(c.Document), PayerAddress: strings.Join(c.address(), ", "),
		OurNumber: v.payin.Details.Boleto.OurNumber, Number: v.payin.ReferenceID,
	}
}

func customerOf(personal *payment.PersonalData) (c customer) {
	if len(personal.Customer) > 0 {
		_ = json.Unmarshal(personal.Customer, &c) // it was checked when it came
	}
	return c
}

// address is the payer's, in two lines.
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

// join joins the parts that are there.
func join(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), separator)
}
