package flow_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/wire"
)

// counted counts the answers of a store's server within transactions: one a
// round trip.
func counted(t *testing.T, o *store.Options) *atomic.Int64 {
	var n atomic.Int64
	storetest.Wire(t, o, func(client, server net.Conn) {
		var both sync.WaitGroup
		both.Go(func() {
			defer func() { _ = server.Close() }()
			_, _ = io.Copy(server, client)
		})
		defer both.Wait()
		defer func() { _ = client.Close() }()
		// PostgreSQL manual, 55.7: ReadyForQuery, in a transaction block.
		ready := []byte("Z\x00\x00\x00\x05T")
		buffer, kept := make([]byte, 64<<10), 0 // the end of what came before, which may begin one
		for {
			size, err := server.Read(buffer[kept:])
			if err != nil {
				return
			}
			all := buffer[:kept+size]
			n.Add(int64(bytes.Count(all, ready))) // before the client can go on
			if _, err := client.Write(all[kept:]); err != nil {
				return
			}
			kept = copy(buffer, all[max(0, len(all)-len(ready)+1):])
		}
	})
	return &n
}

// counting is a teller whose database counts the round trips of work.
func counting(t *testing.T) (v *teller, count func(work func()) int64) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	o := storetest.Prepare(t, "postgres", w)
	o.Connections = 1 // on which every statement is prepared once
	trips := counted(t, &o)
	return newTeller(t, storetest.Open(t, o), w, clock), func(work func()) int64 {
		before := trips.Load()
		work()
		return trips.Load() - before
	}
}

// On a server a batch of fifty takes as many round trips as one of five.
func TestBatchTakesAsManyRoundTripsHoweverLarge(t *testing.T) {
	v, count := counting(t)
	ctx, serial := t.Context(), 0
	receive := func(n int) int64 {
		var list []flow.PaidNews
		for range n {
			serial++
			name := fmt.Sprint(serial)
			p, _, err := v.f.CreatePayin(ctx, v.m, &wire.PayinRequest{
				Method: wire.Some("PIX"), Amount: wire.Some(int64(1000)), ReferenceID: wire.Some(name), WebhookURL: wire.Some("https://shop.example/hook"),
			})
			v.must(err)
			v.must(v.f.RecordNotice(ctx, "fake", name, "", []byte("{}")))
			list = append(list, flow.PaidNews{
				ExternalID: p.ExternalID, Notice: store.Notice{Processor: "fake", ID: name},
				Report: processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{{ID: name, EndToEndID: "E", Amount: 1000, PaidAt: v.clock.Now()}}},
			})
		}
		return count(func() { v.must(v.f.ReceiveTogether(ctx, v.m.ID, list)) })
	}
	settle := func(n int) int64 {
		for range n {
			serial++
			_, _, err := v.f.RequestPayout(ctx, v.m, &wire.PayoutRequest{
				Amount: wire.Some(int64(1)), PIXKey: wire.Some("k"), PIXKeyType: wire.Some("EVP"), ReferenceID: wire.Some(fmt.Sprint(serial)), NormalKey: "k",
			})
			v.must(err)
		}
		sends, _, err := v.f.BeginSends(ctx, store.Due{Merchant: v.m.ID, Processor: "fake"}, n)
		v.must(err)
		if len(sends) != n {
			t.Fatalf("%d sends, want %d", len(sends), n)
		}
		return count(func() { v.must(v.f.SettleTogether(ctx, v.m.ID, sends)) })
	}
	deliver := func(n int) int64 {
		list, err := v.f.ClaimDeliveries(ctx, v.m.ID, n)
		v.must(err)
		if len(list) != n {
			t.Fatalf("%d deliveries, want %d", len(list), n)
		}
		return count(func() { v.must(v.f.EndTogether(ctx, v.m.ID, list)) })
	}
	for what, batch := range map[string]func(n int) int64{"payments": receive, "transfers": settle, "deliveries": deliver} {
		if what != "payments" {
			receive(100) // something to pay with, and to tell
		}
		batch(1) // which opens accounts
		batch(5) // and this prepares the last statements
		few, many := batch(5), batch(50)
		if few != many || few < 3 || few > 20 {
			t.Errorf("%s: %d round trips for five, %d for fifty", what, few, many)
		}
	}
}

// The same holds for what goes back untried.
func TestGivingBackTakesAsManyRoundTripsHoweverMuch(t *testing.T) {
	v, count := counting(t)
	ctx, serial := t.Context(), 0
	giveBack := func(n int) int64 {
		list, err := v.f.ClaimDeliveries(ctx, v.m.ID, n)
		v.must(err)
		if len(list) != n {
			t.Fatalf("%d deliveries, want %d", len(list), n)
		}
		for i := range list {
			list[i].NextAt = v.clock.Now()
		}
		return count(func() { v.must(v.f.ReturnDeliveries(ctx, v.m.ID, list)) })
	}
	delay := func(n int) int64 {
		var list []store.Notice
		for range n {
			serial++
			list = append(list, store.Notice{Processor: "fake", ID: fmt.Sprint("late ", serial)})
			v.must(v.f.RecordNotice(ctx, "fake", list[len(list)-1].ID, "", []byte("{}")))
		}
		return count(func() { v.must(v.f.DelayTogether(ctx, list)) })
	}
	for i := range 50 {
		v.must(errors.Join(v.f.Together(ctx, v.birth(fmt.Sprint(i), fine))...))
	}
	for what, batch := range map[string]func(n int) int64{"deliveries": giveBack, "notices": delay} {
		batch(5) // which prepares the statements
		few, many := batch(5), batch(50)
		if few != many || few < 1 || few > 5 {
			t.Errorf("%s: %d round trips for five, %d for fifty", what, few, many)
		}
	}
}
