package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// SharedMax is the number of events that [Loaded.Shared] returns at most.
const SharedMax = 1000

type sharedNeed struct {
	Ref

	url string
}

// Shared locks all endpoints of a merchant, and reads the events of [Loaded.Shared] for one of
// them, which will get a URL.
func (n *Needs) Shared(merchant, endpoint payment.ID, url string) {
	n.Endpoints(merchant)
	n.endpoints.shared = append(n.endpoints.shared, sharedNeed{Ref{merchant, endpoint}, url})
}

func (l *Loaded) loadShared(ctx context.Context, tx *db.Tx, n *Needs) error {
	for _, v := range n.endpoints.shared {
		e, ok := l.Endpoint(v.Merchant, v.ID)
		if !ok {
			continue
		}
		rows, err := tx.Query(ctx, "SELECT "+eventHead+` FROM webhook_endpoints w
			JOIN deliveries d ON d.merchant_id = w.merchant_id AND d.endpoint_id = w.id
			JOIN events e ON e.merchant_id = d.merchant_id AND e.number = d.event_number
			WHERE w.merchant_id = $1 AND w.id <> $2 AND w.url = $3 AND w.enabled = 1 AND length(d.endpoint_id) > 0 AND d.state <> 'delivered'
				AND (d.state = 'pending' OR d.state = 'exhausted' AND w.failing_since > 0 AND d.updated_at >= w.failing_since)
				AND d.event_number <= $4 AND e.created_at >= $5 AND NOT EXISTS (SELECT 1 FROM deliveries o
					WHERE o.merchant_id = d.merchant_id AND o.event_number = d.event_number AND (o.endpoint_id = $2 OR o.url = $6))
			ORDER BY e.number LIMIT $7`, e.Merchant[:], e.ID[:], e.URL, e.Position, micros(e.CreatedAt), v.url, SharedMax)
		list, err := db.Collect(rows, err, scanEventHead)
		if err != nil {
			return fmt.Errorf("shared events: %w", err)
		}
		l.endpoints.shared[v.Ref] = slices.CompactFunc(list, func(a, b payment.Event) bool { return a.Number == b.Number })
	}
	return nil
}

// Shared are the first events up to an endpoint's position that other enabled endpoints with its
// URL have not accepted. Only events since its creation count, and only those of which neither the
// endpoint nor its next URL has a delivery.
func (l *Loaded) Shared(e *Endpoint) []payment.Event { return l.endpoints.shared[e.Ref()] }
