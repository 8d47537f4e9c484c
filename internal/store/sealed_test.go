package store_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// safe is a database with one of everything that is sealed, twice.
type safe struct {
	t               *testing.T
	s               *store.Store
	merchants       [2]store.Merchant
	payins, payouts [2]payment.ID
}

func fill(t *testing.T, o store.Options) *safe {
	t.Helper()
	v := &safe{t: t, s: storetest.Open(t, o)}
	for i := range 2 {
		v.write(func(tx *store.Tx) (err error) {
			v.merchants[i], err = tx.CreateMerchant(t.Context(), store.Merchant{Name: string(rune('a' + i)), Processor: "bank"}, "whsec_"+string(rune('a'+i)))
			if err != nil {
				return err
			}
			m := v.merchants[i].ID
			v.payins[i], v.payouts[i] = tx.NewID(), tx.NewID()
			p := &store.NewPayin{Payin: payment.Payin{
				Merchant: m, ID: v.payins[i], ExternalID: "p", ReferenceID: "r", Amount: 1, Status: payment.PayinPending, Version: 1,
			}, Personal: payment.PersonalData{Customer: []byte(`{"document":"52998224725"}`)}}
			q := &store.NewPayout{Payout: payment.Payout{
				Merchant: m, ID: v.payouts[i], ExternalID: "q", ReferenceID: "r", Amount: 1, Status: payment.PayoutPending, Version: 1,
				Beneficiary: payment.Beneficiary{Document: "52998224725", PIXKey: "ana@example.com"},
			}}
			_, err1 := tx.InsertPayins(t.Context(), []*store.NewPayin{p})
			_, err2 := tx.InsertPayouts(t.Context(), []*store.NewPayout{q})
			tx.Announce(payment.Event{Merchant: m, Type: payment.EventPayinPaid, Subject: p.ID}, []byte(`{"pixKey":"ana@example.com"}`), "")
			_, err3 := tx.RecordNotice(t.Context(), store.Notice{Processor: "bank", ID: string(rune('a' + i)), Body: []byte(`{"cpf":"52998224725"}`)})
			return errors.Join(err1, err2, err3)
		})
	}
	return v
}

func (v *safe) write(work func(tx *store.Tx) error) {
	v.t.Helper()
	if err := v.s.Write(v.t.Context(), work); err != nil {
		v.t.Fatal(err)
	}
}

// reads opens each sealed column of the first merchant's rows.
func (v *safe) reads(s *store.Store) map[string]error {
	ctx, m := v.t.Context(), v.merchants[0].ID
	_, personal := s.PayinPersonal(ctx, m, v.payins[0])
	_, beneficiary := s.Payout(ctx, m, v.payouts[0])
	_, body := s.Events(ctx, m, 0, 1)
	_, secret := s.WebhookSecret(ctx, m)
	return map[string]error{"payins.personal": personal, "payouts.beneficiary": beneficiary, "events.body": body, "merchants.webhook_secret": secret}
}

// column is a sealed one, and where its first merchant's row is.
type column struct{ table, name, key string }

var sealedColumns = []column{
	{"payins", "personal", "merchant_id"}, {"payouts", "beneficiary", "merchant_id"},
	{"events", "body", "merchant_id"}, {"merchants", "webhook_secret", "id"},
}

func TestSealedColumnsOpenInTheirPlaceOnly(t *testing.T) {
	t.Parallel()
	storetest.Each(t, env.System(env.OutboundOptions{}), func(t *testing.T, o store.Options) {
		t.Parallel()
		v := fill(t, o)
		for what, err := range v.reads(v.s) {
			if err != nil {
				t.Errorf("%s in its place: %v", what, err)
			}
		}
		first, second := v.merchants[0].ID, v.merchants[1].ID
		for _, to := range sealedColumns {
			for _, from := range sealedColumns {
				source := second // the same column of another row
				if from != to {
					source = first // another column of the same merchant
				}
				var was []byte
				v.write(func(tx *store.Tx) error {
					was = one[[]byte](t, tx, "SELECT "+to.name+" FROM "+to.table+" WHERE "+to.key+" = $1", first[:])
					v.move(tx, to, from, source)
					return nil
				})
				if err := v.reads(v.s)[to.table+"."+to.name]; !errors.Is(err, store.ErrSealed) {
					t.Errorf("%s.%s opens as %s.%s: %v", from.table, from.name, to.table, to.name, err)
				}
				v.write(func(tx *store.Tx) error {
					do(t, tx, "UPDATE "+to.table+" SET "+to.name+" = $1 WHERE "+to.key+" = $2", was, first[:])
					return nil
				})
			}
		}
	})
}

// move copies what is sealed at one place to the first merchant's row of another.
func (v *safe) move(tx *store.Tx, to, from column, source payment.ID) {
	v.t.Helper()
	first := v.merchants[0].ID
	do(v.t, tx, "UPDATE "+to.table+" SET "+to.name+" = (SELECT "+from.name+" FROM "+from.table+" WHERE "+from.key+" = $1) WHERE "+to.key+" = $2",
		source[:], first[:])
}

// Nothing personal is to be found in the files of a database.
func TestPersonalDataIsNotInTheFile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, env.System(env.OutboundOptions{}), func(t *testing.T, o store.Options) {
		t.Parallel()
		v := fill(t, o)
		for _, from := range append([]column{{"notices", "body", ""}}, sealedColumns...) {
			rows, err := v.s.Reader().QueryContext(t.Context(), "SELECT "+from.name+" FROM "+from.table)
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
				var raw []byte
				if err := rows.Scan(&raw); err != nil {
					t.Fatal(err)
				}
				for _, canary := range []string{"52998224725", "ana@example.com", "whsec_"} {
					if bytes.Contains(raw, []byte(canary)) {
						t.Errorf("%s.%s holds %s", from.table, from.name, canary)
					}
				}
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestOtherMasterKeyOpensNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, env.System(env.OutboundOptions{}), func(t *testing.T, o store.Options) {
		t.Parallel()
		v := fill(t, o)
		keys, err := store.NewKeyring(bytes.Repeat([]byte{1}, store.MasterKeyLength), o.Env.Random)
		if err != nil {
			t.Fatal(err)
		}
		o.Keys, o.Shared = keys, true
		for what, err := range v.reads(storetest.Open(t, o)) {
			if !errors.Is(err, store.ErrSealed) || !strings.Contains(err.Error(), what+" was sealed with another master key") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// Every bit counts, and every byte must be there.
func TestSealedValuesAreWhole(t *testing.T) {
	t.Parallel()
	random := env.SeededRandom(1)
	keys, err := store.NewKeyring(make([]byte, store.MasterKeyLength), random)
	if err != nil {
		t.Fatal(err)
	}
	merchant, id := payment.ID{1}, payment.ID{2}
	place := store.SealedAt("payins", merchant, id, "personal")
	plain := []byte("Ana, 52998224725")
	sealed := keys.Seal(place, plain)
	if got, err := keys.Open(place, sealed); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("%q, %v", got, err)
	}
	if again := keys.Seal(place, plain); bytes.Equal(again, sealed) {
		t.Error("the same text is sealed alike twice, which tells that it is the same")
	}
	refused := func(what string, place store.Place, sealed []byte) {
		t.Helper()
		if got, err := keys.Open(place, sealed); !errors.Is(err, store.ErrSealed) || got != nil {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	for bit := range len(sealed) * 8 {
		flipped := bytes.Clone(sealed)
		flipped[bit/8] ^= 1 << (bit % 8)
		refused("a flipped bit", place, flipped)
	}
	for length := range len(sealed) {
		refused("cut", place, sealed[:length])
	}
	refused("with more", place, append(bytes.Clone(sealed), 0))
	refused("in another table", store.SealedAt("payouts", merchant, id, "personal"), sealed)
	refused("of another merchant", store.SealedAt("payins", id, id, "personal"), sealed)
	refused("in another row", store.SealedAt("payins", merchant, merchant, "personal"), sealed)
	refused("in another column", store.SealedAt("payins", merchant, id, "personal2"), sealed)
	refused("with the names moved", store.SealedAt("payinsp", merchant, id, "ersonal"), sealed)
}

func TestMasterKeys(t *testing.T) {
	t.Parallel()
	if key, err := store.ParseMasterKey(" AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"); err != nil || key[31] != 31 {
		t.Errorf("%x, %v", key, err)
	}
	for _, bad := range []string{"", "AAEC", strings.Repeat("A", 43), strings.Repeat("A", 44), "not base64!"} {
		if _, err := store.ParseMasterKey(bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := store.NewKeyring(make([]byte, 16), env.SeededRandom(1)); err == nil {
		t.Error("a short master key is taken")
	}
	keys, err := store.NewKeyring(make([]byte, store.MasterKeyLength), env.SeededRandom(1))
	if err != nil {
		t.Fatal(err)
	}
	hash := keys.SecretHash("a")
	if hash == keys.SecretHash("b") || hash != keys.SecretHash("a") {
		t.Error("secrets are not told apart")
	}
	if hash == keys.MAC(store.PurposeFingerprint, []byte("a")) {
		t.Error("two purposes share a key")
	}
}
