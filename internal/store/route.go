package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// routeRow is a route of a merchant.
type routeRow struct {
	payment.Route

	merchant payment.ID
	position int // from 1, of the routes with the same operation and method
}

var routeTable = newTable("routes", []string{"merchant_id", "operation", "method", "position"},
	idColumn("merchant_id", func(r *routeRow) *payment.ID { return &r.merchant }),
	textColumn("operation", func(r *routeRow) *payment.Operation { return &r.Operation }),
	textColumn("method", func(r *routeRow) *payment.Method { return &r.Method }),
	intColumn("position", func(r *routeRow) *int { return &r.position }),
	textColumn("account", func(r *routeRow) *string { return &r.Account }),
	intColumn("minimum", func(r *routeRow) *cents { return &r.Minimum }),
	intColumn("maximum", func(r *routeRow) *cents { return &r.Maximum }),
	intColumn("share", func(r *routeRow) *int { return &r.Share }),
)

var routeHash = routeTable.hashOf("merchant_id", "operation", "method", "position", "account", "minimum", "maximum", "share")

var routesOfMerchant = "SELECT " + routeTable.selected + ` FROM routes t
	WHERE t.merchant_id = $1 ORDER BY t.operation, t.method, t.position`

func scanRoute(r db.Scanner) (routeRow, error) {
	var v routeRow
	return v, routeTable.scan(r, &v)
}

// SetRoutes replaces the routes of a merchant for an operation and a method by these
// accounts, in order. None removes them.
func (tx *AdminTx) SetRoutes(ctx context.Context, merchant payment.ID, operation payment.Operation, method payment.Method, list []payment.Route) error {
	m, err := tx.soundMerchant(ctx, merchant)
	if err != nil { // locked: else two concurrent changes would refuse each other
		return err
	}
	before := slices.DeleteFunc(slices.Clone(m.Routes), func(r payment.Route) bool { return r.Operation != operation || r.Method != method })
	tx.record(NounRoute, "set", merchant, RouteSubject(operation, method), routeFields(before), routeFields(list))
	if _, err := tx.Exec(ctx, "DELETE FROM routes WHERE merchant_id = $1 AND operation = $2 AND method = $3",
		merchant[:], string(operation), string(method)); err != nil {
		return err
	}
	for i := range list {
		list[i].Operation, list[i].Method = operation, method
	}
	if err := tx.addRoutes(ctx, merchant, list); err != nil {
		return err
	}
	return tx.signMerchant(ctx, merchant)
}

// RouteSubject names the routes of an operation and a method in the audit; "" is every method.
func RouteSubject(operation payment.Operation, method payment.Method) string {
	return string(operation) + " " + string(cmp.Or(method, "*"))
}

// addRoutes adds the first routes of a merchant for their operations and methods.
func (tx *Tx) addRoutes(ctx context.Context, merchant payment.ID, list []payment.Route) error {
	type key struct {
		operation payment.Operation
		method    payment.Method
	}
	last := map[key]int{}
	rows := make([][]any, len(list))
	for i, r := range list {
		k := key{r.Operation, r.Method}
		last[k]++
		rows[i] = routeTable.row(&routeRow{Route: r, merchant: merchant, position: last[k]})
	}
	return tx.InsertNew(ctx, routeTable.insert, rows...)
}

// readRoutes reads routes, each merchant's by operation, method and position.
func readRoutes(ctx context.Context, q querier, text string, args ...any) (map[payment.ID][]routeRow, error) {
	rows, err := q.Query(ctx, text, args...)
	list, err := db.Collect(rows, err, scanRoute)
	of := map[payment.ID][]routeRow{}
	for i := range list {
		of[list[i].merchant] = append(of[list[i].merchant], list[i])
	}
	return of, err
}
