package cli

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

type verifyCommand struct {
	settings

	Merchant string `help:"Verify this merchant only." placeholder:"NAME"`
	Verbose  bool   `help:"Tell of each check as it is made, even where nobody sits at a terminal." short:"v"`
}

// provenMerchant is what was proved of one merchant.
type provenMerchant struct {
	Merchant string        `json:"merchant"`
	ID       string        `json:"id"`
	Proofs   []store.Proof `json:"proofs"`
}

// verified is all that was proved.
type verified struct {
	Merchants []provenMerchant `json:"merchants"`
	Faults    int              `json:"faults"`
}

// Run proves the books, merchant by merchant. People see each merchant's as soon
// as they are proved, and meanwhile what is being looked at.
func (c *verifyCommand) Run(r *runner) error {
	var result verified
	err := r.admin(&c.settings, func(a *app.Admin) error {
		list, err := c.merchants(r, a)
		if err != nil {
			return err
		}
		for i := range list {
			m := provenMerchant{Merchant: list[i].Name, ID: list[i].ID.String()}
			began := a.Clock.Monotonic()
			err := a.Store.VerifyEach(r.ctx, list[i].ID, func(p store.Proof) {
				m.Proofs = append(m.Proofs, p)
				result.Faults += len(p.Faults)
				if c.Verbose || isTerminal(r.Stderr) {
					now := a.Clock.Monotonic()
					_, _ = fmt.Fprintf(r.Stderr, "%s: %s, %d rows, %s\n", m.Merchant, p.Check, p.Count, (now - began).Round(time.Millisecond))
					began = now
				}
			})
			if err != nil {
				return err
			}
			result.Merchants = append(result.Merchants, m)
			r.out.people(func(w io.Writer) { printProven(w, &m) })
		}
		return r.out.show(result, func(w io.Writer) { printVerdict(w, &result) })
	})
	if err == nil && result.Faults > 0 {
		err = errFaulty
	}
	return err
}

// merchants lists whose books are verified: all, and then the platform's own.
func (c *verifyCommand) merchants(r *runner, a *app.Admin) ([]store.Merchant, error) {
	if c.Merchant != "" {
		m, err := merchantNamed(r, a, c.Merchant)
		return []store.Merchant{m}, err
	}
	list, err := a.Store.Merchants(r.ctx)
	if err != nil {
		return nil, err
	}
	platform, err := a.Store.Merchant(r.ctx, payment.ID{})
	return append(list, platform), err
}

func printProven(w io.Writer, m *provenMerchant) {
	_, _ = fmt.Fprintf(w, "%s\n", m.Merchant)
	rows := make([][]string, 0, len(m.Proofs))
	for _, p := range m.Proofs {
		verdict := "ok"
		switch {
		case len(p.Faults) > 0:
			verdict = "FAULTY"
		case p.Count == 0:
			continue // nothing to prove it with
		}
		rows = append(rows, []string{"  " + verdict, p.Check, strconv.FormatInt(p.Count, 10), p.Proves})
	}
	if len(rows) == 0 {
		rows = [][]string{{"  ok", "nothing has happened here yet"}}
	}
	table(w, rows)
	for _, p := range m.Proofs {
		for _, f := range p.Faults {
			_, _ = fmt.Fprintf(w, "    %s  %s: %s\n", p.Check, f.ID, f.Detail)
		}
		if p.More {
			_, _ = fmt.Fprintf(w, "    %s  and more than are listed here\n", p.Check)
		}
	}
	_, _ = fmt.Fprintln(w)
}

func printVerdict(w io.Writer, v *verified) {
	books := plural(len(v.Merchants), "set of books", "sets of books")
	if v.Faults == 0 {
		_, _ = fmt.Fprintf(w, "Proved %s: all sound.\n", books)
		return
	}
	_, _ = fmt.Fprintf(w, "Looked at %s: %s. Stop payouts and find out why before anything is mended.\n", books, plural(v.Faults, "fault", "faults"))
}
