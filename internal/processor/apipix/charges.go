package apipix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// Bounds of a charge.
const (
	descriptionMax = 140
	// lifeMax is the longest life of a charge: expiracao is an int32.
	lifeMax = 1<<31 - 1
	// expirySlack is how far the end that the bank counts may be from the order's, and still
	// be the same: both count whole seconds, and an answer takes a while.
	expirySlack = time.Minute
)

// Why a charge is not the one that was requested.
var (
	errEarlier  = errors.New("apipix: the bank had a charge under this id, which was revised")
	errInactive = errors.New("apipix: the bank has an earlier charge under this id, which is not active")
	errNoCode   = errors.New("apipix: the answer has neither a code nor a location")
)

// Charge implements [processor.Charger]: PUT /cob/{txid}. The same id again revises the
// charge, if it is active: then the outcome is Known, and a look-up shows what it is.
func (p *Processor) Charge(ctx context.Context, r processor.ChargeRequest, guard func() error) processor.ChargeAnswer {
	if r.Method != payment.PIX || !isTxID(r.ExternalID) {
		return processor.ChargeAnswer{Outcome: processor.NotSent, Cause: errID}
	}
	life := int64((r.ExpiresAt.Sub(p.clock.Now()) + time.Second - 1) / time.Second) // the bank's must not end first
	request := newCharge{
		Calendar: newCalendar{Expires: min(max(life, 1), lifeMax)}, Value: newValue{formatAmount(r.Amount)}, Key: p.key,
		Description: strings.TrimSpace(cutText(r.Description, descriptionMax)),
	}
	result := p.client.do(ctx, http.MethodPut, p.prefix+"/cob/"+escape(r.ExternalID), request, guard)
	body := parse[charge](&result)
	outcome, failure := result.outcome(effectCharge)
	answer := processor.ChargeAnswer{Outcome: outcome, Cause: result.cause(), Failure: failure, Wait: result.wait}
	if outcome != processor.Done {
		return answer
	}
	made, amount, err := body.made(r.ExternalID, &result, r.MerchantName, r.MerchantCity)
	switch {
	case err != nil:
		return processor.ChargeAnswer{Cause: err}
	case body.Key != p.key:
		return processor.ChargeAnswer{Cause: errOther}
	case *body.Revision > 0:
		return processor.ChargeAnswer{Outcome: processor.Known, Cause: errEarlier}
	case body.Status != chargeActive:
		return processor.ChargeAnswer{Outcome: processor.Known, Cause: errInactive}
	case amount != r.Amount:
		return processor.ChargeAnswer{Cause: errOther}
	}
	if made.PIX == nil {
		return processor.ChargeAnswer{Cause: errNoCode}
	}
	if gap := made.PIX.ExpiresAt.Sub(r.ExpiresAt); made.PIX.ExpiresAt.IsZero() || gap > -expirySlack && gap < expirySlack {
		made.PIX.ExpiresAt = r.ExpiresAt
	}
	answer.Charge = made
	return answer
}

// made is the charge that a body shows; the error says that it shows none.
func (c *charge) made(txid string, r *response, name, city string) (processor.Charge, money.Cents, error) {
	amount, ok := parseAmount(c.Value.Original)
	created, dated := parseTime(c.Calendar.Created)
	switch {
	case c.TxID != txid:
		return processor.Charge{}, 0, errOther
	case !ok || c.Revision == nil || *c.Revision < 0 || c.Calendar.Expires < 1 || c.Calendar.Expires > lifeMax:
		return processor.Charge{}, 0, errForm
	}
	code, err := c.code(name, city)
	if err != nil && c.Status != chargeActive {
		return processor.Charge{}, amount, nil // nobody can pay it
	}
	if err != nil {
		return processor.Charge{}, 0, err
	}
	var end time.Time // by our clock; zero, which is the order's, if the bank writes its time otherwise
	if dated {
		end = created.Add(time.Duration(c.Calendar.Expires)*time.Second - r.skew)
	}
	return processor.Charge{
		Amount: amount, PIXKey: c.Key, PIX: &payment.PIXDetail{QRCode: code, TxID: txid, ExpiresAt: end},
	}, amount, nil
}

// code is the BR Code of a charge. A bank that sends none names the location that a code
// points to: then it is made here.
func (c *charge) code(name, city string) (string, error) {
	if code := strings.TrimSpace(c.Code); code != "" { // an invalid one is refused with its reason
		return code, nil
	}
	location := c.Location
	if location == "" {
		location = c.Loc.Location
	}
	if location == "" {
		return "", errNoCode
	}
	name, city = brcode.Cut(brcode.Fold(name), brcode.MaxMerchantName), brcode.Cut(brcode.Fold(city), brcode.MaxCity)
	if name == "" {
		name = "PIX"
	}
	if city == "" {
		city = "BRASILIA"
	}
	code, err := brcode.Dynamic{URL: strings.TrimPrefix(location, "https://"), MerchantName: name, City: city}.Encode()
	if err != nil { // its text may quote the location
		return "", errForm
	}
	return code, nil
}

// QueryCharge implements [processor.Charger]. An expired charge stays active at the bank:
// its end is ours.
func (p *Processor) QueryCharge(ctx context.Context, externalID string) processor.ChargeReport {
	if !isTxID(externalID) { // such as that of a static code, or of a payment that names no order
		return processor.ChargeReport{Cause: errID}
	}
	result, body := p.getCharge(ctx, externalID)
	lookup := result.lookup(subjectCharge)
	if lookup != processor.Found {
		return processor.ChargeReport{Lookup: lookup, Cause: result.cause()}
	}
	made, _, err := body.made(externalID, &result, "", "")
	if err != nil {
		return processor.ChargeReport{Cause: err}
	}
	report := processor.ChargeReport{Lookup: processor.Found, Charge: made}
	switch body.Status {
	case chargeActive, chargePaid:
		report.State = processor.ChargeOpen
	case chargeRemoved, chargeRemovedBy:
		report.State = processor.ChargeCanceled
	default:
		return processor.ChargeReport{Cause: errStatus}
	}
	payments := body.Payments
	if body.Status == chargePaid && len(payments) == 0 { // the standard does not require them here
		if payments, err = p.paymentsOf(ctx, externalID, &body, result.at); err != nil {
			return processor.ChargeReport{Cause: err}
		}
	}
	for i := range payments {
		paid, ok := payments[i].payment()
		if !ok || paid.ExternalID != externalID {
			return processor.ChargeReport{Cause: errForm}
		}
		infractions, err := p.infractionsOf(ctx, &payments[i], &paid)
		report.Incomplete = cmp.Or(report.Incomplete, err)
		disputes, ok := payments[i].disputesOf(infractions, p.clock.Now())
		if !ok {
			return processor.ChargeReport{Cause: errForm}
		}
		report.Payments = append(report.Payments, paid)
		report.Disputes = append(report.Disputes, disputes...)
	}
	return report
}

func (p *Processor) getCharge(ctx context.Context, externalID string) (response, charge) {
	result := p.get(ctx, p.prefix+"/cob/"+escape(externalID))
	return result, parse[charge](&result)
}

var errNoPayments = errors.New("apipix: the bank says that a charge is paid, and lists no payment of it")

// paymentsOf lists the payments of a charge that is paid.
func (p *Processor) paymentsOf(ctx context.Context, txid string, c *charge, now time.Time) ([]pix, error) {
	from := now.Add(-window)
	if created, ok := parseTime(c.Calendar.Created); ok {
		from = created.Add(-time.Hour)
	}
	page, err := p.readList(ctx, listReceived, from, now.Add(time.Minute), 0, "&txid="+escape(txid))
	if err != nil {
		return nil, err
	}
	var payments []pix
	for _, raw := range page.entries {
		var v pix
		if err := unmarshal(raw, &v); err != nil {
			return nil, errForm
		}
		if v.TxID == txid {
			payments = append(payments, v)
		}
	}
	if len(payments) == 0 {
		return nil, errNoPayments
	}
	return payments, nil
}

// payment is the payment that an entry shows; ok is false if it cannot be booked. One without
// a txid names no order.
func (v *pix) payment() (paid processor.Payment, ok bool) {
	amount, ok1 := parseAmount(v.Value)
	at, ok2 := parseTime(v.Time)
	if !ok1 || !ok2 || !isWord(v.EndToEndID, endToEndMax) || v.TxID != "" && !isWord(v.TxID, idMax) {
		return paid, false
	}
	return processor.Payment{ID: v.EndToEndID, ExternalID: v.TxID, EndToEndID: v.EndToEndID, Amount: amount, PaidAt: at}, true
}

// CancelCharge implements [processor.ChargeCanceler]: PATCH /cob/{txid}. A refusal does not
// say whether the charge was paid or removed, so the charge is looked up.
func (p *Processor) CancelCharge(ctx context.Context, r processor.CancelRequest, guard func() error) processor.CancelAnswer {
	if !isTxID(r.ExternalID) {
		return processor.CancelAnswer{Outcome: processor.NotSent, Cause: errID}
	}
	result := p.client.do(ctx, http.MethodPatch, p.prefix+"/cob/"+escape(r.ExternalID), revisedCharge{chargeRemoved}, guard)
	body := parse[charge](&result)
	switch {
	case result.err != nil:
		return processor.CancelAnswer{Outcome: result.failed, Wait: result.wait, Cause: result.err}
	case result.ok():
		return canceled(&body, r.ExternalID)
	case result.lookup(subjectCharge) == processor.NotFound:
		return processor.CancelAnswer{NotFound: true, Cause: result.cause()}
	}
	outcome, _ := result.outcome(effectCharge)
	if outcome == processor.Later || outcome == processor.Unknown && result.status >= 500 {
		return processor.CancelAnswer{Outcome: outcome, Wait: result.wait, Cause: result.cause()}
	}
	asked, now := p.getCharge(ctx, r.ExternalID)
	if !asked.ok() {
		return processor.CancelAnswer{Cause: fmt.Errorf("after %w: %w", result.cause(), asked.cause())}
	}
	return canceled(&now, r.ExternalID)
}

// canceled is what a charge shows about its cancellation.
func canceled(c *charge, txid string) processor.CancelAnswer {
	switch {
	case c.TxID != txid:
		return processor.CancelAnswer{Cause: errOther}
	case c.Status == chargeRemoved || c.Status == chargeRemovedBy:
		return processor.CancelAnswer{Outcome: processor.Done}
	case c.Status == chargePaid:
		return processor.CancelAnswer{Outcome: processor.Refused}
	default:
		return processor.CancelAnswer{Cause: errStatus}
	}
}
