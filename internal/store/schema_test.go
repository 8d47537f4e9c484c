package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// keyedOtherwise lists the tables that merchant_id does not lead: reference tables,
// of which every node of a sharded database has all rows, and claims, which are
// distributed by their own key.
var keyedOtherwise = []string{"installation", "settings", "merchants", "accounts", "credentials", "nodes", "audit", "receipt_claims", "notices", "feeds", "consents"}

// tables are a schema: for each table its columns, nullable ones marked, and its
// unique keys.
type tables map[string]*struct{ columns, keys []string }

func (s tables) at(name string) *struct{ columns, keys []string } {
	if s[name] == nil {
		s[name] = &struct{ columns, keys []string }{}
	}
	return s[name]
}

// The same two queries for both engines: table, column, and NULL if it may be; and
// table, columns of a unique key.
var catalog = map[string][2]string{
	"postgres": {
		`SELECT table_name, column_name || CASE is_nullable WHEN 'YES' THEN ' NULL' ELSE '' END FROM information_schema.columns
			WHERE table_schema = 'public' ORDER BY table_name, ordinal_position`,
		`SELECT t.relname, string_agg(a.attname, ' ' ORDER BY k.place) FROM pg_index i
			JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace AND n.nspname = 'public'
			CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
			JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum
			WHERE i.indisunique GROUP BY t.relname, i.indexrelid ORDER BY 1, 2`,
	},
	"sqlite": {
		`SELECT m.name, c.name || CASE WHEN c."notnull" = 0 THEN ' NULL' ELSE '' END FROM sqlite_master m, pragma_table_info(m.name) c
			WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid`,
		`SELECT m.name, (SELECT group_concat(k.name, ' ') FROM pragma_index_info(i.name) k) FROM sqlite_master m, pragma_index_list(m.name) i
			WHERE m.type = 'table' AND i."unique" = 1 AND m.name NOT LIKE 'sqlite_%' ORDER BY 1, 2`,
	},
}

func readSchema(t *testing.T, s *store.Store) tables {
	t.Helper()
	schema := tables{}
	for i, text := range catalog[s.Engine()] {
		rows, err := s.DB().Query(t.Context(), text)
		list, err := db.Collect(rows, err, func(r db.Scanner) (v [2]string, err error) { return v, r.Scan(&v[0], &v[1]) })
		must(t, err)
		for _, v := range list {
			switch {
			case v[0] == "goose_db_version":
			case i == 0:
				schema.at(v[0]).columns = append(schema.at(v[0]).columns, v[1])
			default:
				schema.at(v[0]).keys = append(schema.at(v[0]).keys, v[1])
			}
		}
	}
	return schema
}

func TestSchema(t *testing.T) {
	t.Parallel()
	lists := map[string]string{}
	storetest.Each(t, systemEnv(), func(t *testing.T, o db.Options) {
		s := storetest.Open(t, o)
		schema := readSchema(t, s)
		if len(schema) < 15 {
			t.Fatalf("the catalog shows %d tables", len(schema))
		}
		var list []string
		for name, table := range schema {
			if joined := strings.Join(table.columns, ", "); strings.Contains(joined, "NULL") {
				t.Errorf("%s has a column that may be NULL: %s", name, joined)
			}
			if len(table.keys) == 0 {
				t.Errorf("%s has no key", name)
			}
			for _, key := range table.keys {
				if !strings.HasPrefix(key+" ", "merchant_id ") && !slices.Contains(keyedOtherwise, name) {
					t.Errorf("merchant_id does not lead the key (%s) of %s", key, name)
				}
			}
			list = append(list, fmt.Sprint(name, table.columns))
		}
		slices.Sort(list)
		lists[s.Engine()] = strings.Join(list, "\n")
	})
	if pg, ok := lists["postgres"]; ok && pg != lists["sqlite"] {
		t.Errorf("the engines' tables differ:\n%s\n\n%s", lists["sqlite"], pg)
	}
}

// The schema enforces the rules, independently of the program.
func TestSchemaEnforcesRules(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m := createMerchant(t, s, "m")
		var n store.Needs
		payin, payout := newPayin(t, s, &m, m.ID, "r"), newPayout(t, s, &m, m.ID, "r")
		n.InsertPayin(payin)
		n.InsertPayout(payout)
		_, err := s.Commit(t.Context(), &n, store.Capacity{}, func(_ *store.Loaded, c *store.Changes) error {
			c.AddSend(store.Send{Merchant: m.ID, Payout: m.ID, Number: 1, Outcome: store.SendIntent})
			return nil
		})
		must(t, err)
		for _, text := range []string{
			"INSERT INTO installation SELECT 2, id, 1, 0, 0, 0, 0, '', 0, external_id_key, 0, 0 FROM installation", // only one
			"UPDATE payins SET amount = 0", "UPDATE payins SET paid_amount = -1",
			"UPDATE payins SET refunded_amount = 1", // more than was paid
			"UPDATE payouts SET amount = 0", "UPDATE payouts SET returned_amount = amount + 1", "UPDATE payouts SET returned_amount = -1",
			"INSERT INTO payout_sends SELECT merchant_id, payout_id, 2, processor, body_hash, node, deadline, 'unknown', '', 0, 0 FROM payout_sends", // two undecided
			"INSERT INTO payout_sends SELECT id, id, 1, '', '', '', 0, 'paid', '', 0, 0 FROM merchants WHERE number = 0",                             // of no payout
			"INSERT INTO balances SELECT id, 'available', -1, 1, 0, '', 0 FROM merchants", "INSERT INTO balances SELECT id, 'owed', 1, 1, 0, '', 0 FROM merchants",
			"INSERT INTO postings SELECT id, id, 0, '', id, 'held', 0, 0, 0, 0, 0, '', '' FROM merchants",
			"INSERT INTO deliveries SELECT id, id, 1, id, '', '', '', 0, 0, 0, 0, '', '', 0, 0 FROM merchants", // of no event
			"INSERT INTO credentials (key_id, merchant_id, label, secret_hash, second_hash, second_until, scopes, allowed_ips, expires_at, revoked_at, created_at, mac) " +
				"VALUES ('k', 'nobody', '', '', '', 0, '', '', 0, 0, 0, '')",
			"UPDATE merchants SET number = 7", "UPDATE merchants SET name = 'same'", "UPDATE merchants SET name = NULL",
		} {
			err := s.Administer(t.Context(), storetest.Operator, func(tx *store.AdminTx) error { _, err := tx.Exec(t.Context(), text); return err })
			if err == nil {
				t.Errorf("the schema accepts: %s", text)
			} else if strings.Contains(err.Error(), "no such") || strings.Contains(err.Error(), "columns") || strings.Contains(err.Error(), "syntax") || strings.Contains(err.Error(), "type") {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}
