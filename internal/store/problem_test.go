package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// The error that a client gets for an error of the store is true: a request that took too long does
// not say that the database is unavailable.
func TestProblem(t *testing.T) {
	t.Parallel()
	late := fmt.Errorf("db: %w", context.DeadlineExceeded)
	for _, row := range []struct {
		err  error
		kind problem.Kind
		says string
	}{
		{store.ErrNotFound, problem.NotFound, "Order not found."},
		{store.ErrUnavailable, problem.Unavailable, "database is not available"},
		{fmt.Errorf("%w: %w", store.ErrUnavailable, late), problem.Unavailable, "database is not available"}, // a time-out of its own
		{store.ErrCommitUnknown, problem.Unavailable, "database is not available"},
		{fmt.Errorf("%w: %w", store.ErrCommitUnknown, late), problem.Unavailable, "took too long"},
		{late, problem.Unavailable, "took too long"},
		{fmt.Errorf("read: %w", context.Canceled), problem.Unavailable, "took too long"},
	} {
		got := store.Problem(row.err)
		var e *problem.Error
		if !errors.As(got, &e) || e.Kind != row.kind || !strings.Contains(e.Detail, row.says) || !errors.Is(got, row.err) {
			t.Errorf("%v is %v", row.err, got)
		}
	}
	if other := errors.New("a bug"); store.Problem(other) != other || store.Problem(nil) != nil {
		t.Error("another error is changed")
	}
}
