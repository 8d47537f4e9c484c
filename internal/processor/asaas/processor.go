package asaas

import (
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// Processor is the driver of one account. It adds no timeouts: callers bound each call by its
// context.
type Processor struct {
	options

	client    client
	clock     env.Clock
	account   string
	customers *recent // ids by our reference
	requested *recent // external ids of transfers, by their ids
	transfers *transferList
}

var (
	_ processor.Charger        = (*Processor)(nil)
	_ processor.ChargeFinder   = (*Processor)(nil)
	_ processor.ChargeCanceler = (*Processor)(nil)
	_ processor.Transferrer    = (*Processor)(nil)
	_ processor.TransferFinder = (*Processor)(nil)
	_ processor.Refunder       = (*Processor)(nil)
	_ processor.Notifier       = (*Processor)(nil)
	_ processor.Authorizer     = (*Processor)(nil)
	_ processor.Feeder         = (*Processor)(nil)
	_ processor.BalanceReader  = (*Processor)(nil)
	_ processor.Inspector      = (*Processor)(nil)
	_ processor.Installer      = (*Processor)(nil)
	_ processor.Authenticator  = (*Processor)(nil)
	_ processor.Budgeted       = (*Processor)(nil)
)

// Times of Asaas. The quiet period of transfers is that of a request that waits in one of its
// queues; lists are complete after it.
const (
	chargeTimeout = 4 * time.Second // after it a request for a Pix is answered without its code
	chargeQuiet   = time.Minute
	moveTimeout   = 30 * time.Second
	transferQuiet = 30 * time.Minute
	refundQuiet   = 10 * time.Minute

	// transferConfirm is between two look-ups that do not find a transfer: a list may lag.
	transferConfirm = 5 * time.Minute
)

// refundWindows: a Pix can be returned for 90 days (Banco Central), a card for 180. A boleto
// is returned by a form that its payer fills in, which no program can do.
var refundWindows = map[payment.Method]time.Duration{payment.PIX: 90 * 24 * time.Hour, payment.CreditCard: 180 * 24 * time.Hour}

// Profile implements [processor.Processor].
func (p *Processor) Profile() processor.Profile {
	return processor.Profile{
		Name:            Name,
		Methods:         payment.Methods,
		ChecksDocuments: true,
		OwnTxIDs:        true,
		CodeHosts:       p.codeHosts,
		CancelsCharges:  payment.Methods,
		RefundWindows:   refundWindows,
		Transfer:        processor.Effect{Repeat: processor.RepeatUnsafe, LookUpFirst: true, QuietPeriod: transferQuiet, Confirm: transferConfirm, Consent: p.validation, Timeout: moveTimeout},
		Refund:          processor.Effect{Repeat: processor.RepeatUnsafe, LookUpFirst: true, QuietPeriod: refundQuiet, Timeout: moveTimeout},
		Charge:          processor.Effect{Repeat: processor.RepeatUnsafe, LookUpFirst: true, QuietPeriod: chargeQuiet, Confirm: chargeQuiet, Timeout: chargeTimeout},
	}
}

// Refused implements [processor.Authenticator].
func (p *Processor) Refused() bool { return p.client.http.Refused() }

// BudgetLeft implements [processor.Budgeted].
func (p *Processor) BudgetLeft() (requests int, limited bool) { return p.client.http.BudgetLeft() }

// BudgetLow implements [processor.Budgeted].
func (p *Processor) BudgetLow() bool { return p.client.http.BudgetLow() }
