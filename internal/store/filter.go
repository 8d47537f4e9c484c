package store

import (
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// cents shortens the tables of columns.
type cents = money.Cents

// Filter selects orders of a list. Zero fields do not filter.
type Filter struct {
	Status      string
	Method      payment.Method // pay-ins
	ExternalID  string         // derived from a reference
	CreatedFrom time.Time      // inclusive, UTC, to the millisecond
	CreatedTo   time.Time      // exclusive
	Payin       payment.ID     // refunds
	Before      payment.ID     // the last id of the previous page
	Limit       int
}

// where builds the conditions of a list, newest first. Creation times are ranges
// of ids, which contain them to the millisecond. openIndex means that the table has an
// index of the orders that are not COMPLETED.
func (f Filter) where(columns, table string, merchant payment.ID, openIndex bool) (string, []any) {
	args := []any{merchant[:]}
	text := "SELECT " + columns + " FROM " + table + " t WHERE t.merchant_id = $1"
	and := func(condition string, arg any) {
		args = append(args, arg)
		text += " AND " + condition + " $" + strconv.Itoa(len(args))
	}
	if f.Status != "" {
		and("status =", f.Status)
		if openIndex && f.Status != string(payment.PayoutCompleted) {
			text += " AND status <> 'COMPLETED'" // lets the planner use the index of the others
		}
	}
	if f.Method != "" {
		and("method =", string(f.Method))
		if f.Method != payment.PIX {
			text += " AND method <> 'PIX'" // likewise
		}
	}
	if !f.Payin.IsZero() {
		and("payin_id =", f.Payin[:])
	}
	if f.ExternalID != "" {
		and("external_id =", f.ExternalID)
	}
	if !f.CreatedFrom.IsZero() {
		and("id >=", minID(f.CreatedFrom))
	}
	if !f.CreatedTo.IsZero() {
		and("id <", minID(f.CreatedTo))
	}
	if !f.Before.IsZero() {
		and("id <", f.Before[:])
	}
	args = append(args, f.Limit)
	return text + " ORDER BY id DESC LIMIT $" + strconv.Itoa(len(args)), args
}

// DisputeFilter narrows a list of disputes. Zero values do not.
type DisputeFilter struct {
	Status        string
	Kind          string
	Payin         payment.ID
	RespondBefore time.Time  // exclusive; those without a deadline are left out
	Before        payment.ID // exclusive: the last of the page before
	Limit         int
}

func (f DisputeFilter) where(columns, table string, merchant payment.ID) (string, []any) {
	args := []any{merchant[:]}
	text := "SELECT " + columns + " FROM " + table + " t WHERE t.merchant_id = $1"
	and := func(condition string, arg any) {
		args = append(args, arg)
		text += " AND " + condition + " $" + strconv.Itoa(len(args))
	}
	if f.Status != "" {
		and("status =", f.Status)
	}
	if f.Kind != "" {
		and("kind =", f.Kind)
	}
	if !f.Payin.IsZero() {
		and("payin_id =", f.Payin[:])
	}
	if !f.RespondBefore.IsZero() {
		text += " AND respond_by > 0"
		and("respond_by <", micros(f.RespondBefore))
	}
	if !f.Before.IsZero() {
		and("id <", f.Before[:])
	}
	args = append(args, f.Limit)
	return text + " ORDER BY id DESC LIMIT $" + strconv.Itoa(len(args)), args
}
