package store_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// sealed is a database with two of everything that is sealed.
type sealed struct {
	t               *testing.T
	s               *store.Store
	merchants       [2]store.Merchant
	payins, payouts [2]payment.ID
	endpoints       [2]payment.ID
}

func newSealed(t *testing.T, s *store.Store) *sealed {
	t.Helper()
	v := &sealed{t: t, s: s}
	for i := range 2 {
		name := string(rune('a' + i))
		v.merchants[i] = createMerchant(t, s, name)
		m := &v.merchants[i]
		v.payins[i], v.payouts[i], v.endpoints[i] = payment.ID{1, byte(i)}, payment.ID{2, byte(i)}, payment.ID{3, byte(i)}
		err := commit(t, s, func(n *store.Needs) {
			n.InsertPayin(newPayin(t, s, m, v.payins[i], "r"))
			n.InsertPayout(newPayout(t, s, m, v.payouts[i], "r"))
			n.NewEndpoint(m.ID)
			n.InsertNotice(s.NewNotice(store.Notice{Processor: "bank", ID: name, Body: []byte(`{"cpf":"52998224725"}`)}))
		}, func(_ *store.Loaded, c *store.Changes) error {
			c.AddEvent(payment.Event{Merchant: m.ID, Type: payment.EventPayinPaid, Subject: v.payins[i]}, []byte(`{"pixKey":"ana@example.com"}`), "")
			e := store.Endpoint{Merchant: m.ID, ID: v.endpoints[i]}
			e.Rotate(s.SealEndpointSecret(m.ID, e.ID, "whsec_of_the_endpoint"), time.Time{})
			c.AddEndpoint(e)
			defense, err := s.NewDefense(m.ID, v.payins[i], payment.Defense{Text: "CPF 52998224725", Files: []payment.DefenseFile{{Size: 1}}}, [][]byte{{1}}, nil)
			c.AddAnswer(payment.DisputeAnswer{Merchant: m.ID, Dispute: v.payins[i], Number: 1, Payin: v.payins[i]}, defense)
			return err
		})
		must(t, err)
		write(t, s, func(tx *store.AdminTx) error {
			_, err := tx.CreateAccount(t.Context(), store.Account{ID: name, Driver: "sandbox", Secrets: store.AccountSecrets{
				Current: map[string]string{"key": "whsec_of_the_account"}, NoticeToken: "whsec_token",
			}})
			return err
		})
	}
	return v
}

// reads opens each sealed column of the first merchant's rows, and of all notices.
func (v *sealed) reads(s *store.Store) map[string]error {
	ctx, m := v.t.Context(), v.merchants[0].ID
	_, personal := s.PayinPersonal(ctx, m, v.payins[0])
	_, beneficiary := s.Payout(ctx, m, v.payouts[0])
	_, body := s.EventNumbered(ctx, m, 1)
	_, secret := s.WebhookSecret(ctx, m)
	account, err := s.Account(ctx, v.merchants[0].Name)
	must(v.t, err)
	e, err := s.EndpointOf(ctx, m, v.endpoints[0])
	must(v.t, err)
	_, _, endpoint := s.EndpointSecrets(&e)
	var notice error
	must(v.t, commit(v.t, s, func(n *store.Needs) { n.DueNotices("bank", 10) }, func(l *store.Loaded, _ *store.Changes) error {
		for _, n := range l.DueNotices("bank") {
			notice = errors.Join(notice, n.Damaged)
		}
		return nil
	}))
	_, _, defense := s.DefenseFiles(ctx, &payment.DisputeAnswer{Merchant: m, Dispute: v.payins[0], Number: 1})
	return map[string]error{
		"dispute_answers.summary": defense, "dispute_answers.content": defense,
		"payins.personal": personal, "payouts.beneficiary": beneficiary, "events.body": body, "merchants.webhook_secret": secret, "notices.body": notice,
		"accounts.secrets": account.Damaged, "webhook_endpoints.secret": endpoint,
	}
}

// column is a sealed column, and the column that names its row's owner.
type column struct{ table, name, owner string }

var sealedColumns = []column{
	{"payins", "personal", "merchant_id"}, {"payouts", "beneficiary", "merchant_id"},
	{"events", "body", "merchant_id"}, {"merchants", "webhook_secret", "id"}, {"notices", "body", "notice_id"}, {"accounts", "secrets", "id"},
	{"webhook_endpoints", "secret", "merchant_id"}, {"dispute_answers", "summary", "merchant_id"}, {"dispute_answers", "content", "merchant_id"},
}

// row is the key of the first or the second owner's row.
func (v *sealed) row(c column, i int) any {
	if c.table == "notices" || c.table == "accounts" {
		return v.merchants[i].Name
	}
	return v.merchants[i].ID[:]
}

// A sealed value opens in its own cell only: not in the same column of another row,
// and not in another column of the same merchant.
func TestSealedColumnsOpenInTheirCellOnly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		v := newSealed(t, s)
		for what, err := range v.reads(v.s) {
			if err != nil {
				t.Errorf("%s in its cell: %v", what, err)
			}
		}
		for _, to := range sealedColumns {
			for _, from := range sealedColumns {
				source := v.row(from, 1) // the same column of another row
				if from != to {
					source = v.row(from, 0) // another column of the same merchant
				}
				var was []byte
				set := "UPDATE " + to.table + " SET " + to.name + " = $1 WHERE " + to.owner + " = $2"
				write(t, s, func(tx *store.AdminTx) error {
					var moved []byte
					must(t, tx.QueryRow(t.Context(), "SELECT "+to.name+" FROM "+to.table+" WHERE "+to.owner+" = $1", v.row(to, 0)).Scan(&was))
					must(t, tx.QueryRow(t.Context(), "SELECT "+from.name+" FROM "+from.table+" WHERE "+from.owner+" = $1", source).Scan(&moved))
					return tx.ExecOne(t.Context(), set, moved, v.row(to, 0))
				})
				if err := v.reads(v.s)[to.table+"."+to.name]; !errors.Is(err, db.ErrSealed) {
					t.Errorf("%s.%s opens as %s.%s: %v", from.table, from.name, to.table, to.name, err)
				}
				write(t, s, func(tx *store.AdminTx) error { return tx.ExecOne(t.Context(), set, was, v.row(to, 0)) })
			}
		}
	})
}

// No personal data and no secret can be found in a column of the database.
func TestPersonalDataIsNotInTheFile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		newSealed(t, s)
		for table, v := range readSchema(t, s) {
			for _, name := range v.columns {
				for _, raw := range query[string](t, s, "SELECT CAST("+name+" AS TEXT) FROM "+table) {
					for _, canary := range []string{"52998224725", "ana@example.com", "whsec_"} {
						if strings.Contains(raw, canary) || strings.Contains(raw, hex.EncodeToString([]byte(canary))) {
							t.Errorf("%s.%s holds %s", table, name, canary)
						}
					}
				}
			}
		}
	})
}

// With another master key nothing opens, and the error says which key is wrong.
func TestOtherMasterKeyOpensNothing(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := storetest.Prepare(t, engine, systemEnv())
			v := newSealed(t, storetest.Open(t, o))
			keys, err := db.NewKeyring(bytes.Repeat([]byte{1}, db.MasterKeyLength), o.Env.Random)
			must(t, err)
			o.Keys, o.Shared = keys, true
			for what, err := range v.reads(storetest.Open(t, o)) {
				if what == "dispute_answers.content" {
					what = "dispute_answers.summary" // is opened first
				}
				if !errors.Is(err, db.ErrSealed) || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "was sealed with another master key") {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// After a change of the master key everything opens with the retired one beside it, and after Rekey
// without it: no column of the database has a value of the retired key.
func TestRekey(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := storetest.Prepare(t, engine, systemEnv())
			old := storetest.Open(t, o)
			v := newSealed(t, old)
			opened := func(retired ...[]byte) *store.Store {
				keys, err := db.NewKeyring(bytes.Repeat([]byte{1}, db.MasterKeyLength), o.Env.Random, retired...)
				must(t, err)
				o.Keys, o.Shared = keys, true
				return storetest.Open(t, o)
			}
			wantReads := func(when string, s *store.Store) {
				t.Helper()
				if err := s.KeyError(); err != nil {
					t.Errorf("%s: %v", when, err)
				}
				for what, err := range v.reads(s) {
					if err != nil {
						t.Errorf("%s: %s: %v", when, what, err)
					}
				}
			}
			s := opened(make([]byte, db.MasterKeyLength)) // as storetest's
			wantReads("before", s)
			if err := opened().KeyError(); !errors.Is(err, db.ErrSealed) {
				t.Errorf("without the retired key: %v", err)
			}
			head := old.Keys().Seal(db.AssociatedData{}, nil)[:5]
			for run := range 2 {
				must(t, s.Rekey(t.Context(), storetest.Operator, func(r store.Rekeyed) {
					if r.Damaged+r.Changed > 0 || (r.Sealed == 0) != (run == 1) {
						t.Errorf("run %d: %+v", run, r)
					}
				}))
			}
			for table, of := range readSchema(t, s) {
				for _, name := range of.columns {
					for _, raw := range query[[]byte](t, s, "SELECT "+name+" FROM "+table) {
						if bytes.HasPrefix(raw, head) {
							t.Errorf("%s.%s has a value of the retired key", table, name)
						}
					}
				}
			}
			wantReads("after", opened())
			if old.Keys().MAC(db.PurposeSearch, []byte("a")) != opened().Keys().MAC(db.PurposeSearch, []byte("a")) {
				t.Error("keyed hashes changed")
			}
		})
	}
}

// A pay-in, refund, dispute or event with a value that cannot be read hides no other in a list.
func TestDamagedRowsAreListed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		v := newSealed(t, s)
		m, payin := v.merchants[0].ID, v.payins[0]
		must(t, commit(t, s, func(n *store.Needs) {
			n.InsertPayin(newPayin(t, s, &v.merchants[0], payment.ID{9}, "other"))
			n.RefundsOf(m, payin)
			n.DisputesOfPayin(m, payin)
		}, func(_ *store.Loaded, c *store.Changes) error {
			for i := range byte(2) {
				c.AddRefund(payment.Refund{Merchant: m, ID: payment.ID{5, i}, Payin: payin, ExternalID: string('a' + rune(i)), Amount: 1}, nil)
				c.AddDispute(payment.Dispute{Merchant: m, ID: payment.ID{6, i}, Payin: payin, ExternalID: string('a' + rune(i)), Amount: 1})
			}
			c.AddEvent(payment.Event{Merchant: m, Type: payment.EventPayinPaid, Subject: payin}, []byte(`{}`), "")
			return nil
		}))
		write(t, s, func(tx *store.AdminTx) error {
			return errors.Join(
				tx.ExecOne(t.Context(), "UPDATE payins SET details = '{', failure = '{' WHERE merchant_id = $1 AND id = $2", m[:], payin[:]),
				tx.ExecOne(t.Context(), "UPDATE refunds SET failure = '{' WHERE merchant_id = $1 AND external_id = 'a'", m[:]),
				tx.ExecOne(t.Context(), "UPDATE disputes SET taken_from = '{' WHERE merchant_id = $1 AND external_id = 'a'", m[:]),
				tx.ExecOne(t.Context(), "UPDATE events SET body = $2 WHERE merchant_id = $1 AND number = 1", m[:], []byte("damaged")),
			)
		})
		payins, err := s.Payins(t.Context(), m, store.Filter{Limit: 9})
		if err != nil || len(payins) != 2 || payins[1].ID != payin || payins[1].Amount == 0 {
			t.Errorf("pay-ins are %+v, %v", payins, err)
		}
		refunds, err := s.Refunds(t.Context(), m, store.Filter{Limit: 9})
		if err != nil || len(refunds) != 2 || refunds[1].Amount != 1 {
			t.Errorf("refunds are %+v, %v", refunds, err)
		}
		disputes, err := s.Disputes(t.Context(), m, store.DisputeFilter{Limit: 9})
		if err != nil || len(disputes) != 2 || disputes[1].Amount != 1 {
			t.Errorf("disputes are %+v, %v", disputes, err)
		}
		events, err := s.Events(t.Context(), m, 0, 9)
		if err != nil || len(events) != 2 || !strings.Contains(string(events[0].Body), `"type":"payin.paid"`) || !strings.HasSuffix(string(events[0].Body), `"data":{"id":"`+payin.String()+`"}}`) {
			t.Errorf("events are %+v, %v", events, err)
		}
	})
}

// A payout whose beneficiary cannot be decrypted is read without it, and hides no other in a
// list.
func TestDamagedPayoutIsListed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		v := newSealed(t, s)
		m, damaged, other := &v.merchants[0], v.payouts[0], payment.ID{9}
		must(t, commit(t, s, func(n *store.Needs) { n.InsertPayout(newPayout(t, s, m, other, "other")) }, func(*store.Loaded, *store.Changes) error { return nil }))
		write(t, s, func(tx *store.AdminTx) error {
			return tx.ExecOne(t.Context(), "UPDATE payouts SET beneficiary = $1 WHERE id = $2", []byte("damaged"), damaged[:])
		})
		list, err := s.Payouts(t.Context(), m.ID, store.Filter{Limit: 10})
		must(t, err)
		if len(list) != 2 || list[0].ID != other || list[0].Beneficiary.PIXKey == "" || list[1].ID != damaged || list[1].Beneficiary.PIXKey != "" {
			t.Errorf("listed %+v", list)
		}
		p, err := s.Payout(t.Context(), m.ID, damaged)
		if !errors.Is(err, db.ErrSealed) || p.ID != damaged || p.Amount != list[1].Amount {
			t.Errorf("read %+v, %v", p, err)
		}
	})
}
