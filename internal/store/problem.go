package store

import (
	"context"
	"errors"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/problem"
)

// Problem converts an error of the store into one that a client may see; other errors
// are returned unchanged.
func Problem(err error) error {
	var known *problem.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, ErrNotFound):
		return problem.New(problem.NotFound, "Order not found.").With(err)
	case errors.Is(err, ErrUnavailable):
		return problem.New(problem.Unavailable, "The database is not available. Send the same request again.").With(err)
	case errors.Is(err, ErrChangedOutside):
		return problem.New(problem.Unavailable, "The merchant's settings were changed outside the gateway. The operator must look: porteira verify names what differs.").With(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return problem.New(problem.Unavailable, "The request took too long. Send the same request again.").With(err)
	case errors.Is(err, ErrCommitUnknown):
		return problem.New(problem.Unavailable, "The database is not available. Send the same request again.").With(err)
	default:
		return err
	}
}

// Lasting reports whether an error is about the row itself: the next run would fail too.
func Lasting(err error) bool {
	for _, passing := range []error{nil, ErrConflict, db.ErrRetry, db.ErrDisk, db.ErrSchema} {
		if errors.Is(err, passing) {
			return false
		}
	}
	return !problem.Is(err, problem.Unavailable) && !problem.Is(err, problem.Overloaded)
}
