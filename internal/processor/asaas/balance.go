package asaas

import (
	"context"
	"net/url"
	"strconv"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
)

// balanceBody is the answer of /finance/balance.
type balanceBody struct {
	Balance *amount `json:"balance"`
}

const balancePath = "/finance/balance"

// creditPages bounds the pages of payments that are not credited yet, per status.
const creditPages = 500

// uncredited are the statuses of payments that Asaas may still owe to the account.
var uncredited = append([]string{statusDeposit}, disputedStatuses...)

// Balance implements [processor.BalanceReader]. Payments count from the day on which Asaas credits
// them, a card after a month and a boleto after a day; until then they are to come.
func (p *Processor) Balance(ctx context.Context) (processor.Balance, error) {
	b, err := p.money(ctx)
	for _, status := range uncredited {
		if err == nil {
			err = p.addToCome(ctx, &b, status)
		}
	}
	if err != nil {
		return processor.Balance{}, err
	}
	return b, nil
}

// money is what the account has now.
func (p *Processor) money(ctx context.Context) (b processor.Balance, err error) {
	r := p.client.get(ctx, balancePath)
	body := parse[balanceBody](&r)
	if r.lookup() != processor.Found {
		return b, r.cause()
	}
	if body.Balance == nil {
		return b, errAnswerForm
	}
	b.Amount = moneyOf(*body.Balance)
	return b, nil
}

// addToCome adds the payments of a status that are not credited: their net value, less what was
// given back.
func (p *Processor) addToCome(ctx context.Context, b *processor.Balance, status string) error {
	seen, today := map[string]bool{}, dayOf(p.clock.Now()) // pages overlap
	for offset, number := 0, 0; number < creditPages; number++ {
		query := url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(offset)}, "status": {status}}
		body, err := page[wirePayment](ctx, p.client, "/payments?"+query.Encode())
		if err != nil {
			return err
		}
		for i := range body.Data {
			v := &body.Data[i]
			if v.Status != status || v.credited(today) || seen[v.ID] {
				continue
			}
			seen[v.ID] = true
			b.ToCome += v.net()
			b.LastDay = max(b.LastDay, v.EstimatedCreditDate, v.CreditDate)
		}
		if !*body.HasMore {
			return nil
		}
		offset += advance(len(body.Data))
	}
	return errPages
}

// credited reports whether the account has the money of a payment: until then Asaas shows the day to
// come as its creditDate.
func (v *wirePayment) credited(today string) bool {
	return v.Status != statusDeposit && v.CreditDate != "" && v.CreditDate <= today
}

// net is what the account gets for a payment.
func (v *wirePayment) net() money.Cents {
	net := moneyOf(v.Value) - v.cost()
	for _, r := range v.Refunds {
		if refundStates[r.Status] != processor.TransferFailed {
			net -= moneyOf(r.Value)
		}
	}
	return net
}
