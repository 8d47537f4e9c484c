package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/store/storetest"
)

// act is one request of a story, and what its answer must and must not hold.
// In path and body, {ref} stands for a reference of the story's own, {id} and
// {externalId} for those of its last order, {hook} for its receiver's address.
type act struct {
	ask    string // METHOD path
	body   string
	head   string // headers, one a line
	nobody bool   // without credentials
	status int
	holds  string // words, each of which is in the answer or in a header of it
	lacks  string // words, none of which is
	await  bool   // it is asked until it is answered so
}

// story is told to a gateway that has others to hear: it knows which rows it
// leaves behind, and leaves no other.
type story struct {
	name string
	acts []act
	rows string // as Rows.Since has it
}

// onBoth runs a test on a gateway of either engine, beside other tests: most of
// what they do is to wait until a second has passed at the bank.
func onBoth(t *testing.T, test func(t *testing.T, g *apptest.Installed)) {
	t.Helper()
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			test(t, apptest.Start(t, engine))
		})
	}
}

// tell tells stories one after the other, and proves the books at the end.
func tell(t *testing.T, g *apptest.Installed, hook string, stories []story) {
	t.Helper()
	for i := range stories {
		t.Run(stories[i].name, func(t *testing.T) { stories[i].tell(t, g, hook, fmt.Sprintf("%s %d", t.Name(), i)) })
	}
	g.Verify(t)
}

func (s *story) tell(t *testing.T, g *apptest.Installed, hook, reference string) {
	t.Helper()
	before := g.Rows(t)
	quoted, err := json.Marshal(reference)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{"{ref}": strings.Trim(string(quoted), `"`), "{hook}": hook, "{id}": "", "{externalId}": ""}
	slow := false
	for _, a := range s.acts {
		a.await = a.await || slow
		got := a.play(t, g, known)
		slow = slow || a.late(got)
		if got.Status == 201 {
			known["{id}"], known["{externalId}"] = got.Get("id"), got.Get("externalId")
		}
	}
	apptest.Until(t, func() string {
		if rows := g.Rows(t).Since(before); rows != s.rows {
			return fmt.Sprintf("it left %q, want %q", rows, s.rows)
		}
		return ""
	})
}

// play sends the request, once or until it is answered as wanted.
func (a *act) play(t *testing.T, g *apptest.Installed, known map[string]string) (got apptest.Answer) {
	t.Helper()
	fill := func(text string) string {
		for name, value := range known {
			text = strings.ReplaceAll(text, name, value)
		}
		return text
	}
	client := g.In(t)
	if a.nobody {
		client = g.Anonymous().In(t)
	}
	method, path, _ := strings.Cut(fill(a.ask), " ")
	var headers []string
	if a.head != "" {
		headers = strings.Split(a.head, "\n")
	}
	ask := func() string {
		got = client.Ask(method, path, fill(a.body), headers...)
		return a.objection(got)
	}
	if a.await {
		apptest.Until(t, ask)
	} else if what := ask(); what != "" {
		t.Fatal(what)
	}
	return got
}

// late says whether the sandbox did what it was asked, but on a busy machine
// did not see its effect in time: what follows is then waited for.
func (a *act) late(got apptest.Answer) bool {
	return a.status == http.StatusNoContent && got.Status == http.StatusGatewayTimeout
}

// objection says what is wrong with an answer, or nothing.
func (a *act) objection(got apptest.Answer) string {
	if got.Status != a.status && !a.late(got) {
		return fmt.Sprintf("%s: %d, want %d: %s", a.ask, got.Status, a.status, got.Body)
	}
	var text strings.Builder
	for name, values := range got.Header {
		fmt.Fprintf(&text, "%s:%s\n", name, strings.Join(values, ","))
	}
	text.WriteString(got.Body)
	for word := range strings.FieldsSeq(a.holds) {
		if !strings.Contains(text.String(), word) {
			return fmt.Sprintf("%s: %q is missing in %s", a.ask, word, text.String())
		}
	}
	for word := range strings.FieldsSeq(a.lacks) {
		if strings.Contains(text.String(), word) {
			return fmt.Sprintf("%s: %q is in %s", a.ask, word, text.String())
		}
	}
	return ""
}

// Bodies of good requests.
const (
	pixOf    = `{"paymentMethod":"PIX","amount":1000,"referenceId":"{ref}","customer":{"name":"Maria","document":"52998224725"}}`
	billOf   = `{"paymentMethod":"BOLETO","amount":5000,"referenceId":"{ref}","customer":{"name":"Maria","document":"52998224725"}}`
	cardOf   = `{"paymentMethod":"CREDIT_CARD","amount":7000,"referenceId":"{ref}","customer":{"name":"Maria","document":"52998224725"}}`
	payoutOf = `{"amount":500,"pixKey":"maria@example.com","pixKeyType":"EMAIL","beneficiaryName":"Maria","beneficiaryDocument":"52998224725","referenceId":"{ref}"}`
)

// with replaces a part of a body.
func with(body, old, replacement string) string {
	if !strings.Contains(body, old) {
		panic(old + " is not in " + body)
	}
	return strings.Replace(body, old, replacement, 1)
}
