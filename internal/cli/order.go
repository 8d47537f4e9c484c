package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
)

// orderView is an order as operators' commands show it: as the API does, with personal data masked,
// and what merchants do not see. Amounts are cents.
type orderView struct {
	Merchant  string          `json:"merchant"`
	Payin     json.RawMessage `json:"payin,omitempty"`
	Payout    json.RawMessage `json:"payout,omitempty"`
	Refund    json.RawMessage `json:"refund,omitempty"`
	Account   string          `json:"account,omitempty"`
	Step      string          `json:"step,omitempty"`
	Lookups   int             `json:"lookups,omitempty"`
	NextAt    *time.Time      `json:"nextAt,omitempty"`
	ClaimedBy string          `json:"claimedBy,omitempty"` // the process that works on it

	*subjectView // if one order is shown
}

// readOrder reads an order by its id.
func readOrder(r *runner, a *app.Admin, text string, kind query.Kind, noun string) (*query.Subject, string, error) {
	id, err := payment.ParseID(strings.TrimSpace(text))
	if err != nil {
		return nil, "", configError{fmt.Errorf("%q is not the id of a %s: porteira find TEXT finds it by any other id", text, noun)}
	}
	merchant, err := query.OwnerOf(r.ctx, a.Store, id)
	if err == nil {
		var s *query.Subject
		if s, err = query.Explain(r.ctx, a.Store, merchant, id); err == nil && s.Kind == kind {
			m, err := a.Store.Merchant(r.ctx, merchant)
			return s, m.Name, err
		}
	}
	if err == nil || isNotFound(err) {
		err = fmt.Errorf("%s %s not found: porteira find TEXT finds it by any other id", noun, id)
	}
	return nil, "", err
}

// failureText is why an order failed.
func failureText(f *payment.Failure) string {
	if f == nil {
		return ""
	}
	return oneLine(f.Code + ": " + f.Message)
}

// claimText is who works on an order, or when somebody will.
func claimText(next time.Time, by string, now time.Time) string {
	switch {
	case by != "":
		return "in work by process " + by
	case !next.IsZero():
		return stamp(next) + ", " + within(next, now)
	default:
		return ""
	}
}

// printDamaged prints the readable part of an order whose row cannot be opened.
func printDamaged(w io.Writer, merchant string, s *query.Subject) {
	o := orderOf(s)
	pairs(w, [][]string{
		{o.Type, o.ID}, {"merchant", merchant}, {"reference", o.ReferenceID}, {"status", strings.TrimSpace(o.Status + " " + o.Step)},
		{"account", o.Processor}, {"external id", o.ExternalID}, {"processor id", o.ProcessorID},
	})
	_, _ = fmt.Fprintln(w, "\nIts row cannot be opened: porteira case list has a case about it.")
}
