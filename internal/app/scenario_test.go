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

// step is one request of a scenario and the expected answer. In path and body, {ref}
// stands for the scenario's reference, {id} and {externalId} for those of its last
// order, {refund} and {dispute} for the ids of its last refund and dispute, {hook} for its receiver's address.
type step struct {
	ask    string // METHOD path
	body   string
	head   string // headers, one a line
	nobody bool   // without credentials
	status int
	holds  string // words that must be in the answer or its header
	lacks  string // words that must not
	await  bool   // the request is repeated until it gets this answer
	sent   bool   // the next step waits until no answer to a dispute is left to send: the bank refuses one that comes late
}

// scenario is a sequence of requests, and the rows that they leave. Scenarios share a
// gateway.
type scenario struct {
	name  string
	steps []step
	rows  string // as Rows.Since returns them
}

// onBoth runs a test on a gateway of either engine, in parallel with other tests, because
// they mostly wait for the bank.
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

// runScenarios runs scenarios in order and verifies the ledger at the end.
func runScenarios(t *testing.T, g *apptest.Installed, hook string, scenarios []scenario) {
	t.Helper()
	for i := range scenarios {
		t.Run(scenarios[i].name, func(t *testing.T) { scenarios[i].run(t, g, hook, fmt.Sprintf("%s %d", t.Name(), i)) })
	}
	g.Verify(t)
}

func (s *scenario) run(t *testing.T, g *apptest.Installed, hook, reference string) {
	t.Helper()
	before := g.Rows(t)
	quoted, err := json.Marshal(reference)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{"{ref}": strings.Trim(string(quoted), `"`), "{hook}": hook, "{id}": "", "{externalId}": ""}
	timedOut := false
	for _, a := range s.steps {
		a.await = a.await || timedOut
		got, late := a.play(t, g, known, func() bool { return timedOut && g.Rows(t)[updated] > before[updated] })
		timedOut = timedOut || late
		if a.sent {
			untilAnswersAreSent(t, g)
		}
		switch {
		case strings.HasPrefix(a.ask, "GET /disputes?payinId={id}"):
			var page struct{ Data []struct{ ID string } }
			if err := json.Unmarshal([]byte(got.Body), &page); err == nil && len(page.Data) > 0 {
				known["{dispute}"] = page.Data[0].ID
			}
		case got.Status == 201 && got.Get("payinId") != "":
			known["{refund}"] = got.Get("id")
		case got.Status == 201:
			known["{id}"], known["{externalId}"] = got.Get("id"), got.Get("externalId")
		}
	}
	apptest.Until(t, func() string {
		rows := g.Rows(t)
		left := rows.Since(before)
		if rows[updated]--; left != s.rows && !(timedOut && rows.Since(before) == s.rows) {
			return fmt.Sprintf("it left %q, want %q", left, s.rows)
		}
		return ""
	})
}

// untilAnswersAreSent waits until workers have ended with all answers to disputes.
func untilAnswersAreSent(t *testing.T, g *apptest.Installed) {
	t.Helper()
	apptest.Until(t, func() string {
		var left int
		if err := g.SQL.QueryRowContext(t.Context(), "SELECT count(*) FROM dispute_answers WHERE next_at > 0 OR length(claimed_by) > 0").Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left > 0 {
			return fmt.Sprintf("%d answers to disputes are not sent yet", left)
		}
		return ""
	})
}

// updated is the one row that a scenario leaves besides its own if a request got
// processor_timeout: the charge may then be made by a worker, which announces it.
const updated = "event payin.updated"

// never is for steps that are no part of a scenario.
func never() bool { return false }

// play sends the request, once or until it gets the expected answer. timedOut: an answer was
// processor_timeout, as may happen to any request that needs the bank, on a busy machine. A
// request to create an order is then sent again, as the API documents; the effect of
// others is seen in later steps. announced reports whether a worker made the charge of an
// earlier request that timed out.
func (a *step) play(t *testing.T, g *apptest.Installed, known map[string]string, announced func() bool) (got apptest.Answer, timedOut bool) {
	t.Helper()
	fill := func(text string) string {
		for name, value := range known {
			text = strings.ReplaceAll(text, name, value)
		}
		if strings.Contains(text, "/sandbox/TOKEN") {
			text = strings.ReplaceAll(text, "/inbound/sandbox/TOKEN", g.NoticePath())
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
	apptest.Until(t, func() string {
		got = client.Ask(method, path, fill(a.body), headers...)
		late := got.Status == http.StatusGatewayTimeout
		timedOut = timedOut || late
		if late && (a.status == http.StatusNoContent || a.status == http.StatusBadGateway) {
			return ""
		}
		what := a.objection(got, announced)
		if again := a.await || late && a.status == http.StatusCreated; what != "" && !again {
			t.Fatal(what)
		}
		return what
	})
	return got, timedOut
}

// objection returns what is wrong with an answer, or "".
func (a *step) objection(got apptest.Answer, announced func() bool) string {
	if got.Status != a.status {
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
		if strings.Contains(text.String(), word) && !announced() {
			return fmt.Sprintf("%s: %q is in %s", a.ask, word, text.String())
		}
	}
	return ""
}

// Bodies of valid requests.
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
