package asaas

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// wirePayment is a charge as Asaas shows it. Members whose form is not certain are read apart:
// they must not make the others unreadable.
type wirePayment struct {
	ID                  string         `json:"id"`
	BillingType         string         `json:"billingType"`
	Status              string         `json:"status"`
	Value               amount         `json:"value"`
	NetValue            *amount        `json:"netValue"`
	DateCreated         string         `json:"dateCreated"`
	DueDate             string         `json:"dueDate"`
	ConfirmedDate       string         `json:"confirmedDate"`
	PaymentDate         string         `json:"paymentDate"`
	ClientPaymentDate   string         `json:"clientPaymentDate"`
	CreditDate          string         `json:"creditDate"`
	EstimatedCreditDate string         `json:"estimatedCreditDate"`
	Installment         string         `json:"installment"`
	InvoiceURL          string         `json:"invoiceUrl"`
	ExternalReference   string         `json:"externalReference"`
	Deleted             bool           `json:"deleted"`
	PixTransaction      jsontext.Value `json:"pixTransaction"`
	CreditCard          jsontext.Value `json:"creditCard"`
	Refunds             []wireRefund   `json:"refunds"`
	Chargeback          jsontext.Value `json:"chargeback"`
}

// wireRefund is an entry of the refunds of a charge.
type wireRefund struct {
	DateCreated string `json:"dateCreated"`
	Status      string `json:"status"`
	Value       amount `json:"value"`
	Description string `json:"description"`
}

// Statuses of a charge that this package compares.
const (
	statusAnalysis = "AWAITING_RISK_ANALYSIS"
	statusRefunded = "REFUNDED"
	statusReceived = "RECEIVED"
	statusDeposit  = "CONFIRMED"
)

// stages are what the statuses prove. A card is paid when it is confirmed: its credit, a month
// later, is Asaas' debt to us. RECEIVED_IN_CASH and any status that is not listed prove
// nothing: RECEIVED_IN_CASH is set by hand in the panel, and Asaas never held that money.
var stages = map[string]processor.ChargeState{
	"PENDING": processor.ChargeOpen, "OVERDUE": processor.ChargeOpen, "DUNNING_REQUESTED": processor.ChargeOpen,
	statusAnalysis: processor.ChargeAnalysis,
}

// paidStatuses are those of a charge that was paid, also if the money has left again.
var paidStatuses = []string{
	statusReceived, statusDeposit, "DUNNING_RECEIVED", "REFUND_REQUESTED", "REFUND_IN_PROGRESS", statusRefunded,
	"CHARGEBACK_REQUESTED", "CHARGEBACK_DISPUTE", "AWAITING_CHARGEBACK_REVERSAL",
}

// disputedStatuses are those of a payment whose dispute is not decided.
var disputedStatuses = []string{"CHARGEBACK_REQUESTED", "CHARGEBACK_DISPUTE", "AWAITING_CHARGEBACK_REVERSAL"}

// paid reports whether money came in. A card that is refused after analysis is shown as
// refunded, without a date on which it was paid.
func (v *wirePayment) paid() bool {
	return slices.Contains(paidStatuses, v.Status) && v.paidDay() != ""
}

// reproved reports whether a payment was refused before money came in.
func (v *wirePayment) reproved() bool { return v.Status == statusRefunded && v.paidDay() == "" }

// paidDay is when the payer paid.
func (v *wirePayment) paidDay() string {
	for _, day := range []string{v.ClientPaymentDate, v.ConfirmedDate, v.PaymentDate} {
		if day != "" {
			return day
		}
	}
	return ""
}

// check returns nil if all that is used of a charge is valid.
func (v *wirePayment) check() error {
	_, staged := stages[v.Status]
	switch {
	case !staged && !slices.Contains(paidStatuses, v.Status):
		return fmt.Errorf("asaas: charge has the status %.40q, which proves nothing", v.Status)
	case !isToken(v.ID), !isTokenOrNone(v.Installment), !isAmount(moneyOf(v.Value)), v.cost() > money.Max:
		return errAnswerForm
	}
	if _, ok := endOf(v.paidDay()); v.paidDay() != "" && !ok {
		return errAnswerForm
	}
	return nil
}

// cost is what Asaas charges for a payment. It may be more than a small payment: the rest is taken
// from the balance.
func (v *wirePayment) cost() money.Cents {
	if v.NetValue == nil {
		return 0
	}
	return max(moneyOf(v.Value)-moneyOf(*v.NetValue), 0)
}

// wireCard is the card of a payment.
type wireCard struct {
	Number string `json:"creditCardNumber"`
	Brand  string `json:"creditCardBrand"`
}

// card is the card that paid.
func (v *wirePayment) card(installments int) *payment.CardDetail {
	if v.BillingType != string(payment.CreditCard) {
		return nil
	}
	d := &payment.CardDetail{Installments: installments}
	var c wireCard
	if len(v.CreditCard) == 0 || json.Unmarshal(v.CreditCard, &c, anyText) != nil {
		return d
	}
	if len(c.Number) >= 4 && strings.Trim(c.Number[len(c.Number)-4:], "0123456789") == "" {
		d.Last4 = c.Number[len(c.Number)-4:]
	}
	if len(c.Brand) <= 32 && strings.Trim(strings.ToUpper(c.Brand), "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" {
		d.Brand = strings.ToLower(c.Brand)
	}
	return d
}

// wireChargeback is the dispute of a payment. Only its status decides: what else it has may be
// of any kind.
type wireChargeback struct {
	Status   string `json:"status"`
	Reason   any    `json:"reason"`
	Deadline any    `json:"deadlineToSendDisputeDocuments"`
}

// chargebackWon is the status of a dispute that the merchant has won.
const chargebackWon = "REVERSED"

// dispute is the present dispute of a payment; nil if there is none, or its state is not
// certain.
func (v *wirePayment) dispute() *processor.Dispute {
	d := &processor.Dispute{ID: "chargeback-" + v.ID, PaymentID: v.ID, Amount: v.left(), Current: true}
	var c wireChargeback
	known := len(v.Chargeback) > 0 && string(v.Chargeback) != "null" && json.Unmarshal(v.Chargeback, &c, anyText) == nil
	switch {
	case v.undecided():
		d.State = processor.DisputeOpen
	case !known:
		return nil
	case c.Status == chargebackWon && (v.Status != statusRefunded || v.returned() >= moneyOf(v.Value)): // else it may have been lost before
		d.State = processor.DisputeWon
	case v.Status == statusRefunded && (c.Status == "DONE" || c.Status == "DISPUTE_LOST"):
		d.State = processor.DisputeLost
	default:
		return nil
	}
	reason, _ := c.Reason.(string)
	d.Reason = shown(reason, "")
	day, _ := c.Deadline.(string)
	if end, ok := endOf(day); ok {
		d.RespondBy = end
	}
	return d
}

// returned is what refunds gave back of a charge.
func (v *wirePayment) returned() (sum money.Cents) {
	for i := range v.Refunds {
		if refundStates[v.Refunds[i].Status] == processor.TransferPaid {
			sum += moneyOf(v.Refunds[i].Value)
		}
	}
	return sum
}

// left is what refunds have left to a dispute: they may be booked after it, as its payment may be. All of
// the charge is disputed if they leave nothing.
func (v *wirePayment) left() money.Cents {
	left := moneyOf(v.Value)
	for i, id := range refundIDs(v) {
		r := &v.Refunds[i]
		if refundStates[r.Status] == processor.TransferPaid && (isExternalID(id) || !v.mayBeTaken(r)) {
			left -= max(moneyOf(r.Value), 0)
		}
	}
	if left <= 0 {
		return moneyOf(v.Value)
	}
	return left
}

// mayBeTaken reports whether an entry of the refunds of a charge, which is not ours, may be what a dispute
// took. One of a part, of a charge whose dispute is not decided, is not: Asaas gives nothing back of a
// charge that is disputed, so it was given back before.
func (v *wirePayment) mayBeTaken(r *wireRefund) bool {
	return v.disputed() && (!v.undecided() || r.Value >= v.Value)
}

// undecided reports whether a charge has a dispute that is not decided.
func (v *wirePayment) undecided() bool { return slices.Contains(disputedStatuses, v.Status) }

// disputed reports whether Asaas shows a dispute that the merchant has not won.
func (v *wirePayment) disputed() bool {
	if v.undecided() {
		return true
	}
	var c wireChargeback
	won := json.Unmarshal(v.Chargeback, &c, anyText) == nil && c.Status == chargebackWon
	return len(v.Chargeback) > 0 && string(v.Chargeback) != "null" && !won
}
