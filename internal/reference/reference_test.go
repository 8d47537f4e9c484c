package reference

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/porteira/porteira/api"
	"github.com/porteira/porteira/docs"
	"github.com/porteira/porteira/internal/problem"
)

var (
	idMark   = regexp.MustCompile(` id="([^"]+)"`)
	linkOut  = regexp.MustCompile(` (?:href|src|action)="([^"]*)"`)
	pageRule = regexp.MustCompile(`(?i)<script|<img|<iframe|<form|javascript:| on[a-z]+=| style=`)
)

// pages renders both pages.
func pages(t *testing.T) map[string]string {
	t.Helper()
	contract, err := Contract()
	if err != nil {
		t.Fatal(err)
	}
	errors, err := Errors()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"/docs": string(contract), "/docs/errors": string(errors)}
}

// Every link of a page leads to a part of it or to the gateway, each part has one id, and
// nothing needs the network or a script.
func TestPagesAreComplete(t *testing.T) {
	t.Parallel()
	for path, text := range pages(t) {
		ids := map[string]bool{}
		for _, m := range idMark.FindAllStringSubmatch(text, -1) {
			if ids[m[1]] {
				t.Errorf("%s has the id %s twice", path, m[1])
			}
			ids[m[1]] = true
		}
		for _, m := range linkOut.FindAllStringSubmatch(text, -1) {
			target, inside := strings.CutPrefix(m[1], "#")
			if inside && !ids[target] || !inside && m[1] != "/docs" && m[1] != "/docs/errors" && m[1] != "/openapi.json" {
				t.Errorf("%s has a link to %s", path, m[1])
			}
		}
		if found := pageRule.FindString(text); found != "" {
			t.Errorf("%s has %s", path, found)
		}
		if !strings.Contains(text, "<style>"+style+"</style>") {
			t.Errorf("%s lacks the style that the policy allows", path)
		}
	}
}

// The page has every operation, parameter, field, enumeration and answer of the contract.
func TestContractPageLacksNothing(t *testing.T) {
	t.Parallel()
	text := pages(t)["/docs"]
	var d document
	if err := json.Unmarshal(api.JSON(), &d); err != nil {
		t.Fatal(err)
	}
	want := func(part, what string) {
		t.Helper()
		if !strings.Contains(text, part) {
			t.Errorf("no %s: %s", what, part)
		}
	}
	operations := 0
	for path, methods := range d.Paths {
		for method, o := range methods {
			operations++
			want(`<section id="`+o.OperationID+`">`, "operation")
			want("<code>"+strings.ToUpper(method)+" "+path+"</code>", "path")
			want(string(markdown(o.Description)), "description of "+o.OperationID)
		}
	}
	if got := strings.Count(text, "<h4>Answers</h4>"); got != operations {
		t.Errorf("%d operations, the contract has %d", got, operations)
	}
	for name, s := range d.Components.Schemas {
		want(`<section id="`+name+`">`, "schema")
		for field, f := range s.Properties {
			want("<code>"+field+"</code>", "field of "+name)
			want(string(markdown(f.Description)), "description of "+name+"."+field)
		}
		for _, value := range s.Enum {
			want(value.(string), "value of "+name)
		}
	}
}

// The type of every problem names a part of the page of errors.
func TestErrorPageHasEveryCode(t *testing.T) {
	t.Parallel()
	text := pages(t)["/docs/errors"]
	for _, kind := range problem.Kinds() {
		if !strings.Contains(text, `<h3 id="`+string(kind)+`">`+string(kind)+`</h3>`) {
			t.Errorf("no part about %s", kind)
		}
	}
	if strings.Contains(text, "```") || strings.Contains(text, "**") || strings.Contains(text, "](") || strings.Count(text, "<pre>") != strings.Count(string(docs.Errors()), "```")/2 {
		t.Error("the page has Markdown that was not rendered")
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                    "",
		"one\ntwo\n\nthree":                   "<p>one\ntwo</p><p>three</p>",
		"**bold** `a**b` [text](x.md#y)":      "<p><strong>bold</strong> <code>a**b</code> text</p>",
		"<script>&`<b>`\"":                    "<p>&lt;script&gt;&amp;<code>&lt;b&gt;</code>&#34;</p>",
		"- a `x`\n- b\n  more":                "<ul><li>a <code>x</code></li><li>b\n  more</li></ul>",
		"### not_found\nIt is.":               `<h3 id="not_found">not_found</h3><p>It is.</p>`,
		"| a | b |\n|---|---|\n| `1` | 2 |":   "<table><tr><th>a</th><th>b</th></tr><tr><td><code>1</code></td><td>2</td></tr></table>",
		"```json\n{\n\n\"a\": 1}\n```\n\nend": "<pre>{\n\n&#34;a&#34;: 1}</pre><p>end</p>",
	} {
		if got := string(markdown(text)); got != want {
			t.Errorf("%q:\n%q, want\n%q", text, got, want)
		}
	}
}

// A contract that refers to what it does not have is not shown.
func TestBrokenContract(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{`, `{"tags":[{"name":"a"}],"paths":{"/a":{"get":{"tags":["a"],"parameters":[{"$ref":"#/components/parameters/X"}]}}}}`,
		`{"tags":[{"name":"a"}],"paths":{"/a":{"get":{"tags":["a"],"responses":{"200":{"$ref":"#/components/responses/X"}}}}}}`,
	} {
		if got, err := renderContract([]byte(text)); err == nil {
			t.Errorf("%s: %d bytes", text, len(got))
		}
	}
}
