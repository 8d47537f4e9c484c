package drivers

import (
	"context"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// bank is the sandbox's bank as a processor.
type bank interface {
	// open opens the driver in a new process.
	open(e processor.Env) processor.Processor
	handler() http.Handler
	// installed is called once the account has its address for notices.
	installed()
	step(ctx context.Context, now time.Time) (int, error)
	methods() []payment.Method
	disputes(m payment.Method) bool
	// installments are those of a card payment; 0: none.
	installments() int
	paysOut() bool
	// questions is how often the bank asks for consent to a transfer before it fails it; 0: it
	// does not ask.
	questions() int

	pay(p *payment.Payin)
	dispute(p *payment.Payin)
	lose(p *payment.Payin)
	win(p *payment.Payin)
	// failTransfer fails a transfer that is in process; false if there is none.
	failTransfer(p *payment.Payout) bool
	panelRefund(p *payment.Payin, amount money.Cents)
	// defends reports whether the bank takes answers to disputes, and defenses counts those that it
	// has of an order.
	defends() bool
	defenses(p *payment.Payin) int

	// charges counts those that were registered for an order, open those that can be paid.
	charges(p *payment.Payin) (registered, open int)
	// transfers are those of a payout that were paid, or still may be; each in cents.
	transfers(p *payment.Payout) []money.Cents
	// refunds are those of a pay-in that were paid, or still may be, by our id of the part, or
	// by "" if they were not requested here.
	refunds(p *payment.Payin) map[string][]money.Cents
	// holds is what the account holds, and what the bank owes it for cards.
	holds() money.Cents
}
