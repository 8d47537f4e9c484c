package account_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/account"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// certified is a processor with a certificate.
type certified struct {
	*coretest.Bank

	end time.Time
}

// CertificateEnd implements [processor.Certified].
func (c *certified) CertificateEnd() time.Time { return c.end }

// A certificate has one open case at a time, 30, 14, 7 and 1 days before its end, whichever
// process finds it first, and after a restart; a case that was dismissed stays closed. Another
// certificate closes it.
func TestCertificateCases(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		const day = 24 * time.Hour
		bank := &certified{Bank: g.Bank, end: g.Env.Clock.Now().Add(31 * day)}
		driver := coretest.Driver{Name: "test", Banks: map[string]processor.Processor{"one": bank, "two": coretest.NewBank()}}
		s, first := g.Accounts(driver)
		g.Account(s, coretest.BankName, "test", "one")
		g.Account(s, "without", "test", "two")
		follow(t, first)
		if ends := first.CertificateEnds(); len(ends) != 1 || !ends[coretest.BankName].Equal(bank.end) {
			t.Errorf("ends %v", ends)
		}
		_, second := g.Second().Accounts(driver)
		check := func() {
			t.Helper()
			_, restarted := g.Second().Accounts(driver)
			for _, r := range []*account.Registry{first, second, restarted} {
				follow(t, r)
				for range 2 {
					if _, err := r.CheckCertificates(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		want := func(days string) {
			t.Helper()
			check()
			list, err := g.Store.OpenCases(t.Context(), 10)
			g.Must(err)
			switch {
			case days == "" && len(list) == 0:
			case len(list) != 1 || list[0].Kind != store.CaseAccountCertificate || list[0].Params["days"] != days || list[0].Params["account"] != coretest.BankName:
				t.Errorf("cases %+v, want one of %q days", list, days)
			}
		}
		want("")
		for _, step := range []struct {
			wait time.Duration
			days string
		}{{1 * day, "30"}, {10 * day, "30"}, {6 * day, "14"}, {7 * day, "7"}, {6 * day, "1"}, {1 * day, "0"}, {100 * day, "0"}} {
			g.Jump(step.wait)
			want(step.days)
		}
		list, err := g.Store.OpenCases(t.Context(), 10)
		g.Must(err)
		g.Must(g.Store.Transact(t.Context(), func(tx *store.Tx) error {
			return tx.Apply(t.Context(), &store.Needs{}, func(_ *store.Loaded, c *store.Changes) error {
				c.CloseCase(list[0].Merchant, list[0].ID, store.ResolvedDismiss)
				return nil
			})
		}))
		want("")
		bank.end = g.Env.Clock.Now().Add(10 * day)
		want("14")
		bank.end = g.Env.Clock.Now().Add(365 * day)
		want("")
	})
}
