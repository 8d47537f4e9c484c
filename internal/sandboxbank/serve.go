package sandboxbank

import (
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// empty is an answer without content.
type empty struct{}

func (c *call) externalID() string { return c.PathValue("externalId") }

func (c *call) query(name string) string { return c.URL.Query().Get(name) }

func serveCharge(b *Bank, c *call) (any, error) {
	var terms bankapi.ChargeTerms
	if err := c.decode(&terms); err != nil {
		return nil, err
	}
	return b.putCharge(c.externalID(), terms, c.fault)
}

func serveCard(b *Bank, c *call) (any, error) {
	var attempt bankapi.CardAttempt
	number, err := strconv.Atoi(c.PathValue("attempt"))
	if err != nil || c.decode(&attempt) != nil {
		return nil, bankapi.CodeRequestInvalid
	}
	return b.putCard(c.externalID(), number, attempt)
}

func serveConfirmCard(b *Bank, c *call) (any, error) {
	var confirmation bankapi.CardConfirmation
	number, err := strconv.Atoi(c.PathValue("attempt"))
	if err != nil || c.decode(&confirmation) != nil {
		return nil, bankapi.CodeRequestInvalid
	}
	return b.confirmCard(c.externalID(), number, confirmation.Approve)
}

func serveTransfer(b *Bank, c *call) (any, error) {
	var r bankapi.TransferRequest
	if err := c.decode(&r); err != nil {
		return nil, err
	}
	created, err := transferOrder(&r)
	if err != nil {
		return nil, err
	}
	return b.serveOrder(c, created)
}

func serveRefund(b *Bank, c *call) (any, error) {
	var r bankapi.RefundRequest
	if err := c.decode(&r); err != nil {
		return nil, err
	}
	created, err := refundOrder(&r)
	if err != nil {
		return nil, err
	}
	return b.serveOrder(c, created)
}

func (b *Bank) serveOrder(c *call, created orderCreated) (any, error) {
	if c.fault == bankapi.Delayed {
		return nil, b.delay(created, b.faults.delay())
	}
	return b.putOrder(created, c.fault)
}

func serveGetCharge(b *Bank, c *call) (any, error) {
	return b.getCharge(c.externalID())
}

func serveCancelCharge(b *Bank, c *call) (any, error) {
	return b.cancelCharge(c.externalID())
}

func serveGetTransfer(b *Bank, c *call) (any, error) {
	return b.getOrder(bankapi.SubjectTransfer, c.externalID())
}

func serveGetRefund(b *Bank, c *call) (any, error) {
	return b.getOrder(bankapi.SubjectRefund, c.externalID())
}

func servePayments(b *Bank, c *call) (any, error) {
	return b.paymentsAfter(c.query("cursor"))
}

func serveChanges(b *Bank, c *call) (any, error) {
	return b.changesAfter(c.query("cursor"))
}

func serveTransfers(b *Bank, c *call) (any, error) {
	return b.transfersAfter(transferQuery{c.query("externalId"), c.query("cursor"), c.query("from")})
}

func serveBalance(b *Bank, _ *call) (any, error) { return b.balance() }

func serveListener(b *Bank, c *call) (any, error) {
	var r bankapi.Listener
	if err := c.decode(&r); err != nil {
		return nil, err
	}
	const day = 24 * 60 * 60
	if r.TTLSeconds < 1 || r.TTLSeconds > day || !bankapi.IsURL(r.URL) {
		return nil, bankapi.CodeRequestInvalid
	}
	return empty{}, b.Listen(r.URL, time.Duration(r.TTLSeconds)*time.Second)
}

func serveForceCharge(b *Bank, c *call) (any, error) {
	var how bankapi.ForceCharge
	if err := c.decode(&how); err != nil {
		return nil, err
	}
	return b.forceCharge(c.externalID(), c.PathValue("action"), how)
}

func serveForceTransfer(b *Bank, c *call) (any, error) {
	var how bankapi.ForceTransfer
	if err := c.decode(&how); err != nil {
		return nil, err
	}
	return b.forceTransfer(c.externalID(), c.PathValue("action"), how.Amount)
}

func serveArm(b *Bank, c *call) (any, error) {
	var fault bankapi.Fault
	if err := c.decode(&fault); err != nil {
		return nil, err
	}
	if !b.faults.arm(fault) {
		return nil, bankapi.CodeRequestInvalid
	}
	return empty{}, nil
}

func serveDisarm(b *Bank, _ *call) (any, error) {
	b.faults.clear()
	return empty{}, nil
}

func serveClock(b *Bank, c *call) (any, error) {
	var r bankapi.ClockOffset
	if err := c.decode(&r); err != nil {
		return nil, err
	}
	const century = 100 * 365 * 24 * 60 * 60
	if r.Offset < 0 || r.Offset > century {
		return nil, bankapi.CodeRequestInvalid
	}
	inForce, err := b.SetOffset(time.Duration(r.Offset) * time.Second)
	return bankapi.ClockOffset{Offset: int64(inForce / time.Second)}, err
}
