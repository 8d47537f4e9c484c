package asaas

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
)

// movement is an entry of Asaas' statement. Its value is below zero if it left the account.
type movement struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Value amount `json:"value"`
}

// typePaymentFee is the fee of a payment, which the payment shows too: its net value.
const typePaymentFee = "PAYMENT_FEE"

// isCost reports whether an entry is a fee, or one that was given back or reduced, that no report
// has. The types of others are those of what is booked otherwise, or of other programs.
func (v *movement) isCost() bool {
	return v.Type != typePaymentFee && (strings.HasSuffix(v.Type, "_FEE") || strings.Contains(v.Type, "_FEE_") || strings.HasPrefix(v.Type, "PROMOTIONAL_CODE_"))
}

// readCosts reads the next page of the account's statement, the oldest entry first. It only grows:
// within a day the next pass goes on where this one ended. Each day the one before is read
// once more.
func (p *Processor) readCosts(ctx context.Context, c cursor) (processor.Page, error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(c.offset)}, "order": {"asc"}}
	if c.day != "" {
		query.Set("startDate", c.day)
	}
	rows, more, _, err := readPage[movement](ctx, p.client, "/financialTransactions?"+query.Encode())
	if err != nil {
		return processor.Page{}, err
	}
	page := processor.Page{More: more}
	for i := range rows {
		switch r := &rows[i]; {
		case !r.valid || !isToken(r.v.ID) || !isTokenOrNone(r.v.Type) || max(r.v.Value, -r.v.Value) > amount(money.Max):
			page.Facts = append(page.Facts, unreadable("movement", string(r.text), "", ""))
		case r.v.isCost():
			page.Facts = append(page.Facts, processor.Fact{Cost: &processor.ListedCost{ID: r.v.ID, Amount: -moneyOf(r.v.Value)}})
		}
	}
	if more {
		c.offset += advance(len(rows))
		page.Next = c.String()
		return page, nil
	}
	page.Through = c.began
	next := cursor{day: c.day, offset: c.offset + max(0, len(rows)-overlap)}
	if day := before(dayOf(c.began), overlapDays); next.day != day {
		next = cursor{day: day}
	}
	page.Next = next.String()
	return page, nil
}
