package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/account"
	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

type accountCommand struct {
	settings

	Add     accountAdd     `cmd:"" help:"Add an account without calling its processor; porteira account test calls it."`
	List    accountList    `cmd:"" help:"List accounts."`
	Show    accountShow    `cmd:"" help:"Show an account and its address for notices."`
	Test    accountTest    `cmd:"" help:"Check an account at its processor, without an effect there."`
	Install accountInstall `cmd:"" help:"Register the address for notices at the processor."`
	Drain   accountDrain   `cmd:"" help:"Take no new orders; everything else continues."`
	Suspend accountSuspend `cmd:"" help:"Send nothing; held money stays held."`
	Resume  accountResume  `cmd:"" help:"Use a draining or suspended account again."`
	Apply   accountApply   `cmd:"" help:"Add and change accounts so that they equal a file; print the difference first."`
	Rotate  accountRotate  `cmd:"" help:"Replace secrets or the token for notices; the previous ones stay valid until --finish."`
}

// accountView is an account as the commands show it: no secret, except the token in
// noticeUrl.
type accountView struct {
	ID          string            `json:"id"`
	Driver      string            `json:"driver"`
	Merchant    string            `json:"merchant,omitempty"` // name; "" if all share it
	State       string            `json:"state"`
	Frozen      bool              `json:"frozen"` // payouts and refunds wait after a cold start
	Settings    map[string]string `json:"settings"`
	Secrets     []string          `json:"secrets"` // names only
	NoticeURL   string            `json:"noticeUrl"`
	Certificate *string           `json:"certificate"` // when it expires; null: the account has none
	Health      string            `json:"health"`
	Rotating    bool              `json:"rotating"`
	NewSecrets  string            `json:"newSecrets,omitempty"` // during a rotation: untested, accepted or refused
	Version     int64             `json:"version"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
	ChangedBy   string            `json:"changedBy,omitempty"` // of one account, not of a list
}

func viewAccount(a *app.Admin, v *store.Account, f *accountFacts) accountView {
	settings := v.Settings
	if settings == nil {
		settings = map[string]string{}
	}
	var certificate *string
	if certified, ok := a.Registry.Find(v.ID).(processor.Certified); ok && !certified.CertificateEnd().IsZero() {
		end := certified.CertificateEnd().UTC().Format(time.RFC3339)
		certificate = &end
	}
	return accountView{
		ID: v.ID, Driver: v.Driver, Merchant: f.merchants[v.Merchant], State: string(v.State), Frozen: waits(a, v, f), Settings: settings,
		Secrets:   append([]string{}, slices.Sorted(maps.Keys(v.Secrets.Current))...),
		NoticeURL: a.PublicURL + account.NoticePath(v), Certificate: certificate, Health: healthOf(a, v, f),
		Rotating: len(v.Secrets.Previous) > 0 || v.Secrets.PreviousToken != "",
		Version:  v.Version, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt,
	}
}

// state is what is shown as the state of an account.
func (v *accountView) state() string {
	const frozen = "frozen"
	switch {
	case !v.Frozen:
		return v.State
	case v.State == string(payment.AccountLive):
		return frozen
	default:
		return v.State + ", " + frozen
	}
}

// accountFacts are what is shown of accounts and is not in their rows.
type accountFacts struct {
	merchants map[payment.ID]string // names
	frozen    func(id string) bool
	startedAt time.Time    // of the last cold start
	stopping  []store.Case // which stop payouts
}

func readAccountFacts(ctx context.Context, a *app.Admin) (*accountFacts, error) {
	list, err := a.Store.Merchants(ctx)
	if err != nil {
		return nil, err
	}
	f := &accountFacts{merchants: map[payment.ID]string{}}
	for i := range list {
		f.merchants[list[i].ID] = list[i].Name
	}
	if f.frozen, err = a.Store.Frozen(ctx); err != nil {
		return nil, err
	}
	inst, err := a.Store.ReadInstallation(ctx)
	if err != nil {
		return nil, err
	}
	f.startedAt = inst.RestoredAt
	f.stopping, err = a.Store.StoppingCases(ctx)
	return f, err
}

// showAccount prints an account after a change, or as it is.
func showAccount(r *runner, a *app.Admin, v *store.Account, first string) error {
	if _, err := a.Registry.Follow(r.ctx); err != nil {
		return err
	}
	facts, err := readAccountFacts(r.ctx, a)
	if err != nil {
		return err
	}
	view := viewAccount(a, v, facts)
	state, _, err := a.NewSecrets(r.ctx, v)
	if view.NewSecrets = string(state); err != nil {
		return err
	}
	var changed *time.Time
	if view.ChangedBy, changed, err = lastChange(r, a, v.Merchant, store.NounAccount, v.ID); err != nil {
		return err
	}
	by := ""
	if changed != nil {
		by = " by " + actor.Actor(view.ChangedBy).Shown()
	}
	return r.out.show(view, func(w io.Writer) {
		if first != "" {
			_, _ = fmt.Fprintf(w, "%s\n\n", first)
		}
		rows := [][]string{
			{"  name", view.ID}, {"  driver", view.Driver}, {"  merchant", orAll(view.Merchant)}, {"  state", view.state()},
		}
		for _, name := range slices.Sorted(maps.Keys(view.Settings)) {
			rows = append(rows, []string{"  " + name, view.Settings[name]})
		}
		for _, name := range view.Secrets {
			rows = append(rows, []string{"  " + name, "(sealed)"})
		}
		if view.Certificate != nil {
			rows = append(rows, []string{"  certificate until", strings.Replace(*view.Certificate, "T", " ", 1)})
		}
		rows = append(rows, []string{"  notices at", view.NoticeURL})
		if view.Rotating {
			rows = append(rows, []string{"  rotation", "the previous values stay valid until porteira account rotate " + view.ID + " --finish"})
		}
		if text := newSecretsText(r, a, v); text != "" {
			rows = append(rows, []string{"  new secrets", text})
		}
		table(w, append(rows, []string{"  created", stamp(view.CreatedAt)}, []string{"  changed", stamp(view.UpdatedAt) + by}, []string{"  health", view.Health}))
	})
}

// newSecretsText says whether the processor accepts the new secrets of an account that is rotating.
func newSecretsText(r *runner, a *app.Admin, v *store.Account) string {
	switch state, at, err := a.NewSecrets(r.ctx, v); {
	case err != nil || state == app.RotationNone:
		return ""
	case state == app.RotationUntested:
		return "not tried yet: porteira account test " + v.ID
	default:
		return string(state) + " at " + stamp(at)
	}
}

// untilDay is the day of a certificate's end.
func untilDay(end *string) string {
	if end == nil {
		return "-"
	}
	day, _, _ := strings.Cut(*end, "T")
	return "until " + day
}

func orAll(merchant string) string {
	if merchant == "" {
		return "(all)"
	}
	return merchant
}

type accountAdd struct {
	author

	Name     string            `arg:"" help:"The account's name, which orders and ledger accounts keep forever."`
	Driver   string            `required:"" help:"The driver: apipix, asaas or sandbox." placeholder:"DRIVER"`
	Merchant string            `help:"The only merchant that may use it; without it all may." placeholder:"NAME"`
	Set      map[string]string `help:"A setting of the driver; may be repeated." mapsep:"none" placeholder:"KEY=VALUE"`
	Secret   map[string]string `help:"A secret of the driver, read from a file or a variable; may be repeated." mapsep:"none" placeholder:"KEY=@FILE|KEY=env:NAME"`
}

// Run adds an account.
func (c *accountAdd) Run(r *runner, root *commands) error {
	return r.change(&root.Account.settings, &c.author, func(a *app.Admin) error {
		v := store.Account{ID: c.Name, Driver: c.Driver, Settings: c.Set}
		var err error
		if v.Secrets.Current, err = r.readSecrets(c.Secret); err != nil {
			return err
		}
		if c.Merchant != "" {
			m, err := merchantNamed(r, a, c.Merchant)
			if err != nil {
				return err
			}
			v.Merchant = m.ID
		}
		if v, err = a.Accounts.Add(r.ctx, v); err != nil {
			return err
		}
		return showAccount(r, a, &v, "Added account "+v.ID+": running gateways open it within 2 seconds.")
	})
}

// readSecrets reads secrets from files and variables. They are never arguments, which
// other users of a machine can see.
func (r *runner) readSecrets(sources map[string]string) (map[string]string, error) {
	secrets := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		source := sources[name]
		if path, ok := strings.CutPrefix(source, "@"); ok {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, configError{fmt.Errorf("cannot read secret %s: %w", name, err)}
			}
			if !utf8.Valid(text) { // such as PKCS #12
				secrets[name] = base64.StdEncoding.EncodeToString(text)
				continue
			}
			secrets[name] = strings.TrimRight(string(text), "\r\n")
			continue
		}
		variable, ok := strings.CutPrefix(source, "env:")
		if !ok {
			return nil, configError{fmt.Errorf("secret %s: write %s=@FILE or %s=env:NAME, because other users of this machine can see arguments", name, name, name)}
		}
		at := slices.IndexFunc(r.Environ, func(pair string) bool { return strings.HasPrefix(pair, variable+"=") })
		if at < 0 {
			return nil, configError{fmt.Errorf("secret %s: the variable %s is not set", name, variable)}
		}
		_, secrets[name], _ = strings.Cut(r.Environ[at], "=")
	}
	return secrets, nil
}

type accountList struct{}

// Run lists accounts.
func (c *accountList) Run(r *runner, root *commands) error {
	return r.admin(&root.Account.settings, func(a *app.Admin) error {
		list, err := a.Store.Accounts(r.ctx)
		if err != nil {
			return err
		}
		facts, err := readAccountFacts(r.ctx, a)
		if err != nil {
			return err
		}
		views := make([]accountView, len(list))
		rows := [][]string{{"NAME", "DRIVER", "MERCHANT", "STATE", "CERTIFICATE", "CREATED", "CHANGED", "VERSION", "HEALTH"}}
		for i := range list {
			v := viewAccount(a, &list[i], facts)
			views[i] = v
			rows = append(rows, []string{v.ID, v.Driver, orAll(v.Merchant), v.state(), untilDay(v.Certificate), stamp(v.CreatedAt), stamp(v.UpdatedAt), strconv.FormatInt(v.Version, 10), healthWord(a, &list[i], facts)})
		}
		return r.out.show(views, func(w io.Writer) { table(w, rows) })
	})
}

type accountShow struct {
	Name string `arg:"" help:"The account's name."`
}

// Run shows an account.
func (c *accountShow) Run(r *runner, root *commands) error {
	return r.admin(&root.Account.settings, func(a *app.Admin) error {
		v, err := a.Accounts.Find(r.ctx, c.Name)
		if err != nil {
			return err
		}
		return showAccount(r, a, &v, "")
	})
}

type accountTest struct {
	Name string `arg:"" help:"The account's name."`
}

// findingView is a finding as the command shows it.
type findingView struct {
	Check   string `json:"check"`
	Detail  string `json:"detail"`
	Problem string `json:"problem"` // "" if it is not wrong
	Action  string `json:"action"`
}

func viewFinding(f processor.Finding) findingView {
	return findingView{f.Check, f.Detail, f.Problem, f.Action}
}

// Run checks an account at its processor. The exit code is 1 if something is wrong.
func (c *accountTest) Run(r *runner, root *commands) error {
	return r.admin(&root.Account.settings, func(a *app.Admin) error {
		v, err := a.Accounts.Find(r.ctx, c.Name)
		if err != nil {
			return err
		}
		findings := []findingView{}
		wrong := false
		for _, f := range a.Inspect(r.ctx, &v) {
			findings = append(findings, viewFinding(f))
			wrong = wrong || f.Problem != ""
		}
		err = r.out.show(findings, func(w io.Writer) { printFindings(w, findings) })
		if err == nil && wrong {
			err = errDefects
		}
		return err
	})
}

type accountInstall struct {
	author

	Name string `arg:"" help:"The account's name."`
}

// Run registers the address for notices.
func (c *accountInstall) Run(r *runner, root *commands) error {
	return r.change(&root.Account.settings, &c.author, func(a *app.Admin) error {
		v, err := a.Accounts.Find(r.ctx, c.Name)
		if err != nil {
			return err
		}
		if err := a.Install(r.ctx, &v); err != nil {
			return err
		}
		if err := a.Accounts.Installed(r.ctx, &v); err != nil {
			return err
		}
		return showAccount(r, a, &v, "The processor of account "+c.Name+" sends notices to the address below.")
	})
}

type accountDrain struct {
	author

	Name string `arg:"" help:"The account's name."`
}

// Run drains an account.
func (c *accountDrain) Run(r *runner, root *commands) error {
	return setState(r, root, &c.author, c.Name, payment.AccountDraining, "it takes no new orders")
}

type accountSuspend struct {
	author

	Name string `arg:"" help:"The account's name."`
}

// Run suspends an account.
func (c *accountSuspend) Run(r *runner, root *commands) error {
	return setState(r, root, &c.author, c.Name, payment.AccountSuspended, "nothing is sent, and held money stays held until porteira account resume "+c.Name)
}

type accountResume struct {
	author

	Name     string `arg:"" help:"The account's name."`
	Compared bool   `name:"transfers-compared" help:"After a restore: you have compared the processor's transfers with this gateway's payouts, and payouts continue once another person confirms it. Takes --reason and --evidence."`
	Evidence string `help:"With --transfers-compared: what was compared, such as the processor's statement."     placeholder:"TEXT"`
}

// Run makes an account live again, or ends its wait after a restore.
func (c *accountResume) Run(r *runner, root *commands) error {
	if !c.Compared && c.Evidence != "" {
		return configError{errors.New("--evidence belongs to --transfers-compared")}
	}
	if c.Compared {
		by, err := c.named()
		if err != nil {
			return err
		}
		return r.changeAs(&root.Account.settings, by, func(a *app.Admin) error {
			v, err := a.Accounts.Find(r.ctx, c.Name)
			if err != nil {
				return err
			}
			result, err := a.Reviews.EndWait(r.ctx, c.Name, review.Request{Actor: by.Actor, Reason: c.Reason, Evidence: c.Evidence})
			if err != nil {
				return err
			}
			first := "Payouts of account " + c.Name + " continue within 2 seconds."
			if result.Action == store.DecisionProposed {
				first = proposedText("the wait of account " + c.Name + " ends")
			}
			return showAccount(r, a, &v, first)
		})
	}
	err := setState(r, root, &c.author, c.Name, payment.AccountLive, "it takes new orders")
	if !problem.Is(err, problem.InvalidState) {
		return err
	}
	return r.admin(&root.Account.settings, func(a *app.Admin) error {
		if frozen, other := a.Store.Frozen(r.ctx); other != nil || !frozen(c.Name) {
			return err
		}
		return errors.New(detail(err) + " Its payouts wait since the gateway's last start: once the transfers are compared, use --transfers-compared --reason TEXT --evidence TEXT.")
	})
}

func setState(r *runner, root *commands, by *author, name string, to payment.AccountState, effect string) error {
	return r.change(&root.Account.settings, by, func(a *app.Admin) error {
		v, err := a.Accounts.SetState(r.ctx, name, to)
		if err != nil {
			return err
		}
		first := "Account " + name + " is " + string(to) + " within 2 seconds: " + effect + "."
		frozen, err := a.Store.Frozen(r.ctx)
		if err != nil {
			return err
		}
		if frozen(name) {
			first += " Its payouts and refunds still wait since the gateway's last start; health says until when."
		}
		return showAccount(r, a, &v, first)
	})
}

type accountRotate struct {
	author

	Name        string            `arg:"" help:"The account's name."`
	Secret      map[string]string `help:"A secret to replace; may be repeated." mapsep:"none" placeholder:"KEY=@FILE|KEY=env:NAME"`
	NoticeToken bool              `help:"Replace the token in the address for notices."`
	Finish      bool              `help:"Refuse the previous secrets and token from now on, once the processor accepts the new secrets."`
	Force       bool              `help:"With --finish: also if the processor does not accept the new secrets."`
}

// Run rotates secrets.
func (c *accountRotate) Run(r *runner, root *commands) error {
	if c.Finish == (len(c.Secret) > 0 || c.NoticeToken) || c.Force && !c.Finish {
		return configError{errors.New("name what to replace (--secret, --notice-token), or --finish")}
	}
	return r.change(&root.Account.settings, &c.author, func(a *app.Admin) error {
		if c.Finish {
			v, err := a.Accounts.Find(r.ctx, c.Name)
			if err == nil && !c.Force {
				err = a.CheckNewSecrets(r.ctx, &v)
			}
			if err == nil {
				v, err = a.Accounts.Finish(r.ctx, c.Name)
			}
			if err != nil {
				return err
			}
			return showAccount(r, a, &v, "The previous secrets of account "+c.Name+" are refused within 2 seconds.")
		}
		secrets, err := r.readSecrets(c.Secret)
		if err != nil {
			return err
		}
		v, err := a.Accounts.Rotate(r.ctx, c.Name, secrets, c.NoticeToken)
		if err != nil {
			return err
		}
		return showAccount(r, a, &v, "Rotated. The previous values stay valid; once porteira account test "+c.Name+" says that the new ones are accepted: porteira account rotate "+c.Name+" --finish")
	})
}
