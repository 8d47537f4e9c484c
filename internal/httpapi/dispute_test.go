package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

// Only the defense of a dispute may have a body of more than 64 KiB, of up to 1.5 MiB.
func TestDefenseIsLarger(t *testing.T) {
	h := newHarness(t)
	const id = "/disputes/019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a"
	body := func(size int) string { return `{"text":"` + strings.Repeat("a", size) + `"}` }
	for _, row := range []struct {
		path   string
		size   int
		status int
	}{
		{id + "/defense", 4000, http.StatusNotFound},
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
