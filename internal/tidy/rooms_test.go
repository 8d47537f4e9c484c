package tidy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// kind is what a room may touch.
type kind int

const (
	plain kind = iota
	// pure rooms compute: values in, values out. They know no database, network,
	// file, log or context, and no library but the standard one.
	pure
	// testOnly rooms serve tests only. They may import every room, and no other
	// room may import them.
	testOnly
)

// room is a folder with everything below it that has no row of its own, and
// the other rooms that it may import.
type room struct {
	name    string // folder, without internal/; * is any one folder
	kind    kind
	imports string
}

const (
	libraries = " brcode boleto taxid pixkey"
	decisions = " money ledger payment"
	basics    = " problem env"
)

// rooms is the architecture: each room imports at most the rooms named in its
// row, all of which stand above it, so imports point one way.
var rooms = []room{
	// Public libraries, of use to anyone.
	{"brcode", pure, ""},
	{"boleto", pure, ""},
	{"taxid", pure, ""},
	{"pixkey", pure, "taxid"},

	// Rules: what may happen to money, and how it is booked.
	{"money", pure, ""},
	{"ledger", pure, "money"},
	{"payment", pure, "money ledger"},

	// Basics, for every room that is not pure.
	{"problem", plain, ""},
	{"env", plain, ""},

	// Side rooms: each does one thing and knows nothing of payments.
	{"config", plain, basics},
	{"loop", plain, basics},
	{"webhook", plain, basics},
	{"checkout/codes", pure, ""},
	{"checkout/bill", plain, "checkout/codes money boleto"},

	// The sandbox's bank, a program of its own: a gateway shares its protocol only.
	{"sandboxbank/bankapi", plain, "money brcode boleto"},
	{"sandboxbank", plain, "sandboxbank/bankapi money env"},
	// The API's JSON, for use cases and faces. The store does not use it.
	{"wire", plain, "problem" + decisions + libraries},

	// Durable state, the outside parties, and the use cases that join them.
	{"store", plain, decisions + basics},
	{"processor", plain, decisions + basics + libraries},
	{"processor/sandbox", plain, "sandboxbank/bankapi processor payment money" + basics + libraries},
	{"processor/*", plain, "processor payment money" + basics + libraries},
	{"flow", plain, "store processor wire" + decisions + basics + libraries},

	// Doors: whoever comes in, or whatever falls due, ends in a flow.
	{"api", plain, ""},
	{"httpapi", plain, "api flow store processor wire webhook loop" + decisions + basics + libraries},
	{"checkout", plain, "checkout/codes checkout/bill flow store processor webhook loop" + decisions + basics + libraries},
	{"dashboard", plain, "flow store processor webhook loop" + decisions + basics + libraries},
	{"inbound", plain, "flow store processor webhook loop" + decisions + basics + libraries},
	{"jobs", plain, "flow store processor webhook loop" + decisions + basics + libraries},

	// The sandbox's routes: they command its bank, and wait for the gateway.
	{"sandboxcontrol", plain, "httpapi checkout sandboxbank/bankapi flow store processor wire" + decisions + basics},

	// Assembly and commands. Only app imports concrete processors.
	{"client", plain, ""},
	{"app", plain, "api httpapi checkout dashboard inbound jobs flow sandboxcontrol sandboxbank processor/sandbox processor/*" +
		" processor store wire webhook loop config" +
		decisions + basics + libraries},
	{"bench", plain, "app config flow store processor wire" + decisions + basics + libraries},
	{"cli", plain, "app bench client config flow store" + decisions + basics + libraries},
	{"cmd/porteira", plain, "cli"},

	// For tests only.
	{"store/storetest", testOnly, ""},
	{"processor/processortest", testOnly, ""},
	{"httpapi/apitest", testOnly, ""},
	{"app/apptest", testOnly, ""},
	{"checkout/checkouttest", testOnly, ""},
	{"simulate", testOnly, ""},
	{"tidy", testOnly, ""},
	{"tools", testOnly, ""},
	{"test/crashtest", testOnly, ""},
}

// computing are libraries that a pure room may use: values in, values out.
var computing = []string{"rsc.io/qr/coding"}

// impure are the standard packages that a pure room does without.
var impure = []string{"context", "database/sql", "log", "log/slog", "net", "net/http", "os", "os/exec", "syscall"}

// checkImports holds each import against the table. Tests may import what they
// like, except those of pure rooms, which stay among pure rooms.
func checkImports(repository *tree) []finding {
	var found []finding
	for _, file := range repository.sources {
		folder, row, ok := roomOf(file.folder)
		if !ok {
			found = append(found, finding{file.folder, file.path, "this folder has no row in the table of rooms"})
			continue
		}
		for _, spec := range file.Imports {
			imported := importPath(spec)
			if problem := objection(file, folder, row, imported); problem != "" {
				found = append(found, finding{file.folder + " -> " + imported, repository.at(spec.Pos()), problem})
			}
		}
	}
	return found
}

// objection says what is wrong with an import, or nothing.
func objection(file *source, folder string, row room, imported string) string {
	if target, ours := strings.CutPrefix(imported, module+"/"); ours {
		other, otherRow, _ := roomOf(target)
		switch {
		case other == folder, row.kind == testOnly, file.test && row.kind != pure:
			return ""
		case !slices.Contains(strings.Fields(row.imports), otherRow.name):
			return fmt.Sprintf("%s may not import %s", row.name, other)
		}
		return ""
	}
	if row.kind != pure || file.test || slices.Contains(computing, imported) {
		return ""
	}
	firstElement, _, _ := strings.Cut(imported, "/")
	if slices.Contains(impure, imported) || strings.Contains(firstElement, ".") {
		return fmt.Sprintf("%s is pure and may not import %s", row.name, imported)
	}
	return ""
}

// roomOf finds the room of a folder: its own row, else that of the nearest folder above.
func roomOf(folder string) (string, room, bool) {
	for name := strings.TrimPrefix(folder, "internal/"); name != "."; name = path.Dir(name) {
		for _, pattern := range []string{name, path.Join(path.Dir(name), "*")} {
			if i := slices.IndexFunc(rooms, func(r room) bool { return r.name == pattern }); i >= 0 {
				return name, rooms[i], true
			}
		}
	}
	return "", room{}, false
}

// The direction of imports is the order of the table, so there is no cycle in it.
func TestRoomsImportOnlyRoomsAbove(t *testing.T) {
	t.Parallel()
	above := map[string]kind{}
	for _, room := range rooms {
		for _, name := range strings.Fields(room.imports) {
			other, ok := above[name]
			if !ok || other == testOnly {
				t.Errorf("%s imports %s, which does not stand above it or serves tests only", room.name, name)
			}
			if room.kind == pure && other != pure {
				t.Errorf("%s is pure and imports %s, which is not", room.name, name)
			}
		}
		above[room.name] = room.kind
	}
}

var importMutants = []mutant{
	{"against the direction",
		map[string]string{"internal/store/a.go": `package store; import _ "` + module + `/internal/flow"`},
		[]string{"internal/store -> " + module + "/internal/flow"}},
	{"from below the room",
		map[string]string{"internal/store/migrations/a.go": `package migrations; import _ "` + module + `/internal/flow"`},
		[]string{"internal/store/migrations -> " + module + "/internal/flow"}},
	{"a concrete processor outside app",
		map[string]string{"internal/flow/a.go": `package flow; import _ "` + module + `/internal/processor/sandbox"`},
		[]string{"internal/flow -> " + module + "/internal/processor/sandbox"}},
	{"the sandbox's bank from its driver",
		map[string]string{"internal/processor/sandbox/a.go": `package sandbox; import _ "` + module + `/internal/sandboxbank"`},
		[]string{"internal/processor/sandbox -> " + module + "/internal/sandboxbank"}},
	{"the gateway's rules from the sandbox's bank",
		map[string]string{"internal/sandboxbank/a.go": `package sandboxbank; import _ "` + module + `/internal/payment"`},
		[]string{"internal/sandboxbank -> " + module + "/internal/payment"}},
	{"one processor from another",
		map[string]string{"internal/processor/one/a.go": `package one; import _ "` + module + `/internal/processor/two"`},
		[]string{"internal/processor/one -> " + module + "/internal/processor/two"}},
	{"a test room in production",
		map[string]string{"internal/flow/a.go": `package flow; import _ "` + module + `/internal/store/storetest"`},
		[]string{"internal/flow -> " + module + "/internal/store/storetest"}},
	{"the clock in a pure room's test",
		map[string]string{"internal/ledger/a_test.go": `package ledger; import _ "` + module + `/internal/env"`},
		[]string{"internal/ledger -> " + module + "/internal/env"}},
	{"a log and a library in pure rooms",
		map[string]string{
			"boleto/a.go":           `package boleto; import _ "log/slog"`,
			"internal/payment/a.go": `package payment; import _ "github.com/google/uuid"`,
		},
		[]string{"boleto -> log/slog", "internal/payment -> github.com/google/uuid"}},
	{"a folder without a row",
		map[string]string{"internal/attic/a.go": "package attic"},
		[]string{"internal/attic"}},
	{"all as it should be",
		map[string]string{
			"cmd/porteira/main.go":       `package main; import _ "` + module + `/internal/cli"`,
			"internal/app/a.go":          `package app; import _ "` + module + `/internal/processor/sandbox"`,
			"internal/store/a.go":        `package store; import (_ "` + module + `/internal/store/migrations"; _ "database/sql")`,
			"internal/payment/a_test.go": `package payment; import (_ "os"; _ "pgregory.net/rapid")`,
			"internal/flow/a_test.go":    `package flow; import _ "` + module + `/internal/app"`,
		}, nil},
}
