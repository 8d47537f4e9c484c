package tidy

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// kind is the kind of a layer.
type kind int

const (
	plain kind = iota
	// pure layers only compute. They use no database, network, file, log or context, and no
	// library except the standard one.
	pure
	// testOnly layers are for tests. They may import every layer, and no other layer may
	// import them.
	testOnly
)

// layer is a group of packages: a folder with its subfolders that have no row of their own,
// and the other layers that it may import.
type layer struct {
	name    string // folder, without internal/; * is any one folder
	kind    kind
	imports string
}

const (
	libraries = " brcode boleto taxid pixkey"
	middle    = " money ledger payment limits effect"
	basics    = " problem env actor"
	rows      = " db store"
	writing   = " commit write transition cluster worker"
	useCases  = " dispute payin outgoing payout refund notice endpoint delivery account merchant review search"
)

// layers is the architecture: a layer may import only the layers in its row, which must all
// be above it in the table, so imports point one way.
var layers = []layer{
	// Public libraries.
	{"brcode", pure, ""},
	{"boleto", pure, ""},
	{"taxid", pure, ""},
	{"pixkey", pure, "taxid"},

	// Rules of money and the ledger.
	{"money", pure, ""},
	{"ledger", pure, "money"},
	{"effect", pure, ""},
	{"payment", pure, "money ledger effect" + libraries},
	{"limits", pure, "money payment"},
	{"pricing", pure, "money payment"},

	// Basics for every layer that is not pure.
	{"problem", plain, ""},
	{"env", plain, ""},
	{"jsonwrite", plain, ""},
	{"weburl", plain, ""},
	{"actor", plain, "problem"},

	// Independent of payments.
	{"config", plain, basics},
	{"worker", plain, basics},
	{"commit", plain, basics},
	{"webhook", plain, "weburl" + basics},
	{"checkout/codes", pure, ""},
	{"checkout/bill", plain, "checkout/codes money boleto"},

	// The sandbox's bank, a separate program: a gateway shares only its protocol.
	{"sandboxbank/bankapi", plain, "money brcode boleto"},
	{"sandboxbank", plain, "sandboxbank/bankapi money env"},
	{"sandboxbank/certificate", plain, "env"},
	{"sandboxbank/apipixface", plain, "sandboxbank sandboxbank/bankapi sandboxbank/certificate money env"},
	{"sandboxbank/asaasface", plain, "sandboxbank sandboxbank/bankapi sandboxbank/certificate money env"},

	// The API's JSON, for use cases and faces, but not for the store.
	{"wire", plain, "problem actor jsonwrite weburl" + middle + libraries},

	// Store and processors.
	{"db", plain, "payment env"},
	{"store", plain, "db jsonwrite pricing" + middle + basics},
	{"processor", plain, middle + basics + libraries},
	{"processor/accounthttp", plain, "processor env"},
	{"processor/sandbox", plain, "sandboxbank/bankapi processor/accounthttp processor payment money" + basics + libraries},
	{"processor/*", plain, "processor/accounthttp processor payment money" + basics + libraries},

	// The one way to write, and the use cases.
	{"write", plain, "commit" + rows + middle + basics},
	{"transition", plain, "wire" + rows + middle},
	{"receivable", plain, "pricing transition" + rows + middle},
	{"cluster", plain, "commit write" + rows + middle + basics},
	{"dispute", plain, "receivable processor wire" + rows + middle + basics + writing},
	{"payin", plain, "receivable dispute processor wire" + rows + middle + basics + writing},
	{"outgoing", plain, "receivable dispute processor" + rows + middle + basics + writing},
	{"payout", plain, "pricing outgoing processor wire" + rows + middle + basics + writing},
	{"refund", plain, "receivable outgoing processor wire" + rows + middle + basics + writing},
	{"review", plain, "payin receivable dispute outgoing refund processor" + rows + middle + basics + writing},
	{"notice", plain, "dispute payin processor" + rows + middle + basics + writing},
	{"endpoint", plain, "webhook wire" + rows + middle + basics + writing},
	{"delivery", plain, "endpoint webhook wire" + rows + middle + basics + writing},
	{"search", plain, rows + middle + basics + writing},
	{"account", plain, "processor" + rows + middle + basics + writing},
	{"query", plain, rows + middle + basics + libraries},
	{"merchant", plain, "pricing processor taxid" + rows + middle + basics + writing},

	// Faces.
	{"api", plain, ""},
	{"docs", plain, ""},
	{"reference", plain, "api docs"},
	{"httpapi", plain, "pricing api reference wire webhook processor" + rows + middle + basics + libraries},
	{"checkout", plain, "checkout/codes checkout/bill wire weburl processor" + rows + middle + basics + libraries},

	// The sandbox's routes, which control its bank.
	{"sandboxcontrol", plain, "httpapi checkout wire sandboxbank/bankapi payin processor" + rows + middle + basics},

	// Assembly and commands. Only app imports concrete processors.
	{"app", plain, "api httpapi checkout sandboxcontrol sandboxbank sandboxbank/apipixface sandboxbank/asaasface processor/sandbox processor/* processor query wire webhook config" +
		rows + middle + basics + writing + useCases + libraries},
	{"bench", plain, "account app config processor wire" + rows + middle + basics + writing + useCases + libraries},
	{"cli", plain, "app bench config merchant account processor review query wire" + rows + middle + basics + libraries},
	{"cmd/porteira", plain, "cli"},

	// For tests only.
	{"store/storetest", testOnly, ""},
	{"processor/processortest", testOnly, ""},
	{"httpapi/apitest", testOnly, ""},
	{"app/apptest", testOnly, ""},
	{"app/coretest", testOnly, ""},
	{"checkout/checkouttest", testOnly, ""},
	{"test/sim", testOnly, ""},
	{"test/drivers", testOnly, ""},
	{"test/sim/checker", plain, ""}, // shares no code with the gateway
	{"tidy", testOnly, ""},
	{"tools", testOnly, ""},
	{"test/crashtest", testOnly, ""},
}

// computing are libraries that a pure layer may use.
var computing = []string{"rsc.io/qr/coding", "github.com/rickar/cal/v2", "github.com/rickar/cal/v2/br"}

// impure are the standard packages that a pure layer may not use.
var impure = []string{"context", "database/sql", "log", "log/slog", "net", "net/http", "os", "os/exec", "syscall"}

// checkImports checks each import against the table. Tests may import everything, except
// tests of pure layers, which may import pure layers only.
func checkImports(repository *tree) []finding {
	var found []finding
	for _, file := range repository.sources {
		folder, row, ok := layerOf(file.folder)
		if !ok {
			found = append(found, finding{file.folder, file.path, "this folder has no row in the table of layers"})
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

// objection returns what is wrong with an import, or "".
func objection(file *source, folder string, row layer, imported string) string {
	if target, ours := strings.CutPrefix(imported, module+"/"); ours {
		other, otherRow, _ := layerOf(target)
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

// layerOf finds the layer of a folder: its own row, else that of the nearest folder above.
func layerOf(folder string) (string, layer, bool) {
	for name := strings.TrimPrefix(folder, "internal/"); name != "."; name = path.Dir(name) {
		for _, pattern := range []string{name, path.Join(path.Dir(name), "*")} {
			if i := slices.IndexFunc(layers, func(r layer) bool { return r.name == pattern }); i >= 0 {
				return name, layers[i], true
			}
		}
	}
	return "", layer{}, false
}

// Layers import only layers above them in the table, so there is no cycle.
func TestLayersImportOnlyLayersAbove(t *testing.T) {
	t.Parallel()
	above := map[string]kind{}
	for _, layer := range layers {
		for _, name := range strings.Fields(layer.imports) {
			other, ok := above[name]
			if !ok || other == testOnly {
				t.Errorf("%s imports %s, which is not above it or is for tests only", layer.name, name)
			}
			if layer.kind == pure && other != pure {
				t.Errorf("%s is pure and imports %s, which is not", layer.name, name)
			}
		}
		above[layer.name] = layer.kind
	}
}

// emptyLayers returns the layers without a Go file.
func emptyLayers(repository *tree) []string {
	var empty []string
	for _, layer := range layers {
		inside := func(file *source) bool {
			for name := strings.TrimPrefix(file.folder, "internal/"); name != "."; name = path.Dir(name) {
				if matched, err := path.Match(layer.name, name); matched && err == nil {
					return true
				}
			}
			return false
		}
		if !slices.ContainsFunc(repository.sources, inside) {
			empty = append(empty, layer.name)
		}
	}
	return empty
}

func TestEachLayerHasAFolder(t *testing.T) {
	t.Parallel()
	repository, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if empty := emptyLayers(repository); len(empty) > 0 {
		t.Errorf("no folder: %q", empty)
	}
	one := mutant{files: map[string]string{"internal/processor/sandbox/sub/a.go": "package sub", "tools/codes/a.go": "package codes"}}
	for _, layer := range layers {
		want := !slices.Contains([]string{"processor", "processor/*", "processor/sandbox", "tools"}, layer.name)
		if slices.Contains(emptyLayers(one.load(t)), layer.name) != want {
			t.Errorf("layer %s is empty: %v", layer.name, !want)
		}
	}
}

var importMutants = []mutant{
	{"against the direction",
		map[string]string{"internal/store/a.go": `package store; import _ "` + module + `/internal/payin"`},
		[]string{"internal/store -> " + module + "/internal/payin"}},
	{"from a subfolder",
		map[string]string{"internal/store/migrations/a.go": `package migrations; import _ "` + module + `/internal/payin"`},
		[]string{"internal/store/migrations -> " + module + "/internal/payin"}},
	{"a concrete processor outside app",
		map[string]string{"internal/payin/a.go": `package payin; import _ "` + module + `/internal/processor/sandbox"`},
		[]string{"internal/payin -> " + module + "/internal/processor/sandbox"}},
	{"the sandbox's bank from its driver",
		map[string]string{"internal/processor/sandbox/a.go": `package sandbox; import _ "` + module + `/internal/sandboxbank"`},
		[]string{"internal/processor/sandbox -> " + module + "/internal/sandboxbank"}},
	{"the gateway's rules from the sandbox's bank",
		map[string]string{"internal/sandboxbank/a.go": `package sandboxbank; import _ "` + module + `/internal/payment"`},
		[]string{"internal/sandboxbank -> " + module + "/internal/payment"}},
	{"one processor from another",
		map[string]string{"internal/processor/one/a.go": `package one; import _ "` + module + `/internal/processor/two"`},
		[]string{"internal/processor/one -> " + module + "/internal/processor/two"}},
	{"a test layer in production",
		map[string]string{"internal/payin/a.go": `package payin; import _ "` + module + `/internal/store/storetest"`},
		[]string{"internal/payin -> " + module + "/internal/store/storetest"}},
	{"the clock in a pure layer's test",
		map[string]string{"internal/ledger/a_test.go": `package ledger; import _ "` + module + `/internal/env"`},
		[]string{"internal/ledger -> " + module + "/internal/env"}},
	{"a log and a library in pure layers",
		map[string]string{
			"boleto/a.go":           `package boleto; import _ "log/slog"`,
			"internal/payment/a.go": `package payment; import _ "github.com/google/uuid"`,
		},
		[]string{"boleto -> log/slog", "internal/payment -> github.com/google/uuid"}},
	{"a folder without a row",
		map[string]string{"internal/attic/a.go": "package attic"},
		[]string{"internal/attic"}},
	{"allowed imports",
		map[string]string{
			"cmd/porteira/main.go":       `package main; import _ "` + module + `/internal/cli"`,
			"internal/app/a.go":          `package app; import _ "` + module + `/internal/processor/sandbox"`,
			"internal/store/a.go":        `package store; import (_ "` + module + `/internal/store/migrations"; _ "database/sql")`,
			"internal/payment/a_test.go": `package payment; import (_ "os"; _ "pgregory.net/rapid")`,
			"internal/payin/a_test.go":   `package payin; import _ "` + module + `/internal/app"`,
		}, nil},
}
