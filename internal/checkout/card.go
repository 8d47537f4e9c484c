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

// Flow is the use cases that pages end in: [flow.Flow].
type Flow interface {
	PayByTestCard(ctx context.Context, m store.Merchant, p payment.Payin, attempt int, pay processor.TestCardPayment) (challenge bool, err error)
	ConfirmTestCard(ctx context.Context, m store.Merchant, p payment.Payin, attempt int, approve bool) error
}

// formBytesMax bounds a form of a page.
const formBytesMax = 4 << 10

// cardView is the sandbox's card form. It never holds a number or a code.
type cardView struct {
	Attempt      int
	Holder       string
	Faults       map[string]string // field -> sentence
	Message      string            // over the form
	Installments []choiceView
	Tests        []testView
}

type choiceView struct {
	Count  int
	Label  string
	Chosen bool
}

type testView struct {
	Number, Brand, Result string
}

// Fault is the sentence about an invalid field; "" for a valid one.
func (c *cardView) Fault(field string) string { return c.Faults[field] }

// showCard fills in the card form, after an attempt with what may be shown
// again.
func (p *Pages) showCard(v *visit, shown *view, form *cardForm, faults map[string]string) {
	o, l := &v.payin, v.lang
	shown.Heading = l.say("card.heading")
	c := &cardView{Attempt: o.Details.CardAttempts + 1, Faults: map[string]string{}}
	chosen := 1
	if form != nil {
		c.Holder = form.holder
		if n, err := strconv.Atoi(form.installments); err == nil {
			chosen = n
		}
		for field, why := range faults {
			c.Faults[field] = l.say("fault." + why)
		}
		c.Message = l.say("card.again")
	} else if o.Failure != nil {
		c.Message = l.say("card.refused", failureText(l, o.Failure)) + ". " + l.say("card.retry")
	}
	for n := range installmentsMax(o.Amount, o.Details.Installments) {
		c.Installments = append(c.Installments, choiceView{n + 1, installmentText(l, o.Amount, n+1), n+1 == chosen})
	}
	for _, t := range p.testCards(o) {
		c.Tests = append(c.Tests, testView{groups(t.Number), brandNames[t.Brand], testText(l, t)})
	}
	shown.Card = c
}

func installmentText(l *language, amount money.Cents, n int) string {
	parts, err := amount.Split(n)
	if n == 1 || err != nil {
		return l.say("card.once", amount.BRL())
	}
	if first, last := parts[0], parts[n-1]; first != last {
		return l.say("card.parts.last", strconv.Itoa(n), first.BRL(), last.BRL())
	}
	return l.say("card.parts", strconv.Itoa(n), parts[0].BRL())
}

func testText(l *language, t processor.TestCard) string {
	if t.SplitResult != "" {
		return l.say("result.single")
	}
	if text, ok := l.words["result."+t.Result]; ok {
		return text
	}
	return l.say("failure." + t.Result)
}

// groups writes a card number as it stands on a card.
func groups(number string) string {
	if len(number) == 15 {
		return number[:4] + " " + number[4:10] + " " + number[10:]
	}
	return number[:4] + " " + number[4:8] + " " + number[8:12] + " " + number[12:]
}

// testCards lists the cards that this page accepts for an order; none unless
// the order is paid by the sandbox's form.
func (p *Pages) testCards(o *payment.Payin) []processor.TestCard {
	taker, ok := p.processors[o.Processor].(processor.TestCardTaker)
	if !ok || o.Method != payment.CreditCard {
		return nil
	}
	return taker.TestCards()
}

// takesTestCards reports whether the order is paid by the form of this page.
func (p *Pages) takesTestCards(o *payment.Payin) bool { return len(p.testCards(o)) > 0 }

// payable reports whether an order can still be paid.
func (p *Pages) payable(o *payment.Payin) bool {
	return o.Status == payment.PayinPending && o.ExpiresAt.After(p.clock.Now())
}

// readForm reads the fields of a form.
func (v *visit) readForm() error {
	media, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" {
		return errNotFound
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, formBytesMax)
	if err := v.r.ParseForm(); err != nil {
		return errNotFound
	}
	v.fields = v.r.PostForm
	return nil
}

// payByCard takes an attempt to pay. Its number in the form makes it happen
// once: repeated, by a double click or the back button, it is the same attempt
// with the same result.
func (p *Pages) payByCard(v *visit) error {
	cards := p.testCards(&v.payin)
	if len(cards) == 0 {
		return errNotFound
	}
	fields := v.fields
	form := cardForm{
		number: fields.Get("number"), expiry: fields.Get("expiry"), code: fields.Get("code"),
		holder: fields.Get("holder"), installments: fields.Get("installments"),
	}
	attempt, err := strconv.Atoi(fields.Get("attempt"))
	if err != nil {
		return v.goTo(pagePath + v.token)
	}
	pay, faults := form.check(cards, p.clock.Now(), v.payin.Amount, v.payin.Details.Installments)
	if len(faults) > 0 {
		return p.showForm(v, http.StatusUnprocessableEntity, &form, faults, "")
	}
	challenge, err := p.flow.PayByTestCard(v.r.Context(), v.merchant.Merchant, v.payin, attempt, pay)
	switch {
	case problem.Is(err, problem.InvalidState):
		return v.goTo(pagePath + v.token) // which shows the present state
	case problem.Is(err, problem.ProcessorTimeout):
		return p.showForm(v, http.StatusGatewayTimeout, &cardForm{installments: form.installments, holder: form.holder}, nil, "card.unknown")
	case err != nil:
		return err
	case challenge:
		return v.goTo(pagePath + v.token + "/card/" + strconv.Itoa(attempt))
	}
	return v.goTo(pagePath + v.token)
}

// showForm shows the form again, without number, expiry and code.
func (p *Pages) showForm(v *visit, status int, form *cardForm, faults map[string]string, message string) error {
	if !p.payable(&v.payin) {
		return v.goTo(pagePath + v.token)
	}
	personal, err := p.reader.PayinPersonal(v.r.Context(), v.payin.Merchant, v.payin.ID)
	if err != nil {
		return err
	}
	shown := p.newView(v, &personal)
	p.showCard(v, shown, form, faults)
	if message != "" {
		shown.Card.Message = v.lang.say(message)
	}
	shown.Watch = true
	p.show(v, status, "card", shown)
	return nil
}

// attempt is the number in the path.
func (v *visit) attempt() (int, error) {
	n, err := strconv.Atoi(v.part)
	if err != nil || n < 1 {
		return 0, errNotFound
	}
	return n, nil
}

// challenge shows the step in which the payer confirms to the issuer.
func (p *Pages) challenge(v *visit) error {
	attempt, err := v.attempt()
	if err != nil || !p.takesTestCards(&v.payin) {
		return errNotFound
	}
	if !p.payable(&v.payin) || attempt != v.payin.Details.CardAttempts+1 {
		return v.goTo(pagePath + v.token)
	}
	shown := p.newView(v, &payment.PersonalData{})
	shown.Heading, shown.Attempt = v.lang.say("challenge.heading"), attempt
	shown.Lead = v.lang.say("challenge.lead", shown.Amount, shown.Merchant)
	p.show(v, http.StatusOK, "challenge", shown)
	return nil
}

// confirmCard takes the payer's answer.
func (p *Pages) confirmCard(v *visit) error {
	attempt, err := v.attempt()
	if err != nil || !p.takesTestCards(&v.payin) {
		return errNotFound
	}
	err = p.flow.ConfirmTestCard(v.r.Context(), v.merchant.Merchant, v.payin, attempt, v.fields.Get("answer") == "yes")
	var known *problem.Error
	if err != nil && !errors.As(err, &known) {
		return err
	}
	return v.goTo(pagePath + v.token)
}
