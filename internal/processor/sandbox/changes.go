package sandbox

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
)

// changeBody is a change as the bank shows it: of a transfer, what came back
// of it in all; of a charge, a dispute of it.
type changeBody struct {
	Subject    processor.Subject `json:"subject"`
	ExternalID string            `json:"externalId"`
	Returned   money.Cents       `json:"returned,omitzero"`
	Dispute    *disputeBody      `json:"dispute,omitempty"`
}

// changePage is a page of the list of changes.
type changePage struct {
	Data       []changeBody `json:"data"`
	NextCursor string       `json:"nextCursor"`
}

func (c *change) body() changeBody {
	body := changeBody{Subject: c.subject, ExternalID: c.externalID, Returned: c.returned}
	if c.dispute != nil {
		body.Dispute = &disputeBody{c.dispute.ID, c.dispute.Amount, c.dispute.State}
	}
	return body
}

// changesAfter lists disputes and returns in the order in which they happened,
// whether notices told of them or not.
func (b *Bank) changesAfter(cursor string, limit int) (page changePage, err error) {
	err = b.do(func(time.Time) error {
		from, ok := readCursor(cursor, len(b.books.changes))
		if !ok {
			return codeRequestInvalid
		}
		to := min(from+limit, len(b.books.changes))
		page.Data = make([]changeBody, 0, to-from)
		for i := from; i < to; i++ {
			page.Data = append(page.Data, b.books.changes[i].body())
		}
		page.NextCursor = writeCursor(to)
		return nil
	})
	return page, err
}

// Changes implements [processor.Monitor].
func (p *Processor) Changes(ctx context.Context, cursor string) (page []processor.Change, next string, err error) {
	result := p.client.do(ctx, http.MethodGet, "/changes?cursor="+url.QueryEscape(cursor), nil, nil)
	body := parse[changePage](&result)
	if result.lookup() != processor.Found {
		return nil, "", result.cause()
	}
	if !isTokenOrNone(body.NextCursor) {
		return nil, "", errAnswerForm
	}
	for _, c := range body.Data {
		changed := processor.Change{Subject: c.Subject, ExternalID: c.ExternalID, Returned: c.Returned}
		if c.Dispute != nil {
			changed.Dispute = &processor.Dispute{ID: c.Dispute.ID, Amount: c.Dispute.Amount, State: c.Dispute.State}
		}
		if !isExternalID(c.ExternalID) || c.Returned < 0 || c.Returned > money.Max {
			return nil, "", errAnswerForm
		}
		page = append(page, changed)
	}
	return page, body.NextCursor, nil
}
