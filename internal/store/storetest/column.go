package storetest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// columnTests store rows with a value in every field, and read them.
var columnTests = []test{
	{"a pay-in keeps all its fields, and its changes", func(s *suite) {
		want := filled(s.payin(s.merchant(), "r", func(p *payment.Payin) { p.Amount, p.PaidAmount = 1_000_000, 900_000 }).Payin, 1)
		personal := payment.PersonalData{Customer: []byte(`{"name":"Ana \"é\""}`), Items: []byte(`[{"title":"x"}]`)}
		p := s.store.NewPayin(want, personal, fingerprint(want.ID))
		s.add(p)
		sameFields(s, "pay-in", s.storedPayin(p), want)
		sameFields(s, "found by id alone", must(s.store.FindPayin(s.Context(), want.ID)), want)
		sameFields(s, "personal data", must(s.store.PayinPersonal(s.Context(), want.Merchant, want.ID)), personal)
		s.commit(setPayin(p, func(p *payment.Payin) {
			want = filled(payment.Payin{
				Merchant: p.Merchant, ID: p.ID, ExternalID: p.ExternalID, ReferenceID: p.ReferenceID, Method: p.Method, Amount: p.Amount,
				Processor: p.Processor, WebhookURL: p.WebhookURL, CreatedAt: p.CreatedAt, PaidAmount: 800_000,
			}, 1000)
			*p = want
		}))
		sameFields(s, "changed pay-in", s.storedPayin(p), want, "Version", "UpdatedAt")
	}},
	{"personal data is kept with and without each member", func(s *suite) {
		m := s.merchant()
		customer, items := []byte(`{"name":"Ana"}`), []byte(`[]`)
		for i, want := range []payment.PersonalData{{}, {Customer: customer}, {Items: items}, {Customer: customer, Items: items}} {
			p := s.payin(m, fmt.Sprint(i))
			p = s.store.NewPayin(p.Payin, want, p.Fingerprint)
			s.add(p)
			sameFields(s, "personal data", must(s.store.PayinPersonal(s.Context(), m.ID, p.Payin.ID)), want)
		}
	}},
	{"a payout keeps all its fields, and its changes", func(s *suite) {
		want := filled(s.payout(s.merchant(), "r", func(p *payment.Payout) { p.Amount = 1_000_000 }).Payout, 1)
		p := must(s.store.NewPayout(want, fingerprint(want.ID), "key"))
		s.add(p)
		sameFields(s, "payout", s.storedPayout(p), want)
		sameFields(s, "found by id alone", must(s.store.FindPayout(s.Context(), want.ID)), want)
		s.commit(setPayout(p, func(p *payment.Payout) {
			want = filled(payment.Payout{
				Merchant: p.Merchant, ID: p.ID, ExternalID: p.ExternalID, ReferenceID: p.ReferenceID, Amount: p.Amount, Fee: p.Fee,
				Processor: p.Processor, PIXKeyType: p.PIXKeyType, WebhookURL: p.WebhookURL, CreatedAt: p.CreatedAt, Beneficiary: p.Beneficiary,
				Batch: p.Batch, KeyHash: p.KeyHash,
			}, 1000)
			*p = want
		}))
		sameFields(s, "changed payout", s.storedPayout(p), want, "Version", "UpdatedAt")
	}},
	{"a send keeps all its fields, and its changes", func(s *suite) {
		p := s.storedPayouts(s.merchant(), "r")[0]
		want := filled(store.Send{Merchant: p.Payout.Merchant, Payout: p.Payout.ID, Number: 1}, 1)
		s.commit(addSends(want))
		got := s.sends(p)[0]
		sameFields(s, "send", got, want, "CreatedAt")
		want = filled(store.Send{
			Merchant: want.Merchant, Payout: want.Payout, Number: 1, Processor: want.Processor, BodyHash: want.BodyHash, Node: want.Node, CreatedAt: got.CreatedAt,
		}, 1000)
		s.commit(does(nil, func(_ *loaded, c *changes) { c.SetSend(want) }))
		sameFields(s, "changed send", s.sends(p)[0], want)
	}},
	{"a receipt keeps all its fields", func(s *suite) {
		want := filled(payment.Receipt{Merchant: s.merchant().ID, ID: s.id(), Amount: 1_000_000}, 1)
		s.equal("fresh", s.receive(&want), []bool{true})
		sameFields(s, "receipt", s.receipts(want.Merchant, want.Payin)[0], want, "CreatedAt")
	}},
	{"a dispute keeps all its fields", func(s *suite) {
		want := filled(payment.Dispute{Merchant: s.merchant().ID, ID: s.id(), Taken: 1_000_000}, 1)
		ask := func(n *needs) { n.Dispute(want.Merchant, want.Processor, want.ExternalID) }
		s.commit(does(ask, func(_ *loaded, c *changes) { c.AddDispute(want) }))
		s.commit(does(ask, func(l *loaded, _ *changes) {
			got, _ := l.Dispute(want.Merchant, want.Processor, want.ExternalID)
			sameFields(s, "dispute", got, want, "CreatedAt", "UpdatedAt")
		}))
	}},
	{"a delivery keeps its changes, and an attempt all its fields", func(s *suite) {
		m := s.merchant()
		s.commit(addEvents(m, s.id(), 1, hook))
		d := s.claimDeliveries(m, s.id(), 1)[0]
		want := filled(store.Delivery{Merchant: d.Merchant, ID: d.ID, EventNumber: 1, Subject: d.Subject, URL: hook, CreatedAt: d.CreatedAt}, 1)
		want.Endpoint = payment.ID{}
		a := filled(store.Attempt{Merchant: m.ID, Delivery: d.ID, URL: hook}, 1000)
		s.commit(setDelivery(d, func(d *store.Delivery) { *d = want }), does(nil, func(_ *loaded, c *changes) { c.AddAttempt(a) }))
		sameFields(s, "delivery", s.delivery(d), want, "Event", "Damaged", "InOrder", "Down", "Moved", "Planned", "Stopped", "Postponed")
		list := s.attempts(m, 1)
		at := slices.IndexFunc(list, func(v store.Attempt) bool { return v.Number == a.Number }) // there is also the one under way
		s.equal("has ended", list[at].EndedAt.IsZero(), false)
		sameFields(s, "attempt", list[at], a, "EndedAt")
	}},
	{"an endpoint keeps all its fields, and its changes", func(s *suite) {
		want := filled(store.Endpoint{Merchant: s.merchant().ID, ID: s.id(), Version: 1, URL: hook}, 1)
		s.commit(does(func(n *needs) { n.NewEndpoint(want.Merchant) }, func(_ *loaded, c *changes) { c.AddEndpoint(want) }))
		got := must(s.store.EndpointOf(s.Context(), want.Merchant, want.ID))
		sameFields(s, "endpoint", got, want, "Damaged", "Position", "ReadTo", "CreatedAt", "UpdatedAt") // after the merchant's last event
		want = filled(store.Endpoint{Merchant: want.Merchant, ID: want.ID, CreatedAt: got.CreatedAt}, 1000)
		s.commit(does(func(n *needs) { n.Endpoints(want.Merchant) }, func(_ *loaded, c *changes) { c.SetEndpoint(want) }))
		sameFields(s, "changed endpoint", must(s.store.EndpointOf(s.Context(), want.Merchant, want.ID)), want, "Damaged")
	}},
	{"a merchant keeps all its fields", func(s *suite) {
		want := filled(store.Merchant{}, 1)
		slices.SortFunc(want.Routes, func(a, b payment.Route) int { return strings.Compare(string(a.Operation), string(b.Operation)) })
		s.write(func(tx *store.AdminTx) (err error) {
			want, err = tx.CreateMerchant(s.Context(), want, "whsec_1")
			return err
		})
		for name, find := range map[string]func() (store.Merchant, error){
			"by id":     func() (store.Merchant, error) { return s.store.Merchant(s.Context(), want.ID) },
			"by number": func() (store.Merchant, error) { return s.store.MerchantByNumber(s.Context(), want.Number) },
			"by name":   func() (store.Merchant, error) { return s.store.MerchantByName(s.Context(), want.Name) },
		} {
			got, err := find()
			s.must(err)
			sameFields(s, name, got, want)
		}
		s.equal("secret", must(s.store.WebhookSecret(s.Context(), want.ID)), "whsec_1")
		other := filled(store.Merchant{}, 1000)
		s.write(func(tx *store.AdminTx) error {
			_, err := tx.ChangeMerchant(s.Context(), want.ID, func(m *store.Merchant) error {
				m.Name, m.City, m.ReturnHosts, m.WebhookHosts = other.Name, other.City, other.ReturnHosts, other.WebhookHosts
				return nil
			})
			return err
		})
		want.Name, want.City, want.ReturnHosts, want.WebhookHosts = other.Name, other.City, other.ReturnHosts, other.WebhookHosts
		sameFields(s, "changed", must(s.store.Merchant(s.Context(), want.ID)), want)
		s.equal("secret", must(s.store.WebhookSecret(s.Context(), want.ID)), "whsec_1")
	}},
	{"an account keeps all its fields, and its changes", func(s *suite) {
		want := filled(store.Account{}, 1)
		s.write(func(tx *store.AdminTx) (err error) {
			want, err = tx.CreateAccount(s.Context(), want)
			return err
		})
		sameFields(s, "account", must(s.store.Account(s.Context(), want.ID)), want, "Damaged")
		other := filled(store.Account{}, 1000)
		s.write(func(tx *store.AdminTx) (err error) {
			want, err = tx.ChangeAccount(s.Context(), want.ID, func(a *store.Account) error {
				a.Settings, a.Secrets, a.State = other.Settings, other.Secrets, other.State
				return nil
			})
			return err
		})
		got := must(s.store.Account(s.Context(), want.ID))
		sameFields(s, "changed account", got, want, "Damaged")
		s.equal("changed", values(got.State, got.Secrets, got.Version), values(other.State, other.Secrets, int64(2)))
	}},
	{"a credential keeps all its fields", func(s *suite) {
		m := s.merchant()
		want := filled(store.Credential{Merchant: m.ID}, 1)
		s.write(func(tx *store.AdminTx) error { return tx.CreateCredential(s.Context(), want) })
		got := must(s.store.Credential(s.Context(), want.KeyID))
		s.equal("times", values(got.CreatedAt.IsZero(), got.RevokedAt.IsZero()), values(false, true))
		sameFields(s, "credential", got, want, "CreatedAt", "RevokedAt")
		s.equal("credentials", must(s.store.Credentials(s.Context(), m.ID)), []store.Credential{got})
	}},
	{"a brand keeps all its fields", func(s *suite) {
		want := filled(store.Brand{Merchant: s.merchant().ID}, 1)
		want.Logo = slices.Repeat([]byte{0, 1, 255}, 10_000)
		s.must(s.saveBrand(want))
		sameFields(s, "brand", must(s.store.Brand(s.Context(), want.Merchant)), want, "UpdatedAt")
	}},
}

// filled is v with a distinct value in each field that is zero, from number n on.
func filled[T any](v T, n int64) T {
	fill(reflect.ValueOf(&v).Elem(), &n)
	return v
}

func fill(v reflect.Value, n *int64) {
	if !v.CanSet() {
		return
	}
	if v.Kind() == reflect.Struct && v.NumField() > 0 && v.Type().Field(0).IsExported() {
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
		return
	}
	if !v.IsZero() {
		return
	}
	*n++
	switch p := v.Addr().Interface().(type) {
	case *payment.ID:
		binary.BigEndian.PutUint64(p[8:], uint64(*n))
		return
	case *time.Time:
		*p = time.UnixMicro(1_700_000_000_000_000 + *n).UTC()
		return
	case *time.Duration:
		*p = time.Duration(*n) * time.Millisecond
		return
	case *netip.Prefix:
		*p = netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(*n)}), 32)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("é\"😀", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(*n)
	case reflect.Uint8:
		v.SetUint(uint64(*n) % 256)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Interface: // why a row is damaged
	default:
		panic("no value for a " + v.Type().String())
	}
}

// sameFields compares the exported fields of two rows, except some.
func sameFields[T any](s *suite, what string, got, want T, except ...string) {
	s.Helper()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		g, w := reflect.ValueOf(got).FieldByIndex(f.Index), reflect.ValueOf(want).FieldByIndex(f.Index)
		if f.IsExported() && !slices.Contains(except, f.Name) && !reflect.DeepEqual(g.Interface(), w.Interface()) {
			s.Errorf("%s: %s is %+v, want %+v", what, f.Name, g, w)
		}
	}
}
