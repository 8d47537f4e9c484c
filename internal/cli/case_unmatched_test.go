package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// open opens the shell's database.
func (s *shell) open() *store.Store {
	s.t.Helper()
	e, _ := env.Virtual(time.Unix(1_700_000_000, 0), 1)
	master, err := db.ParseMasterKey(masterKey)
	s.must(err)
	keys, err := db.NewKeyring(master, e.Random)
	s.must(err)
	opened, err := store.Open(s.t.Context(), db.Options{Database: filepath.Join(s.data, "porteira.db"), Keys: keys, Env: e, Shared: true})
	s.must(err)
	return opened
}

func (s *shell) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// A restored backup lacks a pay-in whose payment is booked then. Its case names the merchant, who can
// repeat the request, and then the pay-in, with the command that pays it: one person is enough.
func TestCaseOfAPaymentNamesItsPayin(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(0, "merchant", "create", "Loja")
	opened := s.open()
	m, err := opened.MerchantByNumber(t.Context(), 1)
	s.must(err)
	externalID := opened.ExternalID(&m, payment.OperationPayin, "pedido-1")
	commit := func(needs *store.Needs, decide func(*store.Loaded, *store.Changes)) {
		t.Helper()
		_, err := opened.Commit(t.Context(), needs, store.Capacity{}, func(l *store.Loaded, c *store.Changes) error {
			decide(l, c)
			return nil
		})
		s.must(err)
	}
	r := payment.Receipt{ID: payment.ID{7}, Processor: "bank", ExternalID: "paid", OrderID: externalID, Amount: 1990}
	id := ""
	commit(&store.Needs{}, func(_ *store.Loaded, c *store.Changes) {
		c.AddReceipt(r)
		id = c.OpenCase(store.Case{
			Kind: store.CaseUnmatchedReceipt, Subject: r.ID, Amount: r.Amount, Params: store.Params{"processor": r.Processor, "externalId": externalID},
		}).String()
	})
	out, _ := s.raw(0, "case", "show", id)
	if !strings.Contains(out, "Loja") || strings.Contains(out, "pedido-1") {
		t.Errorf("before the request is repeated:\n%s", out)
	}
	p := payment.Payin{
		Merchant: m.ID, ID: payment.ID{8}, ReferenceID: "pedido-1", ExternalID: externalID, Method: payment.PIX, Amount: 1990, Status: payment.PayinPending, Version: 1, Processor: r.Processor,
	}
	var needs store.Needs
	needs.InsertPayin(opened.NewPayin(p, payment.PersonalData{}, nil))
	commit(&needs, func(*store.Loaded, *store.Changes) {})
	s.must(opened.Close())
	out, _ = s.raw(0, "case", "show", id)
	for _, want := range []string{"Loja", p.ID.String(), "pedido-1", "PENDING", " --merchant " + m.ID.String() + " --order " + p.ID.String() + "\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("after the request was repeated without %s:\n%s", want, out)
		}
	}
	if strings.Count(out, "Two people") != 1 { // the write-off
		t.Errorf("to apply it takes two people:\n%s", out)
	}
}
