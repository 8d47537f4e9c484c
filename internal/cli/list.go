package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/store"
)

// listFlags are the flags of every list of orders.
type listFlags struct {
	Argument string     `arg:""                                                                                    help:"The same as --merchant."                                            name:"merchant" optional:""`
	Merchant string     `help:"Only those of this merchant."                                                       placeholder:"NAME"`
	Since    sinceValue `help:"Only those created since then: 90m, 2h, 3d, or a time such as 2026-03-01T12:00:00Z." placeholder:"WHEN"`
	Limit    int        `default:"50"                                                                              help:"Maximum number to list; the output says if there are more."`
}

// accountFlag narrows a list to orders at an account.
type accountFlag struct {
	Account string `help:"Only those at this account." placeholder:"ID"`
}

// lister is how a kind of order is listed. Status and Account of its filter may be empty.
type lister[T, V any] struct {
	query.Filter

	read func(context.Context, *store.Store, query.Filter) (query.List[T], error)
	show func(o *T, names map[payment.ID]string, now time.Time) (V, []string, error) // JSON, and the cells of a row
	head []string
	cut  [][]int // columns that are shortened until a row fits: the first ones, then the next
	none string  // what to say of no orders
}

// list lists orders.
func list[T, V any](r *runner, s *settings, f *listFlags, l lister[T, V]) error {
	return r.admin(s, func(a *app.Admin) error {
		names, err := f.narrow(r, a, &l.Filter)
		if err != nil {
			return err
		}
		found, err := l.read(r.ctx, a.Store, l.Filter)
		if err != nil {
			return err
		}
		views, rows, now := make([]V, len(found.Orders)), append(make([][]string, 0, len(found.Orders)+1), l.head), a.Clock.Now()
		for i := range found.Orders {
			view, row, err := l.show(&found.Orders[i], names, now)
			if err != nil {
				return err
			}
			views[i], rows = view, append(rows, row)
		}
		for _, columns := range l.cut {
			rows = fit(rows, columns...)
		}
		err = r.out.show(views, func(w io.Writer) { tableOr(w, rows, l.none) })
		if found.Partial {
			r.sayMore(true, "Only the newest 100,000 of each merchant were examined: there may be more.")
		} else {
			r.sayMore(found.More, fmt.Sprintf("The newest %d; there are more: --limit lists them.", len(found.Orders)))
		}
		return err
	})
}

// narrow narrows a filter as the flags say, and returns the names of its merchants.
func (f *listFlags) narrow(r *runner, a *app.Admin, filter *query.Filter) (map[payment.ID]string, error) {
	if f.Limit < 1 {
		return nil, configError{fmt.Errorf("--limit must be at least 1, not %d", f.Limit)}
	}
	if f.Argument != "" && f.Merchant != "" && f.Argument != f.Merchant {
		return nil, configError{fmt.Errorf("the argument names merchant %q and --merchant names %q: write one of them", f.Argument, f.Merchant)}
	}
	filter.Limit, filter.Since = f.Limit, f.Since.from(a.Clock.Now())
	if filter.Account != "" {
		if _, err := a.Store.Account(r.ctx, filter.Account); isNotFound(err) {
			return nil, fmt.Errorf("account %q not found: porteira account list lists all accounts", filter.Account)
		} else if err != nil {
			return nil, err
		}
	}
	if name := cmp.Or(f.Merchant, f.Argument); name != "" {
		m, err := merchantNamed(r, a, name)
		filter.Merchants = []payment.ID{m.ID}
		return map[payment.ID]string{m.ID: m.Name}, err
	}
	merchants, err := a.Store.Merchants(r.ctx)
	names := map[payment.ID]string{}
	for i := range merchants {
		filter.Merchants = append(filter.Merchants, merchants[i].ID)
		names[merchants[i].ID] = merchants[i].Name
	}
	return names, err
}

// lastHead is the head of the last column: orders of one merchant have their reference there, others
// their merchant; last is its cell.
func (f *listFlags) lastHead() string { return f.last("MERCHANT", "REFERENCE") }

func (f *listFlags) last(merchant, reference string) string {
	if f.Argument != "" || f.Merchant != "" {
		return reference
	}
	return merchant
}
