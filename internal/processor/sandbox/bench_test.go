package sandbox

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
)

type benchRig struct{ adapter *Processor }

// newBenchRig opens a bank in real time, on a journal or (path "") in memory.
func newBenchRig(b *testing.B, path string) benchRig {
	b.Helper()
	w := env.System(env.OutboundOptions{})
	bank, err := OpenBank(BankOptions{Path: path, Secret: testSecret, Clock: w.Clock, IDs: w.IDs})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = bank.Close() })
	adapter, err := NewProcessor(Options{Bank: bank})
	if err != nil {
		b.Fatal(err)
	}
	return benchRig{adapter}
}

func benchTransfer(b *testing.B, r benchRig, n int64) {
	answer := r.adapter.Transfer(b.Context(), processor.TransferRequest{
		ExternalID: fmt.Sprintf("%032d", n), Amount: 6_789, KeyType: "EMAIL", Key: "maria@example.com",
		Name: "Maria da Silva", Document: "52998224725",
	}, func() error { return nil })
	if answer.Outcome != processor.Done {
		b.Errorf("transfer: %+v", answer)
	}
}

func BenchmarkTransferInMemory(b *testing.B) {
	r := newBenchRig(b, "")
	b.ReportAllocs()
	var n int64
	for b.Loop() {
		n++
		benchTransfer(b, r, n)
	}
}

// BenchmarkTransferOnDisk has 64 callers at once, who share the fsyncs.
func BenchmarkTransferOnDisk(b *testing.B) {
	r := newBenchRig(b, filepath.Join(b.TempDir(), "bank.journal"))
	b.ReportAllocs()
	b.SetParallelism(32)
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			benchTransfer(b, r, n.Add(1))
		}
	})
}
