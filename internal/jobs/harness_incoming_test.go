package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// errDown is why a bank that is down answers no question.
var errDown = errors.New("bank: connection refused")

// Charge books a charge, once per id.
func (b *bank) Charge(_ context.Context, r processor.ChargeRequest) processor.ChargeAnswer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.charges[r.ExternalID] == nil {
		b.charges[r.ExternalID] = &processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeOpen}
	}
	return processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{
		PIX: &payment.PIXDetail{QRCode: "code of " + r.ExternalID, TxID: r.ExternalID, ExpiresAt: r.ExpiresAt},
	}}
}

// QueryCharge says what the books say.
func (b *bank) QueryCharge(_ context.Context, externalID string) processor.ChargeReport {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.questions++
	if b.charged != nil {
		b.charged()
	}
	charge := b.charges[externalID]
	switch {
	case b.down:
		return processor.ChargeReport{Cause: errDown}
	case charge == nil:
		return processor.ChargeReport{Lookup: processor.NotFound}
	}
	report := *charge
	report.Payments = slices.Clone(charge.Payments)
	return report
}

// receive has a payer pay a charge, or what the payer takes for one.
func (b *bank) receive(externalID, id string, amount money.Cents) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.charges[externalID] == nil {
		b.charges[externalID] = &processor.ChargeReport{Lookup: processor.Found}
	}
	p := processor.Payment{ID: id, ExternalID: externalID, EndToEndID: "E" + id, Amount: amount, PaidAt: start}
	b.charges[externalID].Payments = append(b.charges[externalID].Payments, p)
	b.payments = append(b.payments, p)
}

// Payments lists what came in, two at a time; the cursor counts them.
func (b *bank) Payments(_ context.Context, cursor string) (page []processor.Payment, next string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, cursor, errDown
	}
	from, _ := strconv.Atoi(cursor)
	to := min(from+2, len(b.payments))
	return b.payments[from:to], strconv.Itoa(to), nil
}

// VerifyNotice takes every notice for true: whether it is, is asked.
func (b *bank) VerifyNotice(http.Header, []byte, time.Time) (string, error) { return "notice", nil }

// ParseNotice reads a notice whose body names what it speaks of, one a line:
// a transfer by its id, a charge by "charge" and its id.
func (b *bank) ParseNotice(body []byte) (hints []processor.Hint, err error) {
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSuffix(line, "\n")
		switch id, isCharge := strings.CutPrefix(line, "charge "); {
		case isCharge:
			hints = append(hints, processor.Hint{Subject: processor.SubjectCharge, ExternalID: id})
		case len(line) == payment.ExternalIDLength:
			hints = append(hints, processor.Hint{Subject: processor.SubjectTransfer, ExternalID: line})
		case line == "panic":
			panic("a bug of the processor's package")
		default:
			return nil, errors.New("bank: what is this?")
		}
	}
	return hints, nil
}

// order creates a pay-in of 100.00 of a merchant, whose news go to url.
func (g *gateway) order(m store.Merchant, reference, url string) payment.Payin {
	g.t.Helper()
	r := &wire.PayinRequest{
		Method: wire.Some("PIX"), Amount: wire.Some(int64(100_00)), ReferenceID: wire.Some(reference),
		ExpiresIn: wire.Some(int64(3600)), Fingerprint: wire.Fingerprint(reference),
	}
	if url != "" {
		r.WebhookURL = wire.Some(url)
	}
	p, _, err := g.flow.CreatePayin(g.t.Context(), m, r)
	g.must(err)
	return p
}

// wantPayin compares a pay-in's status, what was paid, and how many payments
// are on record for it.
func (g *gateway) wantPayin(p payment.Payin, status payment.PayinStatus, paid money.Cents, receipts int) {
	g.t.Helper()
	got, err := g.store.Payin(g.t.Context(), p.Merchant, p.ID)
	g.must(err)
	list, err := g.store.Receipts(g.t.Context(), p.Merchant, p.ID)
	g.must(err)
	if got.Status != status || got.PaidAmount != paid || len(list) != receipts {
		g.t.Fatalf("pay-in is %s, paid %d by %d payments; want %s, %d by %d\n%s", got.Status, got.PaidAmount, len(list), status, paid, receipts, g.log)
	}
}

// notify has the bank tell of something, as the inbound door records it.
func (g *gateway) notify(id string, lines ...string) {
	g.t.Helper()
	g.must(g.flow.RecordNotice(g.t.Context(), bankName, id, "", fmt.Append(nil, strings.Join(lines, "\n"))))
}

func (g *gateway) apply()   { g.t.Helper(); g.run(g.jobs.ApplyNotices) }
func (g *gateway) collect() { g.t.Helper(); g.run(g.jobs.CollectPayments) }

// Changes lists what moved again, two at a time; the cursor counts them.
func (b *bank) Changes(_ context.Context, cursor string) (page []processor.Change, next string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, cursor, errDown
	}
	from, _ := strconv.Atoi(cursor)
	to := min(from+2, len(b.changes))
	return b.changes[from:to], strconv.Itoa(to), nil
}

// sendBack has the receiver's bank return money, so much in all.
func (b *bank) sendBack(externalID string, total money.Cents) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.transfers[externalID].back = total
	b.changes = append(b.changes, processor.Change{Subject: processor.SubjectTransfer, ExternalID: externalID, Returned: total})
}

// contest moves a payer's dispute of the first payment of a charge.
func (b *bank) contest(externalID, id string, amount money.Cents, state processor.DisputeState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := processor.Dispute{ID: id, Amount: amount, State: state}
	charge := b.charges[externalID]
	charge.Disputes = slices.DeleteFunc(charge.Disputes, func(old processor.Dispute) bool { return old.ID == id })
	charge.Disputes = append(charge.Disputes, d)
	b.changes = append(b.changes, processor.Change{Subject: processor.SubjectCharge, ExternalID: externalID, Dispute: &d})
}
