package main

import (
	"os"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/store/storetest"
)

// TestMain lets the test program be a receiver, as the command is one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == receiverRole {
		os.Exit(receive(os.Args[2:]))
	}
	os.Exit(storetest.Main(m))
}

// testKills is how often each engine is tried in every run of the tests; make
// torture does the rest.
const testKills = 10

// The real program, its bank, its receivers and its database die under load,
// and the four books agree.
func TestTorture(t *testing.T) {
	storetest.Postgres(t) // where there is none, it says what to do about it
	built, remove, err := build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			var told strings.Builder
			s := settings{engine: engine, kills: testKills, binaries: built, out: &told}
			if err := s.complete(); err != nil {
				t.Fatal(err)
			}
			f, err := tortured(t.Context(), s)
			if err != nil {
				t.Fatalf("%v\n%s", err, told.String())
			}
			t.Log("\n" + told.String())
			if n := f.total("kills"); n < testKills {
				t.Errorf("%d kills", n)
			}
		})
	}
}
