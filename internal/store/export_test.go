package store

import "github.com/porteira/porteira/internal/db"

// Micros is for tests.
var Micros = micros

// DB is the database of a store.
func (s *Store) DB() *db.DB { return s.db }
