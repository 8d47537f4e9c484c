package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// constants returns the values of a type's constants in a file.
func constants(t *testing.T, path, typeName string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == typeName {
			for _, v := range spec.Values {
				value, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
		}
		return true
	})
	return values
}

// Each kind of case has a text, with each of its reasons, and each reason has one kind.
func TestCaseTexts(t *testing.T) {
	t.Parallel()
	kinds, reasons := map[string]int{}, map[string]int{}
	for pair, text := range caseTexts {
		kinds[string(pair.kind)]++
		reasons[string(pair.reason)]++
		v := store.Case{Kind: pair.kind, Params: pair.reason.With(store.Params{
			"status": "S", "event": "E", "reported": "1", "processor": "P", "externalId": "X", "notice": "N", "field": "F", "problem": "W", "owed": "1", "feed": "L", "cause": "C", "account": "A", "since": "T", "bookedAt": "B",
		})}
		if shown := caseText(&v); shown == "" || strings.ContainsAny(shown, "{}") || strings.Contains(text, "{") == (shown == text) {
			t.Errorf("%v is shown as %q", pair, shown)
		}
	}
	declared := constants(t, "../store/case.go", "CaseKind")
	if len(declared) < 7 {
		t.Fatalf("kinds: %v", declared)
	}
	for _, kind := range declared {
		if kinds[kind] == 0 {
			t.Errorf("kind %s has no text", kind)
		}
	}
	declared = constants(t, "../store/case.go", "CaseReason")
	if len(declared) < 12 {
		t.Fatalf("reasons: %v", declared)
	}
	for _, reason := range declared {
		if reasons[reason] != 1 {
			t.Errorf("reason %s has %d texts", reason, reasons[reason])
		}
	}
}

// A payout that was paid with another amount after its release says what is booked.
func TestCaseTextOfAnotherAmount(t *testing.T) {
	t.Parallel()
	for reported, want := range map[string]bool{"": false, "5900": true} {
		v := store.Case{Kind: store.CaseContradiction, Params: store.ReasonPaidAfterRelease.With(store.Params{"reported": reported})}
		if text := caseText(&v); strings.Contains(text, "another amount") != want {
			t.Errorf("reported %q: %s", reported, text)
		}
	}
}

// Each resolution of each kind has a text, and each text a resolution.
func TestResolutionTexts(t *testing.T) {
	t.Parallel()
	used := map[resolutionOf]bool{}
	for pair := range caseTexts {
		v := store.Case{Kind: pair.kind, Params: pair.reason.With(store.Params{"notice": "n", "table": "payouts"})}
		options := review.Possible(&v)
		if len(options) == 0 {
			t.Errorf("%v has no resolution", pair)
		}
		for _, o := range options {
			of := resolutionOf{pair.kind, o.How}
			used[of] = true
			if resolutionTexts[of] == "" {
				t.Errorf("%v has no text", of)
			}
		}
	}
	for of := range resolutionTexts {
		if !used[of] {
			t.Errorf("%v is no resolution", of)
		}
	}
}

// Each kind of case, and each reason, has its paragraph in docs/cases.md.
func TestCasesAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	for pair := range caseTexts {
		if !strings.Contains(string(page), "**`"+string(pair.kind)+"`.**") {
			t.Errorf("kind %s has no paragraph", pair.kind)
		}
		if pair.reason != "" && !strings.Contains(string(page), "`"+string(pair.reason)+"`") {
			t.Errorf("reason %s of %s is not explained", pair.reason, pair.kind)
		}
	}
}

// While a proposal waits, it can be confirmed or withdrawn; one that is outdated can only be withdrawn.
func TestOptionsOfAProposal(t *testing.T) {
	t.Parallel()
	v := store.Case{Kind: store.CasePayoutUnknown, Params: store.ReasonNoAnswer.With(nil)}
	proposal := &store.Decision{Resolution: store.ResolvedRelease, Actor: "ana"}
	for outdated, want := range map[bool]string{false: "release withdraw", true: "withdraw"} {
		var list []string
		for _, o := range caseOptions(&v, review.Possible(&v), proposal, outdated) {
			list = append(list, o.How)
		}
		if got := strings.Join(list, " "); got != want {
			t.Errorf("outdated %v: options %q, want %q", outdated, got, want)
		}
	}
}
