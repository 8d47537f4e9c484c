package store

import "github.com/porteira/porteira/internal/db"

// Micros is for tests.
var Micros = micros

// DB is the database of a store.
func (s *Store) DB() *db.DB { return s.db }

// SetScanMost sets how many orders a page examines, until the returned function is called.
func SetScanMost(n int) (reset func()) {
	was := scanMost
	scanMost = n
	return func() { scanMost = was }
}
