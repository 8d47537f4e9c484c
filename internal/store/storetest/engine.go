// Package storetest gives tests a database with the schema in place, and is the
// conformance suite that every database engine passes.
package storetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
)

// Engines names every database engine.
var Engines = []string{"sqlite", "postgres"}

// Each runs a test on every engine, with the options of a database of its own
// whose schema is in place.
func Each(t *testing.T, w env.Env, run func(t *testing.T, o db.Options)) {
	t.Helper()
	for _, engine := range Engines {
		t.Run(engine, func(t *testing.T) { run(t, Prepare(t, engine, w)) })
	}
}

// Prepare makes a database of an engine, with the schema in place.
func Prepare(t testing.TB, engine string, w env.Env) db.Options {
	t.Helper()
	o := options(t, w)
	if engine == "postgres" {
		o.Database = dbtest.PostgresFrom(t, "porteira", func(url string) error {
			prepared := o
			prepared.Database = url
			_, err := store.Migrate(context.Background(), prepared)
			return err
		})
		return o
	}
	o.Database = filepath.Join(t.TempDir(), "porteira.db")
	template, err := sqliteTemplate(o)
	if err == nil {
		err = os.WriteFile(o.Database, template, 0o600)
	}
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	return o
}

// template is an SQLite file with the schema in place, made once in a process as
// the migrations take longer than most tests.
var template struct {
	once sync.Once
	file []byte
	err  error
}

func sqliteTemplate(o db.Options) ([]byte, error) {
	template.once.Do(func() {
		var folder string
		if folder, template.err = os.MkdirTemp("", "template"); template.err != nil {
			return
		}
		o.Database = filepath.Join(folder, "porteira.db")
		if _, template.err = store.Migrate(context.Background(), o); template.err == nil {
			template.file, template.err = os.ReadFile(o.Database)
		}
		template.err = errors.Join(template.err, os.RemoveAll(folder))
	})
	return template.file, template.err
}

// Empty makes a database of an engine without a schema.
func Empty(t testing.TB, engine string, w env.Env) db.Options {
	t.Helper()
	o := options(t, w)
	if engine == "postgres" {
		o.Database = dbtest.Postgres(t)
	} else {
		o.Database = filepath.Join(t.TempDir(), "porteira.db")
	}
	return o
}

// Open opens a prepared database and closes it when the test ends.
func Open(t testing.TB, o db.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, fs.ErrClosed) { // a test may have closed it
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func options(t testing.TB, w env.Env) db.Options {
	t.Helper()
	keys, err := db.NewKeyring(make([]byte, db.MasterKeyLength), w.Random)
	if err != nil {
		t.Fatal(err)
	}
	return db.Options{Keys: keys, Env: w}
}

// Operator is the author of the administrative changes of tests.
var Operator = actor.Author{Actor: "operator:ana", Reason: "a test"}
