package processor

import (
	"context"
	"time"
)

// Ref is what is known of a charge or a transfer at its processor.
type Ref struct {
	ExternalID  string    // ours
	ProcessorID string    // "" if it is not known
	Since       time.Time // UTC; it was not requested earlier; zero if that is not known
	// Unsent: as far as is known no request of it has left. It is looked up in case of a past that
	// a restored database lacks.
	Unsent bool
}

// ChargeFinder is a [Charger] that looks up a charge better with more than our id.
type ChargeFinder interface {
	FindCharge(ctx context.Context, r Ref) ChargeReport
}

// TransferFinder is a [Transferrer] that looks up a transfer better with more than our id.
type TransferFinder interface {
	FindTransfer(ctx context.Context, r Ref) TransferReport
}

// FindCharge looks up a charge with all that is known of it.
func FindCharge(ctx context.Context, c Charger, r Ref) ChargeReport {
	if finder, ok := c.(ChargeFinder); ok {
		return finder.FindCharge(ctx, r)
	}
	return c.QueryCharge(ctx, r.ExternalID)
}

// FindTransfer looks up a transfer with all that is known of it.
func FindTransfer(ctx context.Context, t Transferrer, r Ref) TransferReport {
	if finder, ok := t.(TransferFinder); ok {
		return finder.FindTransfer(ctx, r)
	}
	return t.QueryTransfer(ctx, r.ExternalID)
}
