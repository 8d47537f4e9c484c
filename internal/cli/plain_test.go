package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/db"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: the database has no schema yet: run porteira migrate", db.ErrSchema), "the database has no schema yet: run porteira migrate"},
		{fmt.Errorf("app: join: %w", db.ErrUnavailable), "join: db: database is unavailable"},
		{errors.New("store: db: open a.db: no such file"), "open a.db: no such file"},
		{errors.Join(errors.New("db: one"), errors.New("store: two")), "one\ntwo"},
		{errors.New("merchant \"db: x\" not found"), "merchant \"db: x\" not found"},
		{errors.New("storefront: closed"), "storefront: closed"},
	} {
		if got := plain(tt.err); got != tt.want {
			t.Errorf("%q is shown as %q, want %q", tt.err, got, tt.want)
		}
	}
}

// Amounts are numbers of cents in all JSON output.
func TestAmountsAreNumbers(t *testing.T) {
	t.Parallel()
	for _, v := range []any{decidedPayout{Amount: 1990}, disputeView{Amount: 1990}, caseView{Amount: 1990}, caseOrder{Amount: 1990}} {
		if text, err := json.Marshal(v); err != nil || !strings.Contains(string(text), `"amount":1990`) {
			t.Errorf("%T is %s, %v", v, text, err)
		}
	}
}
