package cli

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/store"
)

type verifyCommand struct {
	settings

	Merchant string `help:"Verify this merchant only." placeholder:"NAME"`
	Head     []head `help:"Compare the ledger with a last entry that was logged before: an entry that is missing now was removed, or an older copy was put back. May be repeated." placeholder:"ID:NUMBER:HASH"`
	Verbose  bool   `help:"Report each check when it is done, even without a terminal." short:"v"`
}

// head is the last entry of a ledger at some time, as a flag.
type head struct{ store.Head }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *head) UnmarshalText(text []byte) (err error) {
	h.Head, err = store.ParseHead(string(text))
	return err
}

// provenMerchant is the proofs of one merchant.
type provenMerchant struct {
	Merchant string        `json:"merchant"`
	ID       string        `json:"id"`
	Proofs   []store.Proof `json:"proofs"`
	// LastDecision is the head of the chain of decisions. A copy outside the database
	// shows later whether the end of the chain was cut.
	LastDecision *chainHead `json:"lastDecision,omitempty"`
	// LastEntry is the head of the chain of entries, in the form of --head.
	LastEntry string `json:"lastEntry,omitempty"`
}

type chainHead struct {
	Number int64  `json:"number"`
	Hash   string `json:"hash"` // hexadecimal
}

// verified is all proofs.
type verified struct {
	Merchants []provenMerchant `json:"merchants"`
	Defects   int              `json:"defects"`
	// LastAudit is the head of the chain of changes, as LastDecision.
	LastAudit *chainHead `json:"lastAudit,omitempty"`
}

// Run verifies the ledger and the orders, merchant by merchant. Text output has each
// merchant's proofs as soon as they are complete, and the current check until then.
func (c *verifyCommand) Run(r *runner) error {
	var result verified
	err := r.admin(&c.settings, func(a *app.Admin) error {
		list, err := c.merchants(r, a)
		if err != nil {
			return err
		}
		compared := 0
		entries, err := a.Store.Heads(r.ctx)
		if err != nil {
			return err
		}
		for i := range list {
			m := provenMerchant{Merchant: list[i].Name, ID: list[i].ID.String()}
			began := a.Clock.Monotonic()
			err := a.Store.VerifyEach(r.ctx, list[i].ID, func(p store.Proof) {
				m.Proofs = append(m.Proofs, p)
				result.Defects += len(p.Defects)
				if c.Verbose || isTerminal(r.Stderr) {
					now := a.Clock.Monotonic()
					_, _ = fmt.Fprintf(r.Stderr, "%s: %s, %d rows, %s\n", m.Merchant, p.Check, p.Count, (now - began).Round(time.Millisecond))
					began = now
				}
			})
			if err != nil {
				return err
			}
			for _, h := range entries {
				if h.Merchant == list[i].ID {
					m.LastEntry = h.String()
				}
			}
			for _, h := range c.Head {
				if h.Merchant != list[i].ID {
					continue
				}
				p, err := a.Store.ProveHead(r.ctx, h.Head)
				if err != nil {
					return err
				}
				m.Proofs = append(m.Proofs, p)
				result.Defects += len(p.Defects)
				compared++
			}
			switch d, err := a.Store.LastDecision(r.ctx, list[i].ID); {
			case err == nil:
				m.LastDecision = &chainHead{d.Number, hex.EncodeToString(d.Hash)}
			case !isNotFound(err):
				return err
			}
			result.Merchants = append(result.Merchants, m)
			r.out.people(func(w io.Writer) { printProven(w, &m) })
		}
		if compared < len(c.Head) {
			return errors.New("a --head names a merchant that is not there or was not verified")
		}
		if c.Merchant == "" {
			err := query.Record(r.ctx, a.Store, store.SettingVerified, query.Verified{At: a.Clock.Now(), Defects: result.Defects})
			if err == nil {
				result.LastAudit, err = auditHead(r, a)
			}
			if err != nil {
				return err
			}
		}
		return r.out.show(result, func(w io.Writer) { printVerdict(w, &result) })
	})
	return result.verdict(err)
}

// verdict is the error of the command: errDefects if it found some.
func (v *verified) verdict(err error) error {
	if err == nil && v.Defects > 0 {
		err = errDefects
	}
	return err
}

// auditHead is the head of the chain of changes; zero if it has none.
func auditHead(r *runner, a *app.Admin) (*chainHead, error) {
	head, err := a.Store.LastAudit(r.ctx)
	if isNotFound(err) {
		err = nil
	}
	return &chainHead{head.Number, hex.EncodeToString(head.Hash)}, err
}

// merchants lists the merchants to verify: all, and then the platform itself.
func (c *verifyCommand) merchants(r *runner, a *app.Admin) ([]store.Merchant, error) {
	if c.Merchant != "" {
		m, err := merchantOrPlatform(r, a, c.Merchant)
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
		case len(p.Defects) > 0:
			verdict = "DEFECT"
		case p.Count == 0:
			continue // no rows
		}
		rows = append(rows, []string{"  " + verdict, p.Check, strconv.FormatInt(p.Count, 10), p.Proves})
	}
	if len(rows) == 0 {
		rows = [][]string{{"  ok", "no rows yet"}}
	}
	table(w, rows)
	if m.LastDecision != nil {
		_, _ = fmt.Fprintf(w, "  last decision %d, hash %s\n", m.LastDecision.Number, m.LastDecision.Hash)
	}
	if m.LastEntry != "" {
		_, _ = fmt.Fprintf(w, "  last entry %s\n", m.LastEntry)
	}
	for _, p := range m.Proofs {
		for _, f := range p.Defects {
			_, _ = fmt.Fprintf(w, "    %s  %s: %s\n", p.Check, f.ID, f.Detail)
		}
		if p.More {
			_, _ = fmt.Fprintf(w, "    %s  and more\n", p.Check)
		}
	}
	_, _ = fmt.Fprintln(w)
}

func printVerdict(w io.Writer, v *verified) {
	if v.LastAudit != nil {
		_, _ = fmt.Fprintf(w, "Last change of the audit %d, hash %s.\n", v.LastAudit.Number, v.LastAudit.Hash)
	}
	ledgers := plural(len(v.Merchants), "ledger", "ledgers")
	if v.Defects == 0 {
		_, _ = fmt.Fprintf(w, "Verified %s: no defects.\n", ledgers)
		return
	}
	_, _ = fmt.Fprintf(w, "Verified %s: %s. Stop payouts, and find the cause before you change anything.\n", ledgers, plural(v.Defects, "defect", "defects"))
}
