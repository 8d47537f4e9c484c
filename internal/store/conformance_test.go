package store_test

import (
	"testing"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t testing.TB, w env.Env) db.Options { return storetest.Prepare(t, engine, w) })
		})
	}
}
