package sandbox

import (
	"context"
	"net/http"
	"net/url"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Payments implements [processor.Collector].
func (p *Processor) Payments(ctx context.Context, cursor string) (page []processor.Payment, next string, err error) {
	result := p.client.do(ctx, http.MethodGet, "/payments?cursor="+url.QueryEscape(cursor), nil, nil)
	body := parse[bankapi.PaymentPage](&result)
	if result.lookup() != processor.Found {
		return nil, "", result.cause()
	}
	if !isTokenOrNone(body.NextCursor) {
		return nil, "", errAnswerForm
	}
	for i := range body.Data {
		if !validPayment(&body.Data[i]) {
			return nil, "", errAnswerForm
		}
		page = append(page, paymentOf(&body.Data[i]))
	}
	return page, body.NextCursor, nil
}

// Changes implements [processor.Monitor].
func (p *Processor) Changes(ctx context.Context, cursor string) (page []processor.Change, next string, err error) {
	result := p.client.do(ctx, http.MethodGet, "/changes?cursor="+url.QueryEscape(cursor), nil, nil)
	body := parse[bankapi.ChangePage](&result)
	if result.lookup() != processor.Found {
		return nil, "", result.cause()
	}
	if !isTokenOrNone(body.NextCursor) {
		return nil, "", errAnswerForm
	}
	for _, c := range body.Data {
		if !bankapi.IsExternalID(c.ExternalID) || c.Returned < 0 || c.Returned > money.Max {
			return nil, "", errAnswerForm
		}
		change := processor.Change{Subject: processor.Subject(c.Subject), ExternalID: c.ExternalID, Returned: c.Returned}
		if c.Dispute != nil {
			dispute := disputeOf(*c.Dispute)
			change.Dispute = &dispute
		}
		page = append(page, change)
	}
	return page, body.NextCursor, nil
}
