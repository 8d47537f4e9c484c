package coretest

import (
	"database/sql"
	"errors"
)

// Execute runs SQL statements on the database, bypassing the gateway.
func (g *Gateway) Execute(statements ...string) {
	g.T.Helper()
	d := g.connect()
	for _, text := range statements {
		_, err := d.ExecContext(g.T.Context(), text)
		g.Must(err)
	}
}

// Damage overwrites a sealed column of the rows that match a condition, as a flipped bit
// or a lost key would make it unreadable.
func (g *Gateway) Damage(table, column, where string) {
	g.T.Helper()
	value := "x'00'"
	if g.Engine == "postgres" {
		value = "'\\x00'::bytea"
	}
	g.Execute("UPDATE " + table + " SET " + column + " = " + value + " WHERE " + where)
}

// Query reads the rows of a query, bypassing the gateway.
func (g *Gateway) Query(text string, scan func(rows *sql.Rows) error) {
	g.T.Helper()
	rows, err := g.connect().QueryContext(g.T.Context(), text)
	g.Must(err)
	for rows.Next() {
		g.Must(scan(rows))
	}
	g.Must(errors.Join(rows.Err(), rows.Close()))
}

// Count counts the rows of a table that match a condition.
func (g *Gateway) Count(table, where string) (n int) {
	g.T.Helper()
	g.Must(g.connect().QueryRowContext(g.T.Context(), "SELECT count(*) FROM "+table+" WHERE "+where).Scan(&n))
	return n
}
