package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/config"
)

// Each metric that the example rules name exists, and each rule has a section that says what to do.
func TestAlertRules(t *testing.T) {
	g := apptest.Run(t, apptest.Config(t, config.Dev, nil, "data", t.TempDir()))
	payin(g, "canary")
	exported := get(t, g.Base+"/metrics") + strings.Join(app.RareMetrics(), "\n")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	rules, guide := read("alerts.yaml"), read("alerts.md")
	metrics := regexp.MustCompile(`porteira_[a-z_]+`).FindAllString(rules+guide, -1)
	if len(metrics) < 15 {
		t.Fatalf("%d metrics", len(metrics))
	}
	for _, name := range metrics {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(exported) {
			t.Errorf("%s is not exported", name)
		}
	}
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	for _, alert := range alerts {
		if !strings.Contains(guide, "\n## "+alert[1]+"\n") {
			t.Errorf("docs/alerts.md has no section %s", alert[1])
		}
	}
	if n := strings.Count(guide, "\n## "); n != len(alerts) {
		t.Errorf("%d sections for %d rules", n, len(alerts))
	}
	for _, want := range []string{
		"porteira_stopping_cases 0", `porteira_unknown_outcomes{subject="payout"} 0`, `porteira_work_overdue_seconds{queue="payouts_to_send"} 0`,
		`porteira_webhook_endpoints{state="disabled"} 0`, `porteira_ledger_cents{account="held"} 0`, `porteira_clearing_cents{account="sandbox"} 1e+08`, "porteira_facts_timestamp_seconds ",
	} {
		if !strings.Contains(exported, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}
