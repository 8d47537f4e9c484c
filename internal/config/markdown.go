package config

import (
	"fmt"
	"strings"
)

// Markdown returns docs/configuration.md, generated from the table.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Generated from internal/config/options.go by "make docs". Do not edit. -->

An option can be set in three ways; a later one overrides an earlier one:

1. in a file of ` + "`name = value`" + ` lines (` + "`#`" + ` starts a comment line), named by ` + "`--config`" + ` or ` + "`PORTEIRA_CONFIG`" + `;
2. by an environment variable: ` + "`max-in-flight`" + ` is ` + "`PORTEIRA_MAX_IN_FLIGHT`" + `;
3. by a flag: ` + "`--max-in-flight`" + `. Secrets have no flag, because other users of the machine can see flags.

An unknown name or an invalid value is an error at start. ` + "`porteira config --for serve`" + ` prints each value and its
source. ` + "`PORTEIRA_SERVICE_*` and `PORTEIRA_PORT*`" + `, which Kubernetes sets, are ignored.

| option | value | default | read by | meaning |
|---|---|---|---|---|
`)
	for i := range Options {
		o := &Options[i]
		modes := make([]string, len(o.Modes))
		for j, m := range o.Modes {
			modes[j] = string(m)
		}
		by := strings.Join(modes, ", ")
		if len(o.Modes) == len(Modes) {
			by = "all"
		}
		kind := strings.ReplaceAll(o.Kind, "|", " or ")
		if o.Secret {
			kind += ", secret"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", o.Name, kind, defaultsText(o), by, o.Meaning)
	}
	b.WriteString(`
"admin" stands for the commands on a gateway's database: merchant, credential, account, route,
limit, price, payin, payout, refund, dispute, balance, event, delivery, case, find, verify, backup, rekey, migrate. "porteira doctor" reads the options of serve.

## Risks

` + "`porteira serve`" + ` refuses these settings, all in one message. ` + "`accept-risk`" + ` with the names of risks accepts them.

| risk | risk if accepted |
|---|---|
`)
	for _, r := range Risks {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.Name, r.GivesUp)
	}
	return b.String()
}

func defaultsText(o *Option) string {
	var parts []string
	if o.Default != "" {
		parts = append(parts, "`"+o.Default+"`")
	}
	for _, m := range Modes {
		if text, ok := o.Else[m]; ok {
			parts = append(parts, fmt.Sprintf("%s: `%s`", m, text))
		}
	}
	return strings.Join(parts, "; ")
}
