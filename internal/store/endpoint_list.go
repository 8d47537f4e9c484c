package store

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// EndpointOf reads an endpoint; else ErrNotFound.
func (s *Store) EndpointOf(ctx context.Context, merchant, id payment.ID) (Endpoint, error) {
	e, err := scanEndpoint(s.Keys())(s.db.QueryRow(ctx, "SELECT "+endpointTable.selected+" FROM webhook_endpoints t WHERE t.merchant_id = $1 AND t.id = $2", merchant[:], id[:]))
	return e, s.db.ReadError("endpoint", err)
}

// EndpointsOf lists the endpoints of a merchant, newest first.
func (s *Store) EndpointsOf(ctx context.Context, merchant payment.ID) ([]Endpoint, error) {
	rows, err := s.db.Query(ctx, "SELECT "+endpointTable.selected+" FROM webhook_endpoints t WHERE t.merchant_id = $1 ORDER BY t.id DESC", merchant[:])
	list, err := db.Collect(rows, err, scanEndpoint(s.Keys()))
	return list, s.db.ReadError("endpoints", err)
}

// EndpointVersions reads the version of each endpoint, by its merchant and its id.
func (s *Store) EndpointVersions(ctx context.Context) (map[payment.ID]map[payment.ID]int64, error) {
	type row struct {
		Ref

		version int64
	}
	rows, err := s.db.Query(ctx, "SELECT merchant_id, id, version FROM webhook_endpoints")
	list, err := db.Collect(rows, err, func(r db.Scanner) (v row, err error) {
		return v, r.Scan((*idDest)(&v.Merchant), (*idDest)(&v.ID), &v.version)
	})
	versions := map[payment.ID]map[payment.ID]int64{}
	for _, v := range list {
		if versions[v.Merchant] == nil {
			versions[v.Merchant] = map[payment.ID]int64{}
		}
		versions[v.Merchant][v.ID] = v.version
	}
	return versions, s.db.ReadError("endpoints", err)
}

// AllEndpoints lists the endpoints of all merchants.
func (s *Store) AllEndpoints(ctx context.Context) ([]Endpoint, error) {
	rows, err := s.db.Query(ctx, "SELECT "+endpointTable.selected+" FROM webhook_endpoints t ORDER BY t.merchant_id, t.id")
	list, err := db.Collect(rows, err, scanEndpoint(s.Keys()))
	return list, s.db.ReadError("endpoints", err)
}

// EndpointsVersion changes whenever an endpoint was added, removed, or changed by its merchant:
// nodes poll it.
type EndpointsVersion struct{ Count, Versions, Newest int64 }

// EndpointsVersion reads the version of all endpoints.
func (s *Store) EndpointsVersion(ctx context.Context) (v EndpointsVersion, err error) {
	err = s.db.QueryRow(ctx, "SELECT count(*), coalesce(SUM(version), 0), coalesce(MAX(created_at), 0) FROM webhook_endpoints").
		Scan(&v.Count, &v.Versions, &v.Newest)
	return v, s.db.ReadError("endpoints", err)
}

// EndpointsBehind lists the enabled endpoints whose merchants have later events than were
// dispatched to them.
func (s *Store) EndpointsBehind(ctx context.Context) ([]Ref, error) {
	rows, err := s.db.Query(ctx, `SELECT t.merchant_id, t.id FROM webhook_endpoints t
		WHERE t.enabled = 1 AND t.position < (SELECT c.last_number FROM event_counters c WHERE c.merchant_id = t.merchant_id)
		ORDER BY t.merchant_id, t.id`)
	list, err := db.Collect(rows, err, scanRef)
	return list, s.db.ReadError("endpoints", err)
}

// EndpointsFailing lists the enabled endpoints that are down and whose failed hours were last
// counted at a time or before.
func (s *Store) EndpointsFailing(ctx context.Context, counted time.Time) ([]Endpoint, error) {
	rows, err := s.db.Query(ctx, "SELECT "+endpointTable.selected+` FROM webhook_endpoints t
		WHERE t.enabled = 1 AND t.failures >= $1 AND t.counted_at <= $2 ORDER BY t.merchant_id, t.id`, downAfter, micros(counted))
	list, err := db.Collect(rows, err, scanEndpoint(s.Keys()))
	return list, s.db.ReadError("endpoints", err)
}
