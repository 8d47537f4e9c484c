package main

import (
	"slices"
	"testing"
)

// Every package of the product is tested once, but for a further run of some of its tests.
func TestRemaining(t *testing.T) {
	t.Chdir("..")
	flags, further := split([]string{"-p", "3", "--", "-race", "./internal/worker", "./internal/commit", "--", "-race", "-run", "^TestKill", "./internal/app"})
	if !slices.Equal(flags, []string{"-p", "3"}) || len(further) != 2 || further[1][0] != "-race" {
		t.Fatalf("%q, and then %q", flags, further)
	}
	packages, err := remaining(t.Context(), further)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"internal/worker": false, "internal/commit": false, "internal/app": true, "internal/money": true} {
		if slices.Contains(packages, prefix+name) != want {
			t.Errorf("the first run tests %s: %v, want %v", name, !want, want)
		}
	}
}
