package cluster

import (
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// NewHeartbeat builds the heartbeat of a node that has seen an epoch. after is the
// resulting installation; rewound means that the database was a restored backup.
func NewHeartbeat(node payment.ID, seen int64) (op write.Operation, result func() (after store.Installation, rewound bool)) {
	h := &heartbeat{node: node, seen: seen}
	return h, func() (store.Installation, bool) { return h.after, h.rewound }
}
