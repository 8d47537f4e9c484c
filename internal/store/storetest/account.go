package storetest

import (
	"errors"
	"fmt"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var errNoChange = errors.New("no change")

var accountTests = []test{
	{"an account's id is used once", func(s *suite) {
		create := func(tx *store.AdminTx) error {
			_, err := tx.CreateAccount(s.Context(), store.Account{ID: s.Name(), Driver: "sandbox"})
			return err
		}
		s.write(create)
		s.wantError(s.store.Administer(s.Context(), Operator, create), store.ErrConflict)
		s.wantError(errorOf(s.store.Account(s.Context(), "nobody")), store.ErrNotFound)
	}},
	{"each change of an account is its next version, also if they are concurrent", func(s *suite) {
		change := func(id string, how func(a *store.Account) error) error {
			return s.store.Administer(s.Context(), Operator, func(tx *store.AdminTx) error {
				_, err := tx.ChangeAccount(s.Context(), id, how)
				return err
			})
		}
		id := s.Name()
		s.write(func(tx *store.AdminTx) error {
			_, err := tx.CreateAccount(s.Context(), store.Account{ID: id, Driver: "sandbox"})
			return err
		})
		s.concurrently(4, func(i int) error {
			return change(id, func(a *store.Account) error {
				a.Settings[fmt.Sprint(i)] = "set"
				return nil
			})
		})
		got := must(s.store.Account(s.Context(), id))
		s.equal("settings and version", values(len(got.Settings), got.Version), values(4, int64(5)))
		s.equal("polled version", must(s.store.AccountVersions(s.Context()))[id], int64(5))
		s.wantError(change(id, func(*store.Account) error { return errNoChange }), errNoChange)
		s.wantError(change("nobody", func(*store.Account) error { return nil }), store.ErrNotFound)
		s.equal("version after a refused change", must(s.store.Account(s.Context(), id)).Version, int64(5))
	}},
	{"an account whose secrets do not open is read as damaged, and is not changed", func(s *suite) {
		id := s.Name()
		s.write(func(tx *store.AdminTx) error {
			if _, err := tx.CreateAccount(s.Context(), store.Account{ID: id, Driver: "sandbox"}); err != nil {
				return err
			}
			return tx.ExecOne(s.Context(), "UPDATE accounts SET secrets = $1 WHERE id = $2", []byte("damaged"), id)
		})
		got := must(s.store.Account(s.Context(), id))
		s.equal("damaged", got.Damaged != nil, true)
		s.wantError(s.store.Administer(s.Context(), Operator, func(tx *store.AdminTx) error {
			_, err := tx.ChangeAccount(s.Context(), id, func(*store.Account) error { return nil })
			return err
		}), db.ErrSealed)
		found := false
		for _, a := range must(s.store.Accounts(s.Context())) {
			found = found || a.ID == id && a.Damaged != nil
		}
		s.equal("listed", found, true)
	}},
	{"an account that was changed outside the gateway is damaged, and is not changed", func(s *suite) {
		for i, set := range []string{`settings = '{"url":"https://evil.example"}'`, "state = 'draining'", "driver = 'other'", "suspended_from = 'active'"} {
			id := fmt.Sprint(s.Name(), i)
			s.write(func(tx *store.AdminTx) error {
				_, err := tx.CreateAccount(s.Context(), store.Account{ID: id, Driver: "sandbox", State: payment.AccountLive, Settings: map[string]string{"b": "1", "a": "2"}})
				return err
			})
			s.equal("damaged at first", must(s.store.Account(s.Context(), id)).Damaged, nil)
			s.write(func(tx *store.AdminTx) error {
				return tx.ExecOne(s.Context(), "UPDATE accounts SET "+set+" WHERE id = $1", id)
			})
			s.wantError(must(s.store.Account(s.Context(), id)).Damaged, store.ErrChangedOutside)
			s.wantError(s.store.Administer(s.Context(), Operator, func(tx *store.AdminTx) error {
				_, err := tx.ChangeAccount(s.Context(), id, func(*store.Account) error { return nil })
				return err
			}), store.ErrChangedOutside)
		}
	}},
	{"routes are their merchant's, in order, and are replaced per operation and method", func(s *suite) {
		m, other := s.merchant(), s.merchant()
		routes := func(m store.Merchant) string {
			text := ""
			for _, r := range must(s.store.Merchant(s.Context(), m.ID)).Routes {
				text += fmt.Sprintf("%s/%s=%s %d-%d %d%%; ", r.Operation, r.Method, r.Account, r.Minimum, r.Maximum, r.Share)
			}
			return text
		}
		const first = "payin/=bank 0-0 0%; payout/=bank 0-0 0%; "
		s.equal("routes of a new merchant", routes(m), first)
		set := func(method payment.Method, list ...payment.Route) {
			s.write(func(tx *store.AdminTx) error {
				return tx.SetRoutes(s.Context(), m.ID, payment.OperationPayin, method, list)
			})
		}
		set(payment.PIX, payment.Route{Account: "z", Minimum: 1, Maximum: 100, Share: 30}, payment.Route{Account: "a"})
		s.equal("with others for a method", routes(m), "payin/=bank 0-0 0%; payin/PIX=z 1-100 30%; payin/PIX=a 0-0 0%; payout/=bank 0-0 0%; ")
		set("", payment.Route{Account: "b"})
		set(payment.PIX)
		s.equal("replaced, and removed", routes(m), "payin/=b 0-0 0%; payout/=bank 0-0 0%; ")
		s.equal("routes of the other", routes(other), first)
		for _, v := range must(s.store.Merchants(s.Context())) {
			if v.ID == m.ID {
				s.equal("listed", values(len(v.Routes), v.Routes[0].Account), values(2, "b"))
			}
		}
	}},
}
