package cli

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

type auditCommand struct {
	settings

	List   auditList   `cmd:"" help:"List who changed or decided what, newest first."`
	Verify auditVerify `cmd:"" help:"Verify the hash chain of the changes; the gateway may be running."`
}

type auditList struct {
	Merchant string   `help:"Only what concerns this merchant; platform for what all share." placeholder:"NAME"`
	As       string   `help:"Only that of this person, credential or login." placeholder:"NAME"`
	Since    instant  `help:"Only since this time, such as 2026-12-31, 2026-12-31T08:00:00Z, or 7d ago." placeholder:"TIME"`
	Limit    listSize `default:"50" help:"At most this many (default 50)." placeholder:"N"`
}

// listSize is the length of a list.
type listSize int

// UnmarshalText implements [encoding.TextUnmarshaler].
func (v *listSize) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > 100_000 {
		return errors.New("write a number from 1 to 100000")
	}
	*v = listSize(n)
	return nil
}

// instant is a time, or how long ago it was.
type instant struct {
	at  time.Time
	ago time.Duration
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (v *instant) UnmarshalText(text []byte) (err error) {
	if v.ago, err = config.ParseDays(string(text)); err == nil && v.ago >= 0 {
		return nil
	}
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if v.at, err = time.Parse(form, string(text)); err == nil {
			return nil
		}
	}
	return errors.New("write a date such as 2026-12-31, a time such as 2026-12-31T08:00:00Z, or days and hours such as 7d")
}

// auditView is an entry as the commands show it.
type auditView struct {
	Number    int64          `json:"number,omitempty"` // absent for decisions, which are numbered by merchant
	CreatedAt time.Time      `json:"createdAt"`
	Actor     string         `json:"actor"` // operator:NAME, os:LOGIN, credential:KEY or system
	Action    string         `json:"action"`
	Merchant  string         `json:"merchant,omitempty"`
	Subject   string         `json:"subject,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Before    jsontext.Value `json:"before"`
	After     jsontext.Value `json:"after"`
}

// Run lists the audit.
func (c *auditList) Run(r *runner, root *commands) error {
	return r.admin(&root.Audit.settings, func(a *app.Admin) error {
		f := store.AuditFilter{As: c.As, Since: c.Since.at, Limit: int(c.Limit) + 1}
		if c.Since.ago > 0 {
			f.Since = a.Clock.Now().Add(-c.Since.ago)
		}
		if c.Merchant != "" {
			m, err := merchantOrPlatform(r, a, c.Merchant)
			if err != nil {
				return err
			}
			f.Merchant = &m.ID
		}
		list, err := a.Store.AuditList(r.ctx, f)
		if err != nil {
			return err
		}
		merchants, err := a.Store.Merchants(r.ctx)
		if err != nil {
			return err
		}
		names := map[payment.ID]string{}
		for i := range merchants {
			names[merchants[i].ID] = merchants[i].Name
		}
		more := len(list) > int(c.Limit)
		list = list[:min(len(list), int(c.Limit))]
		views := make([]auditView, len(list))
		rows := [][]string{{"TIME", "BY", "ACTION", "MERCHANT", "SUBJECT", "CHANGES", "REASON"}}
		for i := range list {
			e := &list[i]
			views[i] = auditView{
				e.Number, e.CreatedAt, string(e.Actor), e.Noun + " " + e.Action, names[e.Merchant], e.Subject, e.Reason,
				jsontext.Value(e.Before), jsontext.Value(e.After),
			}
			rows = append(rows, []string{stamp(e.CreatedAt), e.Actor.Shown(), views[i].Action, views[i].Merchant, e.Subject, changesOf(e), e.Reason})
		}
		err = r.out.show(views, func(w io.Writer) { tableOr(w, rows, "No entries.") })
		r.sayMore(more, fmt.Sprintf("The newest %d; there are more: --limit, --since, --merchant and --as.", c.Limit))
		return err
	})
}

// changesOf is the changed fields, on one line.
func changesOf(e *store.AuditEntry) string {
	var before, after map[string]jsontext.Value
	if json.Unmarshal([]byte(e.Before), &before) != nil || json.Unmarshal([]byte(e.After), &after) != nil {
		return e.Before + " → " + e.After
	}
	text := func(of map[string]jsontext.Value, name string) string {
		v, ok := of[name]
		if !ok {
			return "none"
		}
		return strings.Trim(string(v), `"`)
	}
	names := maps.Clone(before)
	if names == nil {
		names = map[string]jsontext.Value{}
	}
	maps.Copy(names, after)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		switch to := text(after, name); {
		case len(before) == 0 || string(after[name]) == `"changed"`:
			list = append(list, name+" "+to)
		default:
			list = append(list, name+" "+text(before, name)+" → "+to)
		}
	}
	return strings.Join(list, ", ")
}

// lastChange is the author and the time of the last change of something; empty if there is none.
func lastChange(r *runner, a *app.Admin, merchant payment.ID, noun, subject string) (by string, at *time.Time, err error) {
	last, err := a.Store.LastChanges(r.ctx, merchant, noun)
	if e, ok := last[subject]; ok {
		return string(e.Actor), &e.CreatedAt, err
	}
	return "", nil, err
}

type auditVerify struct{}

// auditProof is the proof of the chain, and its head.
type auditProof struct {
	store.Proof

	Last chainHead `json:"last"`
}

// Run verifies the chain.
func (c *auditVerify) Run(r *runner, root *commands) error {
	return r.admin(&root.Audit.settings, func(a *app.Admin) error {
		p, err := a.Store.VerifyAudit(r.ctx)
		if err != nil {
			return err
		}
		v := auditProof{Proof: p}
		head, err := a.Store.LastAudit(r.ctx)
		if err != nil && !isNotFound(err) {
			return err
		}
		v.Last = chainHead{head.Number, hex.EncodeToString(head.Hash)}
		err = r.out.show(v, func(w io.Writer) {
			for _, d := range p.Defects {
				_, _ = fmt.Fprintf(w, "DEFECT  %s: %s\n", d.ID, d.Detail)
			}
			if p.More {
				_, _ = fmt.Fprintln(w, "and more")
			}
			_, _ = fmt.Fprintf(w, "Verified %s: %s. The last one is %d, hash %s.\n",
				plural(int(p.Count), "entry", "entries"), plural(len(p.Defects), "defect", "defects"), v.Last.Number, v.Last.Hash)
		})
		if err == nil && len(p.Defects) > 0 {
			err = errDefects
		}
		return err
	})
}
