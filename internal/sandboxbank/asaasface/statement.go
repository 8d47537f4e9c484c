package asaasface

import (
	"errors"
	"slices"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// movementNote is an entry of the statement.
type movementNote struct {
	ID    string      `json:"id"`
	Key   string      `json:"key"` // of what it is about, once
	Type  string      `json:"type"`
	Value money.Cents `json:"value"` // below zero: it left the account
	Day   string      `json:"date"`
}

// Types of entries. The statement of this sandbox has fees only.
const (
	typePaymentFee      = "PAYMENT_FEE"
	typeTransferFee     = "TRANSFER_FEE"
	typeTransferFeeBack = "TRANSFER_FEE_REVERSAL"
	typeRefundFee       = "REFUND_REQUEST_FEE"
	typeRefundFeeBack   = "REFUND_REQUEST_FEE_REVERSAL"
)

// movements are the entries of the statement, the oldest first. Those that are due are added first,
// so that it only grows.
func (f *Face) movements() ([]movementNote, error) {
	f.statement.Lock()
	defer f.statement.Unlock()
	wanted, err := f.fees()
	if err != nil {
		return nil, err
	}
	var notes []note
	for i := range wanted {
		if v := &wanted[i]; !f.book.moved(v.Key) {
			v.ID, v.Day = f.handlers.NewID(), dayOf(f.handlers.Now())
			notes = append(notes, note{Movement: v})
		}
	}
	if len(notes) > 0 {
		if err := f.book.write(notes...); err != nil {
			return nil, err
		}
	}
	return f.book.statement(), nil
}

// fees are all fees so far, and those that were given back.
func (f *Face) fees() (list []movementNote, err error) {
	notes := f.book.paymentsWhere(func(*paymentNote) bool { return true })
	for i := range slices.Backward(notes) {
		n := &notes[i]
		v, err := f.show(n)
		if err != nil {
			return nil, err
		}
		// A card's fee is charged when it is credited or, if that never happens, when all of it was taken.
		if v.ClientPaymentDate != nil && (v.credited(dayOf(f.handlers.Now())) || v.Status == statusRefunded) {
			list = append(list, movementNote{Key: "payment " + n.ID, Type: typePaymentFee, Value: money.Cents(v.NetValue - v.Value)})
		}
		refunds, err := f.refundFees(n)
		if err != nil {
			return nil, err
		}
		list = append(list, refunds...)
	}
	entries, err := f.transfersOf("")
	for i := range slices.Backward(entries) {
		e := &entries[i]
		list = append(list, movementNote{Key: "transfer " + e.ID, Type: typeTransferFee, Value: -transferFee})
		if e.Status == "failed" {
			list = append(list, movementNote{Key: "failed " + e.ID, Type: typeTransferFeeBack, Value: transferFee})
		}
	}
	return list, err
}

func (f *Face) refundFees(n *paymentNote) (list []movementNote, err error) {
	for _, r := range f.book.refundsOf(n.ID) {
		o, err := f.handlers.Order(bankapi.SubjectRefund, r.ID)
		switch {
		case errors.Is(err, bankapi.CodeRefundUnknown):
			continue // delayed
		case err != nil:
			return nil, err
		case o.ID == "":
			continue // it was refused
		}
		list = append(list, movementNote{Key: "refund " + r.ID, Type: typeRefundFee, Value: -refundFee})
		if o.State == bankapi.OrderFailed {
			list = append(list, movementNote{Key: "failed " + r.ID, Type: typeRefundFeeBack, Value: refundFee})
		}
	}
	return list, nil
}

// movement is an entry as it is shown.
type movement struct {
	Object      string `json:"object"`
	ID          string `json:"id"`
	Value       reais  `json:"value"`
	Type        string `json:"type"`
	Date        string `json:"date"`
	Description string `json:"description"`
}

func (f *Face) listMovements(c *call) (any, error) {
	all, err := f.movements()
	if err != nil {
		return nil, err
	}
	rows := []movement{}
	for _, v := range all {
		if v.Day >= c.URL.Query().Get("startDate") {
			rows = append(rows, movement{"financialTransaction", "ftn_" + v.ID, reais(v.Value), v.Type, v.Day, "Taxa"})
		}
	}
	if c.URL.Query().Get("order") != "asc" {
		slices.Reverse(rows)
	}
	return pageOf(c, rows)
}

// getBalance is the money of the account: the bank's balance less the fees, and without card
// payments that are not credited yet.
func (f *Face) getBalance(*call) (any, error) {
	bank, err := f.handlers.Balance()
	if err != nil {
		return nil, err
	}
	fees, err := f.movements()
	if err != nil {
		return nil, err
	}
	balance := bank.Amount
	for i := range fees {
		balance += fees[i].Value
	}
	notes := f.book.paymentsWhere(func(p *paymentNote) bool { return p.Method == methodCard })
	for i := range notes {
		v, err := f.show(&notes[i])
		if err != nil {
			return nil, err
		}
		if v.ClientPaymentDate != nil && !v.credited(dayOf(f.handlers.Now())) && v.Status != statusRefunded {
			balance -= money.Cents(v.Value) - taken(v)
		}
	}
	return struct {
		Balance reais `json:"balance"`
	}{reais(balance)}, nil
}

// credited reports whether the account has the money of a payment.
func (v *payment) credited(today string) bool { return v.CreditDate != nil && *v.CreditDate <= today }

// taken is what has left of a payment.
func taken(v *payment) (sum money.Cents) {
	for _, r := range v.Refunds {
		if r.Status != "CANCELLED" {
			sum += money.Cents(r.Value)
		}
	}
	return sum
}
