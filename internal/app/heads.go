package app

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// ledgerHeads brings the last entries of the ledgers out of the database once a minute: into the log,
// if they moved, and into metrics.
type ledgerHeads struct {
	store *store.Store
	log   *slog.Logger

	mu      sync.Mutex
	logged  map[payment.ID]int64 // the number of the last entry
	entries int64
	digest  [sha256.Size]byte // of all heads
	read    bool
}

// step is the step of the worker. One run is always enough, so it returns 0.
func (h *ledgerHeads) step(ctx context.Context) (int, error) {
	list, err := h.store.Heads(ctx)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.logged == nil {
		h.logged = make(map[payment.ID]int64, len(list))
	}
	h.entries, h.read = 0, true
	all := sha256.New()
	for i := range list {
		v := &list[i]
		h.entries += v.Number
		_, _ = all.Write(append([]byte(v.String()), '\n'))
		if h.logged[v.Merchant] != v.Number {
			h.logged[v.Merchant] = v.Number
			h.log.InfoContext(ctx, "last entry of a ledger", "head", v.String())
		}
	}
	all.Sum(h.digest[:0])
	return 0, nil
}

var (
	entriesDesc = prometheus.NewDesc("porteira_ledger_entries", "Entries of all ledgers, a minute ago at most. It never decreases, unless a backup was restored or entries were removed.", nil, nil)
	digestDesc  = prometheus.NewDesc("porteira_ledger_digest", "The first 48 bits of the SHA-256 of the last entries of all ledgers, as they are logged, one a line, by merchant's id.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (h *ledgerHeads) Describe(to chan<- *prometheus.Desc) { to <- entriesDesc; to <- digestDesc }

// Collect implements [prometheus.Collector].
func (h *ledgerHeads) Collect(to chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.read {
		return
	}
	to <- prometheus.MustNewConstMetric(entriesDesc, prometheus.GaugeValue, float64(h.entries))
	to <- prometheus.MustNewConstMetric(digestDesc, prometheus.GaugeValue, float64(binary.BigEndian.Uint64(h.digest[:])>>16))
}
