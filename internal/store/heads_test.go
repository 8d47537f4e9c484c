package store_test

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/store"
)

// A head that was kept outside shows that entries are missing at the end, or are others.
func TestProveHead(t *testing.T) {
	t.Parallel()
	eachHistory(t, func(t *testing.T, h *history) {
		heads, err := h.Store.Heads(t.Context())
		h.Must(err)
		if len(heads) != 2 || heads[1].Merchant != h.Merchant.ID {
			t.Fatalf("the heads are %v", heads)
		}
		for _, v := range []struct {
			name   string
			change func(head *store.Head)
			defect string
		}{
			{"as it was logged", func(*store.Head) {}, ""},
			{"a later one", func(head *store.Head) { head.Number++ }, "is not there"},
			{"of another ledger", func(head *store.Head) { head.Hash = heads[0].Hash }, "is another one"},
		} {
			head, err := store.ParseHead(heads[1].String())
			h.Must(err)
			v.change(&head)
			p, err := h.Store.ProveHead(t.Context(), head)
			h.Must(err)
			if (len(p.Defects) > 0) != (v.defect != "") || v.defect != "" && !strings.Contains(p.Defects[0].Detail, v.defect) {
				t.Errorf("%s: %+v", v.name, p.Defects)
			}
		}
		for _, bad := range []string{"", "a:1:00", heads[1].Merchant.String() + ":0:00", heads[1].Merchant.String() + ":1:x", heads[1].Merchant.String() + ":1:"} {
			if _, err := store.ParseHead(bad); err == nil {
				t.Errorf("%q is a head", bad)
			}
		}
	})
}
