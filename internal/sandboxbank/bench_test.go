package sandboxbank

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
)

// benchDriver opens a bank in real time, with a journal or (path "") in memory,
// and returns its driver.
func benchDriver(b *testing.B, path string) *sandbox.Processor {
	b.Helper()
	w := env.System(env.OutboundOptions{})
	bank, err := Open(Options{Path: path, Secret: testSecret, Clock: w.Clock, IDs: w.IDs})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = bank.Close() })
	driver, err := sandbox.NewProcessor(sandbox.Options{URL: InProcessURL, Secret: testSecret, Transport: bank.Transport()})
	if err != nil {
		b.Fatal(err)
	}
	return driver
}

func benchTransfer(b *testing.B, driver *sandbox.Processor, n int64) {
	answer := driver.Transfer(b.Context(), processor.TransferRequest{
		ExternalID: fmt.Sprintf("%032d", n), Amount: 6_789, KeyType: "EMAIL", Key: "maria@example.com",
		Name: "Maria da Silva", Document: "52998224725",
	}, willing)
	if answer.Outcome != processor.Done {
		b.Errorf("transfer: %+v", answer)
	}
}

func BenchmarkTransferInMemory(b *testing.B) {
	driver := benchDriver(b, "")
	b.ReportAllocs()
	var n int64
	for b.Loop() {
		n++
		benchTransfer(b, driver, n)
	}
}

// BenchmarkTransferOnDisk has 64 callers at once, who share the fsyncs.
func BenchmarkTransferOnDisk(b *testing.B) {
	driver := benchDriver(b, filepath.Join(b.TempDir(), "bank.journal"))
	b.ReportAllocs()
	b.SetParallelism(32)
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			benchTransfer(b, driver, n.Add(1))
		}
	})
}
