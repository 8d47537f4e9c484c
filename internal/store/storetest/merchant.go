package storetest

import (
	"fmt"
	"slices"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var merchantTests = []test{
	{"a name is used once, and a merchant is closed and reopened once", func(s *suite) {
		m := s.merchant()
		s.wantError(s.store.Administer(s.Context(), Operator, func(tx *store.AdminTx) error {
			_, err := tx.CreateMerchant(s.Context(), m, "")
			return err
		}), store.ErrConflict)
		closeIt := func(tx *store.AdminTx) error { return tx.CloseMerchant(s.Context(), m.ID) }
		s.write(closeIt)
		got := must(s.store.Merchant(s.Context(), m.ID))
		s.equal("is open", got.ClosedAt.IsZero(), false)
		s.wantError(s.store.Administer(s.Context(), Operator, closeIt), store.ErrConflict)
		reopen := func(tx *store.AdminTx) error { return tx.ReopenMerchant(s.Context(), m.ID) }
		s.write(reopen)
		got = must(s.store.Merchant(s.Context(), m.ID))
		s.equal("is open again, and sound", values(got.ClosedAt.IsZero(), got.Damaged), values(true, error(nil)))
		s.wantError(s.store.Administer(s.Context(), Operator, reopen), store.ErrConflict)
		s.wantError(errorOf(s.store.Merchant(s.Context(), s.id())), store.ErrNotFound)
	}},
	{"a merchant is renamed to a free name only", func(s *suite) {
		m, other := s.merchant(), s.merchant()
		rename := func(id payment.ID, name string) error {
			return s.store.Administer(s.Context(), Operator, func(tx *store.AdminTx) error {
				_, err := tx.ChangeMerchant(s.Context(), id, func(m *store.Merchant) error { m.Name = name; return nil })
				return err
			})
		}
		s.wantError(rename(m.ID, other.Name), store.ErrConflict)
		s.wantError(rename(s.id(), "unknown"), store.ErrNotFound)
		s.must(rename(m.ID, m.Name))
		s.must(rename(m.ID, m.Name+" 2"))
		s.must(rename(other.ID, m.Name))
		s.equal("found by its new name", must(s.store.MerchantByName(s.Context(), m.Name)).ID, other.ID)
	}},
	{"concurrent merchants get distinct numbers", func(s *suite) {
		numbers := make([]int64, 8)
		s.concurrently(len(numbers), func(i int) error {
			return s.store.Administer(s.Context(), Operator, func(tx *store.AdminTx) error {
				m, err := tx.CreateMerchant(s.Context(), store.Merchant{Name: fmt.Sprint("concurrent ", i), Routes: payment.AllRoutes("bank")}, "")
				numbers[i] = m.Number
				return err
			})
		})
		slices.Sort(numbers)
		s.equal("distinct numbers", len(slices.Compact(numbers)), 8)
	}},
	{"the platform is not a merchant", func(s *suite) {
		first := s.merchant()
		list := must(s.store.Merchants(s.Context()))
		s.equal("are by number", slices.IsSortedFunc(list, func(x, y store.Merchant) int { return int(x.Number - y.Number) }), true)
		s.equal("the last one", list[len(list)-1].ID, first.ID)
		for i := range list {
			s.equal("is the platform", list[i].ID.IsZero() || list[i].Number == 0, false)
		}
		platform := must(s.store.Merchant(s.Context(), payment.ID{}))
		s.equal("the platform takes orders", platform.ClosedAt.IsZero(), false)
	}},
	{"a key id is used once, and revoked once", func(s *suite) {
		m := s.merchant()
		create := func(tx *store.AdminTx) error {
			return tx.CreateCredential(s.Context(), store.Credential{KeyID: m.Name, Merchant: m.ID, SecretHash: []byte{1}})
		}
		revoke := func(tx *store.AdminTx) error { return tx.RevokeCredential(s.Context(), m.Name) }
		s.write(create)
		s.wantError(s.store.Administer(s.Context(), Operator, create), store.ErrConflict)
		s.write(revoke)
		s.wantError(s.store.Administer(s.Context(), Operator, revoke), store.ErrNotFound)
		got := must(s.store.Credential(s.Context(), m.Name))
		s.equal("revoked, and of", values(!got.RevokedAt.IsZero(), got.Merchant), values(true, m.ID))
		theirs := must(s.store.Credentials(s.Context(), s.merchant().ID))
		s.equal("credentials of another merchant", len(theirs), 0)
		s.wantError(errorOf(s.store.Credential(s.Context(), "nobody")), store.ErrNotFound)
	}},
	{"a brand is its merchant's, and is replaced", func(s *suite) {
		m, other := s.merchant(), s.merchant()
		brand := func(m store.Merchant) store.Brand {
			return must(s.store.Brand(s.Context(), m.ID))
		}
		s.equal("unsaved brand", brand(m), store.Brand{Merchant: m.ID})
		s.concurrently(4, func(i int) error {
			return s.saveBrand(store.Brand{Merchant: m.ID, Title: fmt.Sprint("title ", i), Color: "#00aa77", Logo: []byte{1}})
		})
		s.equal("title of one of them", brand(m).Title[:6], "title ")
		s.must(s.saveBrand(store.Brand{Merchant: m.ID, Title: "Outra"}))
		got := brand(m)
		sameFields(s, "replaced brand", got, store.Brand{Merchant: m.ID, Title: "Outra", UpdatedAt: got.UpdatedAt}, "Logo")
		s.equal("logo and time", values(len(got.Logo), got.UpdatedAt.IsZero()), values(0, false))
		s.equal("brand of the other", brand(other), store.Brand{Merchant: other.ID})
	}},
	{"a setting has its latest value", func(s *suite) {
		wantSetting := func(want string) {
			s.Helper()
			s.equal("setting", must(s.store.Setting(s.Context(), "a setting")), want)
		}
		wantSetting("")
		for _, value := range []string{"1h0m0s", "2h0m0s", "", "é"} {
			s.write(func(tx *store.AdminTx) error {
				s.must(tx.SetSetting(s.Context(), "a setting", value))
				got, err := tx.Setting(s.Context(), "a setting")
				s.equal("within the transaction", got, value)
				return err
			})
			wantSetting(value)
		}
		s.commit(does(nil, func(_ *loaded, c *changes) {
			c.SetSetting("a setting", "first")
			c.SetSetting("another", "other")
			c.SetSetting("a setting", "last")
		}))
		wantSetting("last")
	}},
	{"the store answers", func(s *suite) {
		s.must(s.store.Ping(s.Context()))
		s.equal("writers, keys and id", values(s.store.Writers() > 0, s.store.Keys() != nil, s.store.Installation().IsZero()), values(true, true, false))
	}},
}

func (s *suite) saveBrand(b store.Brand) error {
	return s.store.Administer(s.Context(), Operator, func(tx *store.AdminTx) error { return tx.SaveBrand(s.Context(), b) })
}
