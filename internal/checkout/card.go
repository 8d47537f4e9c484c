package checkout

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strconv"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Cards pays by the sandbox's test cards: payin.Service.
type Cards interface {
	PayByTestCard(ctx context.Context, m store.Merchant, p payment.Payin, attempt int, pay processor.TestCardPayment) (challenge bool, err error)
	ConfirmTestCard(ctx context.Context, p payment.Payin, attempt int, approve bool) error
}

// formBytesMax limits the size of a form in bytes.
const formBytesMax = 4 << 10

// cardView is the sandbox's card form. It never holds a card number or a
// security code.
type cardView struct {
	Attempt      int
	Holder       string
	Errors       map[string]string // text by field
	Message      string            // above the form
	Installments []choiceView
	TestCards    []testCardView
}

type choiceView struct {
	Count  int
	Label  string
	Chosen bool
}

type testCardView struct {
	Number, Brand, Result string
}

// Error is the text about an invalid field; "" for a valid one.
func (c *cardView) Error(field string) string { return c.Errors[field] }

// showCard fills in the card form. After an invalid attempt, form and invalid
// hold the typed values that may be shown again and the reasons by field.
func (p *Pages) showCard(req *request, data *view, form *cardForm, invalid map[string]string) {
	o, l := &req.payin, req.lang
	data.Heading = l.text("card.heading")
	c := &cardView{Attempt: o.Details.CardAttempts + 1, Errors: map[string]string{}}
	chosen := 1
	if form != nil {
		c.Holder = form.holder
		if n, err := strconv.Atoi(form.installments); err == nil {
			chosen = n
		}
		for field, why := range invalid {
			c.Errors[field] = l.text("invalid." + why)
		}
		c.Message = l.text("card.again")
	} else if o.Failure != nil {
		c.Message = l.text("card.refused", failureText(l, o.Failure)) + ". " + l.text("card.retry")
	}
	for n := range installmentsMax(o.Amount, o.Details.Installments) {
		c.Installments = append(c.Installments, choiceView{n + 1, installmentText(l, o.Amount, n+1), n+1 == chosen})
	}
	for _, t := range p.testCards(o) {
		c.TestCards = append(c.TestCards, testCardView{formatCardNumber(t.Number), brandNames[t.Brand], testCardText(l, t)})
	}
	data.Card = c
}

func installmentText(l *language, amount money.Cents, n int) string {
	parts, err := amount.Split(n)
	if n == 1 || err != nil {
		return l.text("card.once", amount.BRL())
	}
	if first, last := parts[0], parts[n-1]; first != last {
		return l.text("card.parts.last", strconv.Itoa(n), first.BRL(), last.BRL())
	}
	return l.text("card.parts", strconv.Itoa(n), parts[0].BRL())
}

func testCardText(l *language, t processor.TestCard) string {
	if t.SplitResult != "" {
		return l.text("result.single")
	}
	if text, ok := l.words["result."+t.Result]; ok {
		return text
	}
	return l.text("failure." + t.Result)
}

// formatCardNumber groups the digits as they are printed on a card.
func formatCardNumber(number string) string {
	if len(number) == 15 {
		return number[:4] + " " + number[4:10] + " " + number[10:]
	}
	return number[:4] + " " + number[4:8] + " " + number[8:12] + " " + number[12:]
}

// testCards lists the test cards that this page accepts for an order: none
// unless the order is paid by the sandbox's form.
func (p *Pages) testCards(o *payment.Payin) []processor.TestCard {
	acceptor, ok := p.processors.Find(o.Processor).(processor.TestCardTaker)
	if !ok || o.Method != payment.CreditCard {
		return nil
	}
	return acceptor.TestCards()
}

// acceptsTestCards reports whether the order is paid by the form of this page.
func (p *Pages) acceptsTestCards(o *payment.Payin) bool { return len(p.testCards(o)) > 0 }

// payable reports whether an order can still be paid, and its merchant takes payments.
func (p *Pages) payable(req *request) bool {
	o := &req.payin
	return o.Status == payment.PayinPending && o.ExpiresAt.After(p.clock.Now()) && req.merchant.ClosedAt.IsZero()
}

// parseForm reads the fields of a form.
func (req *request) parseForm() error {
	media, _, err := mime.ParseMediaType(req.r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return errNotFound
	}
	req.r.Body = http.MaxBytesReader(req.w, req.r.Body, formBytesMax)
	if err := req.r.ParseForm(); err != nil {
		return errNotFound
	}
	req.form = req.r.PostForm
	return nil
}

// payByCard processes an attempt to pay. The number of the attempt is in the
// form, so a repetition by a double click or the back button is the same
// attempt and has the same result.
func (p *Pages) payByCard(req *request) error {
	cards := p.testCards(&req.payin)
	if len(cards) == 0 {
		return errNotFound
	}
	fields := req.form
	form := cardForm{
		number: fields.Get("number"), expiry: fields.Get("expiry"), code: fields.Get("code"),
		holder: fields.Get("holder"), installments: fields.Get("installments"),
	}
	attempt, err := strconv.Atoi(fields.Get("attempt"))
	if err != nil || !req.merchant.ClosedAt.IsZero() {
		return req.redirect(pagePath + req.token)
	}
	pay, invalid := form.check(cards, p.clock.Now(), req.payin.Amount, req.payin.Details.Installments)
	if len(invalid) > 0 {
		return p.showForm(req, http.StatusUnprocessableEntity, &form, invalid, "")
	}
	challenge, err := p.cards.PayByTestCard(req.r.Context(), req.merchant.Merchant, req.payin, attempt, pay)
	switch {
	case problem.Is(err, problem.InvalidState):
		return req.redirect(pagePath + req.token) // the page shows the current state
	case problem.Is(err, problem.ProcessorTimeout):
		return p.showForm(req, http.StatusGatewayTimeout, &cardForm{installments: form.installments, holder: form.holder}, nil, "card.unknown")
	case err != nil:
		return err
	case challenge:
		return req.redirect(pagePath + req.token + "/card/" + strconv.Itoa(attempt))
	}
	return req.redirect(pagePath + req.token)
}

// showForm shows the form again, without number, expiry and security code.
func (p *Pages) showForm(req *request, status int, form *cardForm, invalid map[string]string, message string) error {
	if !p.payable(req) {
		return req.redirect(pagePath + req.token)
	}
	personal, err := p.reader.PayinPersonal(req.r.Context(), req.payin.Merchant, req.payin.ID)
	if err != nil {
		return err
	}
	data := p.newView(req, &personal)
	p.showCard(req, data, form, invalid)
	if message != "" {
		data.Card.Message = req.lang.text(message)
	}
	data.Watch = true
	p.render(req, status, "card", data)
	return nil
}

// attempt is the number in the path.
func (req *request) attempt() (int, error) {
	n, err := strconv.Atoi(req.param)
	if err != nil || n < 1 {
		return 0, errNotFound
	}
	return n, nil
}

// challenge shows the page on which the payer confirms the payment to the
// issuer.
func (p *Pages) challenge(req *request) error {
	attempt, err := req.attempt()
	if err != nil || !p.acceptsTestCards(&req.payin) {
		return errNotFound
	}
	if !p.payable(req) || attempt != req.payin.Details.CardAttempts+1 {
		return req.redirect(pagePath + req.token)
	}
	data := p.newView(req, &payment.PersonalData{})
	data.Heading, data.Attempt = req.lang.text("challenge.heading"), attempt
	data.Lead = req.lang.text("challenge.lead", data.Amount, data.Merchant)
	p.render(req, http.StatusOK, "challenge", data)
	return nil
}

// confirmCard processes the payer's answer to the challenge.
func (p *Pages) confirmCard(req *request) error {
	attempt, err := req.attempt()
	if err != nil || !p.acceptsTestCards(&req.payin) {
		return errNotFound
	}
	err = p.cards.ConfirmTestCard(req.r.Context(), req.payin, attempt, req.form.Get("answer") == "yes")
	var known *problem.Error
	if err != nil && !errors.As(err, &known) {
		return err
	}
	return req.redirect(pagePath + req.token)
}
