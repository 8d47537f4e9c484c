package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Only the defense of a dispute may have a body of more than 64 KiB, of up to 1.5 MiB.
func TestDefenseIsLarger(t *testing.T) {
	h := newHarness(t)
	open := payment.Dispute{Merchant: h.first.ID, ID: payment.ID{1}, Status: payment.DisputeOpen}
	h.gateway.disputeRows = append(h.gateway.disputeRows, store.DefendedDispute{Dispute: open})
	id, unknown := "/disputes/"+open.ID.String(), "/disputes/"+payment.ID{2}.String()
	body := func(size int) string { return `{"text":"` + strings.Repeat("a", size) + `"}` }
	for _, row := range []struct {
		path   string
		size   int
		status int
	}{
		{unknown + "/defense", 3 << 19, http.StatusNotFound},
		{id + "/defense", 100 << 10, http.StatusUnprocessableEntity},
		{id + "/defense", 3<<19 - 20, http.StatusUnprocessableEntity},
		{id + "/defense", 3 << 19, http.StatusRequestEntityTooLarge},
		{"/payin", 100 << 10, http.StatusRequestEntityTooLarge},
	} {
		if a := h.do(http.MethodPost, row.path, body(row.size)); a.status != row.status {
			t.Errorf("%d bytes to %s: %d, want %d", row.size, row.path, a.status, row.status)
		}
	}
}
