package checker

import "fmt"

// Invariant is a rule that holds after every commit or, if it says so, at the end.
type Invariant string

// The invariants.
const (
	Ledger         Invariant = "ledger"          // entries sum to zero; balances are the sums of their postings
	Durability     Invariant = "durability"      // acknowledged orders are stored
	SingleTransfer Invariant = "single-transfer" // a payout leaves once; its status follows proofs of the bank
	LimitsHold     Invariant = "limits"          // payouts pass no limit, wait for approval if they need it, and are refused for no other reason
	SingleRefund   Invariant = "single-refund"   // the part of a refund is paid once; its end follows proofs of the bank
	SingleCharge   Invariant = "single-charge"   // a pay-in is charged once, at its account; a charge of one that ended is canceled
	Amounts        Invariant = "amounts"         // the amounts of orders, entries and accounts agree
	SingleOrder    Invariant = "single-order"    // one order per reference, as it was requested
	States         Invariant = "states"          // statuses, versions and steps move along the tables of rules.go
	Events         Invariant = "events"          // one event per move, numbered without gaps, delivered as it is
	Isolation      Invariant = "isolation"       // a merchant reads no other's orders
	SingleReceipt  Invariant = "single-receipt"  // a payment is booked once, and only if there is one
	Incoming       Invariant = "incoming"        // all money that came in is booked; what fits no order has a case
	Progress       Invariant = "progress"        // work is due, claimed, over or has a case; at the end it is over
	Clearing       Invariant = "clearing"        // at the end, clearing accounts equal the bank's transfers and payments
	Authenticity   Invariant = "authenticity"    // webhooks are signed; forged and replayed notices are refused
	NoFailure      Invariant = "no-failure"      // no panic, no internal error
	Verified       Invariant = "verified"        // at the end, the gateway's own checks find no defect
	Simulator      Invariant = "simulator"       // the simulation itself works
)

// Violation is a broken invariant.
type Violation struct {
	Invariant Invariant
	Merchant  string // UUID, or "" if none is concerned
	Order     string // UUID of the order, or "" if none is concerned
	Text      string
}

// violatef reports a violation about an order; nil is none.
func (c *Checker) violatef(i Invariant, o *order, format string, args ...any) {
	v := Violation{Invariant: i, Text: fmt.Sprintf(format, args...)}
	if o != nil {
		v.Merchant, v.Order = o.key.merchant.String(), o.key.id.String()
		v.Text = o.kind + " " + o.status + ": " + v.Text
	}
	c.violations = append(c.violations, v)
}

// violateMerchantf reports a violation about a merchant; the zero id is the platform.
func (c *Checker) violateMerchantf(i Invariant, merchant rowID, format string, args ...any) {
	c.violations = append(c.violations, Violation{Invariant: i, Merchant: merchant.String(), Text: fmt.Sprintf(format, args...)})
}

// takeViolations returns the violations found since the last call.
func (c *Checker) takeViolations() []Violation {
	found := c.violations
	c.violations = nil
	return found
}
