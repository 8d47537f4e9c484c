package config

import (
	"fmt"
	"strings"
)

// Markdown is docs/configuration.md, written from the table.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Written from the table in internal/config/options.go: edit that, then run
"go test ./internal/config -update". -->

Every option has one name. It is set, from the least weight to the most,

1. in a file of ` + "`name = value`" + ` lines (` + "`#`" + ` begins a comment line), named by ` + "`--config`" + ` or ` + "`PORTEIRA_CONFIG`" + `,
2. by an environment variable: ` + "`PORTEIRA_`" + ` and the name in capitals with ` + "`_`" + ` for ` + "`-`" + `,
3. by a flag: ` + "`--name`" + `. Secrets have none, as every user of a machine sees its flags.

A name that nobody knows, or a value that makes no sense, keeps the program from
starting. ` + "`porteira config --for serve`" + ` prints what would hold, and where each value
comes from. Variables that Kubernetes sets for a service named porteira
(` + "`PORTEIRA_SERVICE_*`, `PORTEIRA_PORT*`" + `) are not read.

| option | value | default | read by | meaning |
|---|---|---|---|---|
`)
	for i := range Options {
		o := &Options[i]
		modes := make([]string, len(o.Modes))
		for j, m := range o.Modes {
			modes[j] = string(m)
		}
		kind := strings.ReplaceAll(o.Kind, "|", " or ")
		if o.Secret {
			kind += ", secret"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", o.Name, kind, defaultsText(o), strings.Join(modes, ", "), o.Meaning)
	}
	b.WriteString(`
"admin" stands for the commands that work beside a running gateway: merchant,
credential, exceptions, verify, migrate.
`)
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
