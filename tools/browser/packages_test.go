package browser_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/checkout/checkouttest"
)

// published reads a file of an npm package, which `make oracle` installs.
func published(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("node_modules", filepath.FromSlash(path)))
	if os.IsNotExist(err) {
		checkouttest.Missing(t, "the published packages are not installed: run `make oracle`")
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// violation is a violation reported by axe-core.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

func (v violation) String() string {
	out := v.ID + ": " + v.Help
	for _, node := range v.Nodes {
		out += "\n  " + node.HTML + "\n  " + strings.ReplaceAll(node.Summary, "\n", "\n  ")
	}
	return out
}

// inaccessible has axe-core check the present page, by all of its rules.
func (b *tab) inaccessible() []violation {
	b.Helper()
	if eval[bool](b, "!window.axe") {
		eval[bool](b, string(published(b, "axe-core/axe.min.js"))+";true")
	}
	report := eval[string](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations))`)
	var violations []violation
	if err := json.Unmarshal([]byte(report), &violations); err != nil {
		b.Fatal(err)
	}
	return violations
}

// accessible fails the test for each violation that axe-core reports.
func (b *tab) accessible(what string) {
	b.Helper()
	for _, v := range b.inaccessible() {
		b.Errorf("%s: %s", what, v)
	}
}

// harmful picks, from a list of texts that programs stumble over, those that
// mean to be run.
var harmful = regexp.MustCompile(`(?i)<|javascript:|onerror|alert|script`)

// payloads are published texts that run a script if they are not escaped.
func payloads(t testing.TB) []string {
	t.Helper()
	var all, out []string
	if err := json.Unmarshal(published(t, "big-list-of-naughty-strings/blns.json"), &all); err != nil {
		t.Fatal(err)
	}
	for _, text := range all {
		if harmful.MatchString(text) && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) < 200 {
		t.Fatalf("%d payloads, want 200 at least", len(out))
	}
	return out
}
