package payment

import (
	"time"

	"github.com/porteira/porteira/internal/money"
)

// BatchStatus is the public status of a batch of payouts.
type BatchStatus string

// The statuses of a batch.
const (
	BatchPending    BatchStatus = "PENDING"    // every payout is PENDING
	BatchProcessing BatchStatus = "PROCESSING" // some payout is not PENDING any more
	BatchCompleted  BatchStatus = "COMPLETED"  // every payout is final, and the event is written
)

// BatchStatuses lists every status of a batch.
var BatchStatuses = []BatchStatus{BatchPending, BatchProcessing, BatchCompleted}

// EventPayoutBatchCompleted announces that the last payout of a batch is final.
const EventPayoutBatchCompleted EventType = "payout_batch.completed"

// PayoutBatch is a group of payouts that were accepted together. Times as in Payin.
type PayoutBatch struct {
	Merchant    ID
	ID          ID
	ExternalID  string // derived from the reference; no processor sees it
	ReferenceID string
	Count       int64
	Amount      money.Cents // the sum of the payouts' amounts, without fees
	// First and Last are the least and the greatest id of its payouts.
	First, Last ID

	Version     int64
	CompletedAt time.Time
	CreatedAt   time.Time
	// UpdatedAt is the last change of the batch or of one of its payouts.
	UpdatedAt time.Time

	// Counts are the payouts by status, as they were read with the batch.
	Counts map[PayoutStatus]int64
}

// Status follows from the counts, and from whether the batch was completed.
func (b *PayoutBatch) Status() BatchStatus {
	switch {
	case !b.CompletedAt.IsZero():
		return BatchCompleted
	case b.Counts[PayoutPending] == b.Count:
		return BatchPending
	default:
		return BatchProcessing
	}
}

// Touch raises UpdatedAt to the time of a change. It never lowers it: another process's clock may be
// ahead.
func (b *PayoutBatch) Touch(at time.Time) {
	if at.After(b.UpdatedAt) {
		b.UpdatedAt = at
	}
}

// InFlight is the number of its payouts that are not final.
func (b *PayoutBatch) InFlight() int64 {
	return b.Counts[PayoutPending] + b.Counts[PayoutProcessing]
}
