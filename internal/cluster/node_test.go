package cluster

import (
	"testing"

	"github.com/porteira/porteira/internal/payment"
)

// A heartbeat is compared with the last one of the same process under the same id, even if they are
// recorded in another order: another comparison would make it look lost.
func TestLastHeartbeat(t *testing.T) {
	t.Parallel()
	n := Node{id: payment.ID{2}}
	for _, row := range []struct {
		name string
		op   heartbeat
		want int64
	}{
		{"of the previous id", heartbeat{node: payment.ID{1}, next: 5}, 0},
		{"the first", heartbeat{node: payment.ID{2}, next: 2}, 2},
		{"the third", heartbeat{node: payment.ID{2}, next: 4}, 4},
		{"the second, later", heartbeat{node: payment.ID{2}, next: 3}, 4},
		{"after a restore", heartbeat{node: payment.ID{2}, next: 3, rewound: true}, 3},
	} {
		n.recordHeartbeat(&row.op)
		if got := n.heartbeat(); got.last != row.want || got.node != n.id {
			t.Errorf("%s: the next one follows %d of %s, want %d", row.name, got.last, got.node, row.want)
		}
	}
}
