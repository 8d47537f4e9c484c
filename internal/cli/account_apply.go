package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/account"
	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// declaredAccounts is the form of a file of accounts.
type declaredAccounts struct {
	Accounts []struct {
		ID       string               `json:"id"`
		Driver   string               `json:"driver"`
		Merchant string               `json:"merchant"` // name; "" if all share it
		State    payment.AccountState `json:"state"`    // "" leaves it
		Settings map[string]string    `json:"settings"`
		Secrets  map[string]string    `json:"secrets"` // @FILE or env:NAME
	} `json:"accounts"`
}

type accountApply struct {
	author

	File   string `arg:"" help:"A JSON file: accounts, each with id, driver, merchant, state, settings and secrets (@FILE or env:NAME)."`
	DryRun bool   `help:"Only print the difference."`
}

// changeView is a change as the command shows it.
type changeView struct {
	Account string            `json:"account"`
	New     bool              `json:"new"`
	Fields  []fieldChangeView `json:"fields"`
}

type fieldChangeView struct {
	Name string `json:"name"`
	From string `json:"from"` // "" of a secret
	To   string `json:"to"`
}

type appliedView struct {
	Applied bool         `json:"applied"`
	Changes []changeView `json:"changes"`
}

// Run prints what differs from the file, and then makes it so.
func (c *accountApply) Run(r *runner, root *commands) error {
	return r.change(&root.Account.settings, &c.author, func(a *app.Admin) error {
		declared, err := c.read(r, a)
		if err != nil {
			return err
		}
		list, err := a.Accounts.Plan(r.ctx, declared)
		if err != nil {
			return err
		}
		if !r.out.json { // before the first change
			printChanges(r.out.w, list)
		}
		if !c.DryRun {
			if list, err = a.Accounts.Apply(r.ctx, declared); err != nil {
				return err
			}
		}
		return r.out.show(appliedView{!c.DryRun, viewChanges(list)}, func(w io.Writer) {
			if c.DryRun {
				_, _ = fmt.Fprintln(w, "Nothing was changed (--dry-run).")
				return
			}
			_, _ = fmt.Fprintln(w, "Applied. Running gateways follow within 2 seconds.")
		})
	})
}

func (c *accountApply) read(r *runner, a *app.Admin) ([]store.Account, error) {
	text, err := os.ReadFile(c.File)
	if err != nil {
		return nil, configError{err}
	}
	var file declaredAccounts
	if err := json.Unmarshal(text, &file, json.RejectUnknownMembers(true)); err != nil {
		return nil, configError{fmt.Errorf("%s: %s", c.File, invalidJSON(err))}
	}
	list := make([]store.Account, len(file.Accounts))
	for i := range file.Accounts {
		v := &file.Accounts[i]
		list[i] = store.Account{ID: v.ID, Driver: v.Driver, State: v.State, Settings: v.Settings}
		if list[i].Secrets.Current, err = r.readSecrets(v.Secrets); err != nil {
			return nil, err
		}
		if v.Merchant == "" {
			continue
		}
		m, err := merchantNamed(r, a, v.Merchant)
		if err != nil {
			return nil, err
		}
		list[i].Merchant = m.ID
	}
	return list, nil
}

var kindNames = map[jsontext.Kind]string{'n': "null", 'f': "boolean", 't': "boolean", '"': "string", '0': "number", '{': "object", '[': "array"}

// invalidJSON is the text of an error of a file, without the names of Go's types.
func invalidJSON(err error) string {
	wrong, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return err.Error()
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Sprintf("%s is not a field", wrong.JSONPointer)
	default:
		return fmt.Sprintf("%s must not be a JSON %s", wrong.JSONPointer, kindNames[wrong.JSONKind])
	}
}

func viewChanges(list []account.Change) []changeView {
	views := []changeView{}
	for _, c := range list {
		if !c.New && len(c.Fields) == 0 {
			continue
		}
		v := changeView{Account: c.Account, New: c.New, Fields: []fieldChangeView{}}
		for _, f := range c.Fields {
			v.Fields = append(v.Fields, fieldChangeView(f))
		}
		views = append(views, v)
	}
	return views
}

func printChanges(w io.Writer, list []account.Change) {
	for _, c := range list {
		switch {
		case c.New:
			_, _ = fmt.Fprintf(w, "  new      %s\n", c.Account)
		case len(c.Fields) == 0:
			_, _ = fmt.Fprintf(w, "  same     %s\n", c.Account)
		}
		for _, f := range c.Fields {
			if f.From == "" && f.To == "" {
				_, _ = fmt.Fprintf(w, "  changed  %s: %s\n", c.Account, f.Name)
				continue
			}
			_, _ = fmt.Fprintf(w, "  changed  %s: %s from %q to %q\n", c.Account, f.Name, f.From, f.To)
		}
	}
}
