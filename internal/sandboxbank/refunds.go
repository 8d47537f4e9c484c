package sandboxbank

import (
	"strings"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

func serveRefunds(b *Bank, c *call) (any, error) { return b.refundsAfter(c.query("cursor")) }

func servePanelRefund(b *Bank, c *call) (any, error) {
	var r bankapi.RefundRequest
	if err := c.decode(&r); err != nil {
		return nil, err
	}
	if r.ExternalID != "" {
		return nil, bankapi.CodeRequestInvalid
	}
	return b.refundAtPanel(r)
}

func serveForceRefund(b *Bank, c *call) (any, error) {
	return b.forceRefund(c.externalID(), c.PathValue("action"))
}

// refundsAfter lists refunds that were paid, and those that failed afterwards, in order.
func (b *Bank) refundsAfter(cursor string) (page bankapi.RefundPage, err error) {
	err = b.do(func(now time.Time) error {
		same := func(r bankapi.RefundEntry) bankapi.RefundEntry { return r }
		page.Data, page.Listing, err = pageOf(now, b.ledger.refunds, cursor, same)
		return err
	})
	return page, err
}

// refundAtPanel makes a refund without a gateway's request, under an id of the bank's own.
func (b *Bank) refundAtPanel(r bankapi.RefundRequest) (bankapi.Order, error) {
	err := b.do(func(now time.Time) error {
		r.ExternalID = "panel" + strings.ReplaceAll(b.newID(now), "-", "")[:24]
		return nil
	})
	if err != nil {
		return bankapi.Order{}, err
	}
	created, err := refundOrder(&r)
	if err != nil {
		return bankapi.Order{}, err
	}
	return b.putOrder(created, "")
}

// forceRefund completes or fails a refund, before or after it completes by itself. A
// repetition changes nothing; one that failed is not completed any more.
func (b *Bank) forceRefund(externalID, action string) (shown bankapi.Order, err error) {
	err = b.do(func(now time.Time) error {
		o := b.ledger.current(orderKey{subject: bankapi.SubjectRefund, externalID: externalID})
		failed := orderChanged{State: bankapi.OrderFailed, Failure: bankapi.CodeSettleAborted}
		switch {
		case o == nil:
			return bankapi.CodeRefundUnknown
		case action == "complete":
			err = b.endOrder(now, o, orderChanged{State: bankapi.OrderPaid})
		case action != "fail":
			err = bankapi.CodeNotFound
		case o.state == bankapi.OrderPaid:
			err = b.changeOrder(now, o, failed)
		default:
			err = b.endOrder(now, o, failed)
		}
		shown = o.shown()
		return err
	})
	return shown, err
}
