package store

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// cents shortens the tables of columns.
type cents = money.Cents

// Filter selects orders of a list. Zero fields do not filter.
type Filter struct {
	Status      string
	Statuses    []string       // any of these, if there are several
	PaidFrom    time.Time      // pay-ins that were paid in full: inclusive, UTC
	PaidTo      time.Time      // exclusive
	Method      payment.Method // pay-ins
	ExternalID  string         // derived from a reference
	Identified  string         // an external id too
	EndToEndID  string         // of refunds: the id of a return, of any part
	MinAmount   cents          // inclusive
	MaxAmount   cents          // inclusive
	CreatedFrom time.Time      // inclusive, UTC, to the millisecond
	CreatedTo   time.Time      // exclusive
	Payin       payment.ID     // refunds
	Batch       payment.ID     // payouts, with the first and the last one of the batch
	First, Last payment.ID
	// Terms are of the index of personal data. A matching order has at least one of each list.
	Terms  [][]SearchTerm
	Before payment.ID // the last id of the previous page
	From   payment.ID // the last id of this page: see [Store.ScanFrom]
	Limit  int

	// PublicExternalID is the id of the other order that may have the reference of ExternalID: a
	// pay-in that was created without credentials.
	PublicExternalID string
}

// scanMost is how many orders one page examines at most if no index has the selected orders. It is
// a variable for tests.
var scanMost = 10_000

// Scans reports whether no index has the orders that the filters select, so that each candidate
// must be read. See [Store.ScanFrom].
func (f *Filter) Scans() bool {
	if f.ExternalID != "" || f.Identified != "" || f.EndToEndID != "" || !f.Batch.IsZero() || !f.Payin.IsZero() {
		return false // they select few orders
	}
	switch {
	case len(f.Statuses) > 0, !f.PaidFrom.IsZero(), !f.PaidTo.IsZero():
		return true
	case f.MinAmount > 0, f.MaxAmount > 0, f.Method == payment.PIX, f.Status == string(payment.PayoutCompleted):
		return true
	case len(f.Terms) > 0: // an index has the orders of one list, and any further filter may select few of them
		return len(f.Terms) > 1 || f.Status != "" || f.Method != ""
	default: // likewise the orders of a status
		return f.Status != "" && f.Method != ""
	}
}

// driven reports whether the list is read from the index of personal data.
func (f *Filter) driven() bool {
	return len(f.Terms) > 0 && f.ExternalID == "" && f.Identified == "" && f.EndToEndID == "" && f.Batch.IsZero()
}

// ScanFrom is the id of the last order that a page of pay-ins, payouts or refunds may examine,
// going back from its first one; zero if it may examine all. The next page begins before it.
func (s *Store) ScanFrom(ctx context.Context, merchant payment.ID, op payment.Operation, f Filter) (payment.ID, error) {
	q := query{args: []any{merchant[:]}}
	if f.driven() {
		f.Limit = scanMost
		q.text = "SELECT t.id FROM (" + q.candidates(&f) + ") AS t"
	} else {
		q.text = "SELECT t.id FROM " + ordersTable(op) + " t WHERE t.merchant_id = $1"
		q.ids("id", &f)
	}
	q.args = append(q.args, 1, scanMost-1)
	rows, err := s.db.Query(ctx, q.text+" ORDER BY id DESC LIMIT $"+strconv.Itoa(len(q.args)-1)+" OFFSET $"+strconv.Itoa(len(q.args)), q.args...)
	list, err := db.Collect(rows, err, scanID)
	if err != nil || len(list) == 0 {
		return payment.ID{}, s.db.ReadError("orders", err)
	}
	return list[0], nil
}

// ordersTable is the table of an operation's orders.
func ordersTable(op payment.Operation) string {
	switch op {
	case payment.OperationPayout:
		return "payouts"
	case payment.OperationRefund:
		return refundTable.name
	default:
		return "payins"
	}
}

// query builds a statement with its parameters.
type query struct {
	text string
	args []any
}

func (q *query) and(condition string, arg any) {
	q.text += " AND " + condition + " " + q.param(arg)
}

// param adds a parameter, and returns its name.
func (q *query) param(arg any) string {
	q.args = append(q.args, arg)
	return "$" + strconv.Itoa(len(q.args))
}

// ids adds the conditions on ids. Creation times are ranges of ids, which contain them to the
// millisecond.
func (q *query) ids(id string, f *Filter) {
	if !f.CreatedFrom.IsZero() {
		q.and(id+" >=", minID(f.CreatedFrom))
	}
	if !f.CreatedTo.IsZero() {
		q.and(id+" <", minID(f.CreatedTo))
	}
	if !f.Batch.IsZero() {
		q.and(id+" >=", f.First[:])
		q.and(id+" <=", f.Last[:])
		q.and("batch_id =", f.Batch[:])
	}
	if !f.Before.IsZero() {
		q.and(id+" <", f.Before[:])
	}
	if !f.From.IsZero() {
		q.and(id+" >=", f.From[:])
	}
}

// candidates is a query of the newest orders of the first list of terms. It reads a range of the
// index for each term, in its order, so it reads no more rows than needed.
func (q *query) candidates(f *Filter) string {
	limit := q.param(f.Limit)
	list := make([]string, len(f.Terms[0]))
	for i, term := range f.Terms[0] {
		one := query{"SELECT s.order_id AS id FROM search_terms s WHERE s.merchant_id = $1", q.args}
		one.and("s.term =", term[:])
		one.ids("s.order_id", f)
		list[i], q.args = "SELECT * FROM ("+one.text+" ORDER BY s.order_id DESC LIMIT "+limit+") AS term"+strconv.Itoa(i), one.args
	}
	return "SELECT * FROM (" + strings.Join(list, " UNION ALL ") + ") AS terms ORDER BY id DESC LIMIT " + limit
}

// where builds the statement of a list, newest first. openIndex means that the table has an
// index of the orders that are not COMPLETED.
func (f Filter) where(columns, table string, merchant payment.ID, openIndex bool) (string, []any) {
	q := query{args: []any{merchant[:]}}
	others := f.Terms
	if f.driven() {
		candidates := f
		if f.Scans() {
			candidates.Limit = scanMost
		}
		from := q.candidates(&candidates)
		q.text = "SELECT " + columns + " FROM (" + from + ") AS found JOIN " + table + " t ON t.merchant_id = $1 AND t.id = found.id WHERE t.merchant_id = $1"
		others = f.Terms[1:]
	} else {
		q.text = "SELECT " + columns + " FROM " + table + " t WHERE t.merchant_id = $1"
	}
	if f.Status != "" {
		q.and("status =", f.Status)
		if openIndex && f.Status != string(payment.PayoutCompleted) {
			q.text += " AND status <> 'COMPLETED'" // lets the planner use the index of the others
		}
	}
	q.statuses(f.Statuses)
	q.paid(&f)
	if f.Method != "" {
		q.and("method =", string(f.Method))
		if f.Method != payment.PIX {
			q.text += " AND method <> 'PIX'" // likewise
		}
	}
	if !f.Payin.IsZero() {
		q.and("payin_id =", f.Payin[:])
	}
	switch {
	case f.PublicExternalID != "":
		q.text += " AND external_id IN (" + q.param(f.ExternalID) + ", " + q.param(f.PublicExternalID) + ")"
	case f.ExternalID != "":
		q.and("external_id =", f.ExternalID)
	}
	if f.Identified != "" {
		q.and("external_id =", f.Identified)
	}
	if f.EndToEndID != "" {
		q.endToEnd(table, f.EndToEndID)
	}
	if f.MinAmount > 0 {
		q.and("amount >=", int64(f.MinAmount))
	}
	if f.MaxAmount > 0 {
		q.and("amount <=", int64(f.MaxAmount))
	}
	for _, terms := range others {
		q.has(terms)
	}
	if !f.driven() {
		q.ids("id", &f)
		return q.text + " ORDER BY id DESC LIMIT " + q.param(f.Limit), q.args
	}
	return q.text + " ORDER BY t.id DESC LIMIT " + q.param(f.Limit), q.args
}

// statuses adds the condition of any of some statuses; none is no condition.
func (q *query) statuses(statuses []string) {
	if len(statuses) == 0 {
		return
	}
	list := make([]string, len(statuses))
	for i, status := range statuses {
		list[i] = q.param(status)
	}
	q.text += " AND status IN (" + strings.Join(list, ", ") + ")"
}

// paid adds the condition of the time of payment.
func (q *query) paid(f *Filter) {
	if !f.PaidFrom.IsZero() || !f.PaidTo.IsZero() {
		q.text += " AND paid_at > 0"
	}
	if !f.PaidFrom.IsZero() {
		q.and("paid_at >=", micros(f.PaidFrom))
	}
	if !f.PaidTo.IsZero() {
		q.and("paid_at <", micros(f.PaidTo))
	}
}

// endToEnd adds the condition on the id in Pix. A refund of several payments has several
// returns, whose ids are those of its parts.
func (q *query) endToEnd(table, id string) {
	if table != refundTable.name {
		q.and("end_to_end_id <> '' AND end_to_end_id =", id)
		return
	}
	q.text += " AND t.id IN (SELECT p.refund_id FROM refund_parts p WHERE p.merchant_id = $1 AND p.end_to_end_id <> '' AND p.end_to_end_id = " + q.param(id) + ")"
}

// has adds the condition that the order has one of some terms.
func (q *query) has(terms []SearchTerm) {
	list := make([]string, len(terms))
	for i := range terms {
		list[i] = q.param(terms[i][:])
	}
	q.text += " AND EXISTS (SELECT 1 FROM search_terms s WHERE s.merchant_id = $1 AND s.term IN (" + strings.Join(list, ", ") + ") AND s.order_id = t.id)"
}

// DisputeFilter narrows a list of disputes. Zero values do not.
type DisputeFilter struct {
	Statuses      []string // any of them
	Kind          string
	Payin         payment.ID
	RespondBefore time.Time  // exclusive; those without a deadline are left out
	Before        payment.ID // exclusive: the last of the page before
	Limit         int
}

func (f DisputeFilter) where(columns, table string, merchant payment.ID) (string, []any) {
	q := query{"SELECT " + columns + " FROM " + table + " t WHERE t.merchant_id = $1", []any{merchant[:]}}
	q.statuses(f.Statuses)
	if f.Kind != "" {
		q.and("kind =", f.Kind)
	}
	if !f.Payin.IsZero() {
		q.and("payin_id =", f.Payin[:])
	}
	if !f.RespondBefore.IsZero() {
		q.text += " AND respond_by > 0"
		q.and("respond_by <", micros(f.RespondBefore))
	}
	if !f.Before.IsZero() {
		q.and("id <", f.Before[:])
	}
	return q.text + " ORDER BY id DESC LIMIT " + q.param(f.Limit), q.args
}
