package store_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// decide opens a case of a merchant and appends decisions about it, in one commit each.
func decide(t *testing.T, s *store.Store, m store.Merchant, decisions int) (id payment.ID) {
	t.Helper()
	must(t, commit(t, s, func(*store.Needs) {}, func(_ *store.Loaded, c *store.Changes) error {
		id = c.OpenCase(store.Case{Merchant: m.ID, Kind: store.CaseOverpaid, Amount: 5})
		return nil
	}))
	for i := range decisions {
		must(t, commit(t, s, func(n *store.Needs) { n.Case(m.ID, id) }, func(l *store.Loaded, c *store.Changes) error {
			if got := len(l.Decisions(m.ID, id)); got != i {
				t.Errorf("%d decisions are loaded, want %d", got, i)
			}
			c.AddDecision(store.Decision{
				Merchant: m.ID, ID: c.NewID(), Case: id, Action: store.DecisionProposed, Resolution: "paid", Actor: "operator:ana", Reason: fmt.Sprint("reason ", i),
				Evidence: "statement", Params: store.Params{"order": "o", "amount": "5"},
			})
			return nil
		}))
	}
	return id
}

// chainDefects are the defects of a merchant's chain after a statement that no part of
// the program runs.
func chainDefects(t *testing.T, s *store.Store, m store.Merchant, statement string) (list []store.Defect) {
	t.Helper()
	proofs, err := store.VerifyCorrupted(t.Context(), s, m.ID, []string{statement})
	must(t, err)
	for _, p := range proofs {
		if p.Check == "decisions" {
			list = append(list, p.Defects...)
		}
	}
	return list
}

func TestDecisionsAreChained(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m, other := createMerchant(t, s, "m"), createMerchant(t, s, "other")
		id := decide(t, s, m, 4)
		decide(t, s, other, 1)
		list, err := s.Decisions(t.Context(), m.ID, id)
		must(t, err)
		head, err := s.LastDecision(t.Context(), m.ID)
		must(t, err)
		if len(list) != 4 || head.Number != 4 || !bytes.Equal(head.Hash, list[3].Hash) {
			t.Fatalf("%d decisions, the last is %+v", len(list), head)
		}
		for i, d := range list {
			if d.Number != int64(i+1) || len(d.Hash) != 32 || i > 0 && !bytes.Equal(d.PreviousHash, list[i-1].Hash) || i == 0 && len(d.PreviousHash) > 0 {
				t.Errorf("decision %d: %+v", i+1, d)
			}
		}
		for statement, want := range map[string]string{
			"UPDATE decisions SET actor = actor":                                                                                                       "", // nothing changes
			"UPDATE decisions SET actor = 'bia' WHERE number = 2":                                                                                      "decision 2: the row was changed",
			"UPDATE decisions SET reason = 'reason 1s', evidence = 'tatement' WHERE number = 2":                                                        "decision 2: the row was changed",
			"UPDATE decisions SET params = '{\"order\":\"p\",\"amount\":\"5\"}' WHERE number = 3":                                                      "decision 3: the row was changed",
			"UPDATE decisions SET created_at = created_at + 1 WHERE number = 4":                                                                        "decision 4: the row was changed",
			"UPDATE decisions SET resolution = 'release' WHERE number = 4":                                                                             "decision 4: the row was changed",
			"DELETE FROM decisions WHERE number = 2":                                                                                                   "decision 3: the row after decision 1 is missing",
			"DELETE FROM decisions WHERE number = 1":                                                                                                   "decision 2: the row after decision 0 is missing",
			"UPDATE decisions SET previous_hash = hash WHERE number = 3":                                                                               "decision 3: the row was changed",
			"UPDATE decisions SET number = number + 10 WHERE number = 4":                                                                               "decision 14: the row after decision 3 is missing",
			"UPDATE decisions SET hash = (SELECT hash FROM decisions d WHERE d.number = 1 AND d.merchant_id = decisions.merchant_id) WHERE number = 2": "decision 2: the row was changed",
		} {
			defects := chainDefects(t, s, m, statement)
			if want == "" && len(defects) > 0 || want != "" && (len(defects) == 0 || defects[0].Detail != want) {
				t.Errorf("%s: %v, want %q", statement, defects, want)
			}
		}
	})
}

// Concurrent decisions about cases of one merchant get different numbers.
func TestConcurrentDecisionsAreChained(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m := createMerchant(t, s, "m")
		var work sync.WaitGroup
		const writers, each = 12, 3
		for range writers {
			work.Go(func() { decide(t, s, m, each) })
		}
		work.Wait()
		head, err := s.LastDecision(t.Context(), m.ID)
		if err != nil || head.Number != writers*each {
			t.Errorf("the last decision is %d, %v; want %d", head.Number, err, writers*each)
		}
		proofs, err := s.Verify(t.Context(), m.ID)
		must(t, err)
		if p := proofs[len(proofs)-2]; p.Check != "decisions" || p.Count != writers*each || len(p.Defects) > 0 {
			t.Errorf("%+v", p)
		}
	})
}

// A case is found by its id alone; a closed one is loaded as it was closed.
func TestCaseByID(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m, other := createMerchant(t, s, "m"), createMerchant(t, s, "other")
		id := decide(t, s, m, 0)
		must(t, commit(t, s, func(n *store.Needs) { n.Case(m.ID, id); n.Case(m.ID, id); n.Case(other.ID, id) }, func(l *store.Loaded, c *store.Changes) error {
			c.CloseCase(m.ID, id, store.ResolvedByProof)
			v, ok := l.Case(m.ID, id)
			if _, foreign := l.Case(other.ID, id); !ok || foreign || v.Resolution != store.ResolvedByProof || v.ClosedAt.IsZero() {
				t.Errorf("loaded %v, of another merchant %v, %+v", ok, foreign, v)
			}
			return nil
		}))
		v, err := s.FindCase(t.Context(), id)
		if err != nil || v.Merchant != m.ID || v.Resolution != store.ResolvedByProof || v.Amount != 5 {
			t.Errorf("%+v, %v", v, err)
		}
		if _, err := s.FindCase(t.Context(), m.ID); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("an unknown case: %v", err)
		}
	})
}
