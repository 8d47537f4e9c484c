package actor_test

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/problem"
)

func TestMayBeSame(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		a, b actor.Actor
		same bool
	}{
		{"operator:Alice", "operator:Alice", true},
		{"operator:Alice", "operator:alice", true},
		{"operator:Alice", "operator:\u0410lice", true},                // Cyrillic A
		{"operator:Alice", "operator:\u0430lice", true},                // Cyrillic a
		{"operator:Alice", "operator:\u0391lice", true},                // Greek Alpha
		{"operator:Alice", "operator:A\u0406ice", true},                // Cyrillic I, like a small l
		{"operator:Alice", "operator:AIice", true},                     // Latin I, like a small l
		{"operator:Alice", "operator:A1ice", true},                     // the digit
		{"operator:Alice", "operator:\uff21lice", true},                // full width
		{"operator:MARIA", "operator:\u041c\u0410R\u0406\u0410", true}, // capitals of two alphabets
		{"operator:Bia", "operator:\u0412IA", true},                    // a Cyrillic capital
		{"operator:maria", "operator:rnaria", true},                    // rn, like m
		{"operator:José", "operator:Jose\u0301", true},
		{"operator:José", "operator:jose", true},
		{"operator:Ana Maria", "operator:ana.maria", true},
		{"operator:Ana Maria", "operator:Ana\u00a0 Maria", true},
		{"operator:Straße", "operator:STRASSE", true},
		{"operator:ana", "os:Ana", true},
		{"operator:ptr_key_a1", "credential:ptr_key_a1", true},
		{"credential:Key", "credential:key", false},
		{"credential:key", "credential:key", true},
		{"operator:ana", "operator:bia", false},
		{"operator:Ana Souza", "operator:Ana Silva", false},
		{"os:root", "operator:ana", false},
		{actor.System, "operator:system", true},
	} {
		if actor.MayBeSame(row.a, row.b) != row.same || actor.MayBeSame(row.b, row.a) != row.same {
			t.Errorf("%q and %q: %v", row.a, row.b, !row.same)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, want string }{
		{"Ana Souza", "operator:Ana Souza"},
		{" \uff21na\u00a0  Souza ", "operator:Ana Souza"},
		{"Jose\u0301", "operator:José"},
		{"李", "operator:李"},
		{"", ""},
		{"  ", ""},
		{"--", ""},
		{"os:ana", ""},
		{"System", ""},
		{"an\u200ba", ""}, // zero width
		{"ana\u202e", ""}, // right to left
		{"\u2066ana", ""}, // isolate
		{"a\nb", ""},
		{"a\x00b", ""},
		{"a\u115fb", ""}, // filler
		{"\xff", ""},
		{strings.Repeat("a", 101), ""},
	} {
		got, err := actor.Operator(row.name)
		if string(got) != row.want || problem.Is(err, problem.ValidationFailed) != (row.want == "") {
			t.Errorf("%q is %q, %v", row.name, got, err)
		}
	}
}
