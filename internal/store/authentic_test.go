package store

import (
	"bytes"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// A row's keyed hash covers its stored values: it must not change with the way in which a column
// appends them.
func TestHashCoversStoredValues(t *testing.T) {
	p := &payoutRow{Payout: payment.Payout{
		Merchant: payment.ID{1}, ID: payment.ID{2}, ExternalID: "x", Amount: 1234, Fee: 5, Processor: "bank", PIXKeyType: "EMAIL",
		Approval: payment.ApprovalRequired, CreatedAt: time.UnixMicro(1_234_567_890),
	}}
	for i := range payoutTable.columns {
		direct, plain := payoutTable.columns[i], payoutTable.columns[i]
		plain.hashed = nil
		if got, want := direct.appendTo(nil, p), plain.appendTo(nil, p); !bytes.Equal(got, want) {
			t.Errorf("%s: %x is hashed, %x is stored", direct.Name, got, want)
		}
	}
}
