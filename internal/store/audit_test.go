package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// audited is a change and its entry, or an error.
type audited struct {
	change func(tx *store.AdminTx) error
	want   string
}

// changesOf is each kind of change of a merchant m.
func changesOf(t *testing.T, s *store.Store, m payment.ID) []audited {
	t.Helper()
	ctx := t.Context()
	secrets := store.AccountSecrets{Current: map[string]string{"key": "SECRET"}, NoticeToken: "SECRET"}
	account := store.Account{ID: "bank", Driver: "sandbox", Settings: map[string]string{"url": "u"}, Secrets: secrets}
	above := money.Cents(5)
	price := payment.Price{Method: payment.PIX, Range: payment.Range{From: 1, To: 1, Terms: payment.Terms{Fixed: 10}}}
	dearer := price
	dearer.Fixed = 20
	return []audited{
		{func(tx *store.AdminTx) error { _, err := tx.CreateAccount(ctx, account); return err },
			`account add bank {} {"driver":"sandbox","noticeToken":"changed","secrets.key":"changed","settings.url":"u","state":""}`},
		{func(tx *store.AdminTx) error {
			_, err := tx.ChangeAccount(ctx, "bank", func(a *store.Account) error {
				a.State, a.Secrets.Previous, a.Secrets.Current = payment.AccountLive, a.Secrets.Current, map[string]string{"key": "SECRET 2"}
				return nil
			})
			return err
		}, `account change bank {"state":""} {"secrets.key":"changed","state":"live"}`},
		{func(tx *store.AdminTx) error {
			_, err := tx.ChangeAccount(ctx, "bank", func(a *store.Account) error { a.Secrets.Previous = nil; return nil })
			return err
		}, `account change bank {} {"previousSecrets":"changed"}`},
		{func(tx *store.AdminTx) error {
			_, err := tx.ChangeAccount(ctx, "bank", func(*store.Account) error { return nil })
			return err
		}, ""},
		{func(tx *store.AdminTx) error {
			tx.Record(store.NounAccount, "install", payment.ID{}, "bank")
			return nil
		}, `account install bank {} {}`},
		{func(tx *store.AdminTx) error {
			_, err := tx.ChangeMerchant(ctx, m, func(m *store.Merchant) error { m.City = "NATAL"; return nil })
			return err
		}, `merchant change  {"city":"RECIFE"} {"city":"NATAL"}`},
		{func(tx *store.AdminTx) error {
			return tx.SaveBrand(ctx, store.Brand{Merchant: m, Title: "T", Document: "SECRET", Logo: []byte("SECRET")})
		},
			`brand set  {"title":""} {"document":"changed","logo":"changed","title":"T"}`},
		{func(tx *store.AdminTx) error {
			return tx.SetLimits(ctx, m, &limits.Limits{Payout: limits.Payout{ApprovalAbove: &above}})
		}, `limit set  {} {"payout.approvalAbove":5}`},
		{func(tx *store.AdminTx) error { return tx.SetLimits(ctx, m, &limits.Limits{}) }, `limit set  {"payout.approvalAbove":5} {}`},
		{func(tx *store.AdminTx) error { return tx.SetPrice(ctx, m, price) },
			`price set PIX 1-1 {} {"basisPoints":0,"businessDays":false,"days":0,"fixed":10,"maximum":0,"minimum":0,"perInstallment":false,"refundsFee":false}`},
		{func(tx *store.AdminTx) error { return tx.SetPrice(ctx, m, dearer) }, `price set PIX 1-1 {"fixed":10} {"fixed":20}`},
		{func(tx *store.AdminTx) error {
			return tx.SetRoutes(ctx, m, payment.OperationPayin, payment.PIX, []payment.Route{{Account: "bank", Share: 40}})
		}, `route set payin PIX {"accounts":[]} {"accounts":[{"account":"bank","share":40}]}`},
		{func(tx *store.AdminTx) error {
			return tx.SetRoutes(ctx, m, payment.OperationPayin, payment.PIX, nil)
		}, `route set payin PIX {"accounts":[{"account":"bank","share":40}]} {"accounts":[]}`},
		{func(tx *store.AdminTx) error {
			return tx.CreateCredential(ctx, store.Credential{KeyID: "key", Merchant: m, Label: "shop", Scopes: []string{"read"}, SecretHash: []byte("SECRET")})
		}, `credential create key {} {"allowedIps":[],"label":"shop","scopes":["read"]}`},
		{func(tx *store.AdminTx) error {
			_, err := tx.ChangeCredential(ctx, "key", func(c *store.Credential) error { c.SecretHash = []byte("SECRET 2"); return nil })
			return err
		}, `credential change key {} {"secret":"changed"}`},
		{func(tx *store.AdminTx) error { return tx.RevokeCredential(ctx, "key") }, `credential revoke key {} {"revokedAt":TIME}`},
		{func(tx *store.AdminTx) error {
			return tx.RotateWebhookSecret(ctx, m, s.SealWebhookSecret(m, "SECRET"), tx.Now)
		}, `webhook secret rotate  {} {"previousSecretEndsAt":TIME,"secret":"changed"}`},
		{func(tx *store.AdminTx) error { return tx.CloseMerchant(ctx, m) }, `merchant close  {} {"closedAt":TIME}`},
		{func(tx *store.AdminTx) error { return tx.ReopenMerchant(ctx, m) }, `merchant reopen  {"closedAt":TIME} {}`},
		{func(tx *store.AdminTx) error {
			return errors.Join(tx.SetLimits(ctx, m, &limits.Limits{Payout: limits.Payout{ApprovalAbove: &above}}), errors.New("refused"))
		}, "error"},
	}
}

// Each change of the configuration is recorded with its author, in its transaction: the changed
// fields, and no secret.
func TestChangesAreAudited(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m := createMerchant(t, s, "m")
		ctx := t.Context()
		for _, row := range changesOf(t, s, m.ID) {
			before, err := s.LastAudit(ctx)
			must(t, err)
			err = s.Administer(ctx, storetest.Operator, row.change)
			e, other := s.LastAudit(ctx)
			must(t, other)
			got := ""
			switch {
			case err != nil:
				got = "error"
			case e.Number == before.Number+1:
				at := func(e store.AuditEntry) string { return fmt.Sprintf("%q", e.CreatedAt.UTC().Format(time.RFC3339Nano)) }
				got = strings.NewReplacer(at(e), "TIME", at(before), "TIME").Replace(strings.Join([]string{e.Noun, e.Action, e.Subject, e.Before, e.After}, " "))
				if e.Actor != "operator:ana" || e.Reason != "a test" || e.CreatedAt.IsZero() {
					t.Errorf("%s: %+v", got, e)
				}
			}
			if got != row.want || row.want == "error" && e.Number != before.Number {
				t.Errorf("%d entries more:\n%s, want\n%s", e.Number-before.Number, got, row.want)
			}
			if strings.Contains(fmt.Sprint(e), "SECRET") {
				t.Errorf("a secret is in %+v", e)
			}
		}
		if err := s.Administer(ctx, actor.Author{}, func(*store.AdminTx) error { return nil }); err == nil {
			t.Error("a change without an author")
		}
		p, err := s.VerifyAudit(ctx)
		if err != nil || p.Count != 20 || len(p.Defects) > 0 {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

// Changes and operations at once are chained; the list has them with the decisions of persons, newest
// first.
func TestAuditList(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m, other := createMerchant(t, s, "m"), createMerchant(t, s, "other")
		var work sync.WaitGroup
		const writers = 8
		for i := range writers {
			work.Go(func() {
				write(t, s, func(tx *store.AdminTx) error { tx.Record("account", "install", other.ID, fmt.Sprint(i)); return nil })
			})
			work.Go(func() {
				must(t, commit(t, s, func(*store.Needs) {}, func(_ *store.Loaded, c *store.Changes) error {
					c.AuditEndpoint(actor.Author{Actor: actor.Credential("key")}, "create", nil, &store.Endpoint{Merchant: m.ID, ID: c.NewID()})
					return nil
				}))
			})
		}
		work.Wait()
		decide(t, s, m, 1)
		must(t, commit(t, s, func(n *store.Needs) { n.Approvals(m.ID, payment.ID{7}) }, func(_ *store.Loaded, c *store.Changes) error {
			for _, a := range []store.ApprovalAction{store.ApprovalRequested, store.ApprovalGiven, store.ApprovalExpired} {
				by := actor.Actor("operator:Bia")
				if a == store.ApprovalExpired {
					by = ""
				}
				c.AddApproval(store.Approval{Merchant: m.ID, Payout: payment.ID{7}, Action: a, Actor: by})
			}
			return nil
		}))
		p, err := s.VerifyAudit(t.Context())
		if err != nil || p.Count != 3+2*writers || len(p.Defects) > 0 {
			t.Errorf("%+v, %v", p, err)
		}
		for _, row := range []struct {
			filter store.AuditFilter
			want   []string // noun and action, sorted
		}{
			{store.AuditFilter{Limit: 100}, append(append(slices.Repeat([]string{"account install", "webhook endpoint create"}, writers),
				"case proposed", "installation create", "merchant create", "merchant create"), "payout approved", "payout expired")},
			{store.AuditFilter{Limit: 100, Merchant: &m.ID}, append(slices.Repeat([]string{"webhook endpoint create"}, writers),
				"case proposed", "merchant create", "payout approved", "payout expired")},
			{store.AuditFilter{Limit: 100, Merchant: &payment.ID{}}, []string{"installation create"}},
			{store.AuditFilter{Limit: 100, As: "ВIA"}, []string{"payout approved"}}, // Cyrillic
			{store.AuditFilter{Limit: 100, As: "system"}, []string{"installation create", "payout expired"}},
			{store.AuditFilter{Limit: 3, As: "key"}, slices.Repeat([]string{"webhook endpoint create"}, 3)},
			{store.AuditFilter{Limit: 100, Since: time.Now().Add(time.Hour)}, nil},
		} {
			list, err := s.AuditList(t.Context(), row.filter)
			must(t, err)
			if !slices.IsSortedFunc(list, func(a, b store.AuditEntry) int { return b.CreatedAt.Compare(a.CreatedAt) }) {
				t.Error("the list is not sorted")
			}
			var got []string
			for _, e := range list {
				got = append(got, e.Noun+" "+e.Action)
			}
			slices.Sort(got)
			slices.Sort(row.want)
			if !slices.Equal(got, row.want) {
				t.Errorf("%+v: %q, want %q", row.filter, got, row.want)
			}
		}
		last, err := s.LastChanges(t.Context(), other.ID, "account")
		if err != nil || len(last) != writers || last["3"].Subject != "3" {
			t.Errorf("%d last changes, %v", len(last), err)
		}
	})
}
