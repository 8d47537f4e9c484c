package payment_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/payment"
)

var eventTypes = func() (types []payment.EventType) {
	for _, cell := range payment.PayinTable {
		types = append(types, cell.Event)
	}
	for _, cell := range payment.PayoutTable {
		types = append(types, cell.Event)
	}
	for _, cell := range payment.RefundTable {
		types = append(types, cell.Event)
	}
	return append(types, payment.EventPayinCreated, payment.EventPayoutCreated)
}()

func TestEventEnvelope(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 3, 1, 0, 30, 5, 7_999_000, time.FixedZone("", 3600))
	e := payment.Event{
		Merchant: payment.ID{1}, Number: 7, ID: payment.ID{0: 0x01, 6: 0x70, 8: 0x80, 15: 0x02},
		Type: payment.EventPayinPaid, Version: 3, CreatedAt: created,
	}
	const want = `{"id":"evt_01000000000070008000000000000002","type":"payin.paid",` +
		`"createdAt":"2026-02-28T23:30:05.007Z","version":3,"data":{"id":"x"}}`
	if got, err := e.Envelope([]byte(`{"id":"x"}`)); err != nil || string(got) != want {
		t.Errorf("envelope is %s, %v; want %s", got, err, want)
	}
	for _, data := range []string{`{"id":`, "", "{", "}", "[]", "null", `{} `} {
		if _, err := e.Envelope([]byte(data)); !errors.Is(err, payment.ErrEventData) {
			t.Errorf("data %q: error is %v", data, err)
		}
	}
}

// The hand-written encoder agrees with the standard library's.
func TestEventEnvelopeIsJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := payment.Event{
			ID: payment.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")), Type: rapid.SampledFrom(eventTypes).Draw(t, "type"),
			Version: rapid.Int64().Draw(t, "version"), CreatedAt: time.UnixMilli(rapid.Int64Range(0, 253402300799999).Draw(t, "created")),
		}
		data, err := json.Marshal(map[string]string{"a": rapid.String().Draw(t, "text")})
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(struct {
			ID        string            `json:"id"`
			Type      payment.EventType `json:"type"`
			CreatedAt string            `json:"createdAt"`
			Version   int64             `json:"version"`
			Data      json.RawMessage   `json:"data"`
		}{payment.PublicEventID(e.ID), e.Type, e.CreatedAt.UTC().Format(payment.TimeLayout), e.Version, data})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.Envelope(data); err != nil || string(got) != string(want) {
			t.Fatalf("envelope is %s, %v; want %s", got, err, want)
		}
	})
}
