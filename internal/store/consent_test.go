package store_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// A consent is added once. The newest one of an account decides whether its processor asks,
// also if a clock was ahead; other accounts do not count.
func TestConsents(t *testing.T) {
	t.Parallel()
	storetest.Each(t, systemEnv(), func(t *testing.T, o db.Options) {
		s, ctx := storetest.Open(t, o), t.Context()
		add := func(account, externalID string, state store.ConsentState) (asked bool) {
			t.Helper()
			n := &store.Needs{}
			n.Consent(account, externalID)
			_, err := s.Commit(ctx, n, store.Capacity{}, func(l *store.Loaded, c *store.Changes) error {
				_, asked = l.Consent(account, externalID)
				if !asked {
					c.AddConsent(store.Consent{Account: account, ExternalID: externalID, Transfer: "t", State: state})
				}
				if l.AsksConsent(account) != (state == store.ConsentGiven) {
					t.Errorf("%s %s: the account asks: %v", account, externalID, l.AsksConsent(account))
				}
				return nil
			})
			must(t, err)
			return asked
		}
		proved := func(account string, want bool) {
			t.Helper()
			if got, err := s.AsksConsent(ctx, account); err != nil || got != want {
				t.Errorf("account %s asks: %v, %v; want %v", account, got, err, want)
			}
		}
		proved("a", false)
		if add("a", "first", store.ConsentGiven) || !add("a", "first", store.ConsentGiven) {
			t.Error("the consent was there before it was added, or not afterwards")
		}
		proved("a", true)
		proved("b", false)
		ahead := time.Now().Add(24 * time.Hour).UnixMicro()
		must(t, s.Administer(ctx, storetest.Operator, func(tx *store.AdminTx) error { return tx.ExecOne(ctx, "UPDATE consents SET created_at = $1", ahead) }))
		add("a", "second", store.ConsentNotAsked)
		proved("a", false)
		add("b", "first", store.ConsentGiven)
		add("a", "third", store.ConsentGiven)
		proved("a", true)
		for at, want := range map[time.Time]bool{
			time.UnixMicro(ahead): false, time.UnixMicro(ahead + 1): true, time.UnixMicro(ahead + 2): false, time.UnixMicro(ahead + 3): true,
		} {
			if got, err := s.AskedConsent(ctx, "a", at); err != nil || got != want {
				t.Errorf("account a asked before %v: %v, %v; want %v", at, got, err, want)
			}
		}
		if got, err := s.AskedConsent(ctx, "never", time.UnixMicro(ahead)); err != nil || got {
			t.Errorf("an account that never asked: %v, %v", got, err)
		}
	})
}
