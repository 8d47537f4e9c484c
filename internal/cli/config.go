package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/porteira/porteira/internal/config"
)

type configCommand struct {
	For  config.Mode `default:"dev"            enum:"dev,serve,bank,admin" help:"The command whose options to list: ${enum}."`
	File string      `help:"Settings file." name:"config"               placeholder:"FILE"`
}

// settingView is an option with its value.
type settingView struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Source   string `json:"source"`
	Variable string `json:"variable"`
	Secret   bool   `json:"secret"`
	Meaning  string `json:"meaning"`
}

// Run prints each option, its value and its source, then errors of invalid options.
func (c *configCommand) Run(r *runner) error {
	flags := map[string]string{}
	if c.File != "" {
		flags["config"] = c.File
	}
	cfg, invalid := config.Load(config.Sources{Mode: c.For, Environ: r.Environ, Flags: flags})
	var views []settingView
	rows := [][]string{{"OPTION", "VALUE", "FROM", "VARIABLE"}}
	for _, s := range cfg.Settings() {
		views = append(views, settingView{s.Name, s.Value, s.Source, s.Env(), s.Secret, s.Meaning})
		rows = append(rows, []string{s.Name, orNone(s.Value), s.Source, s.Env()})
	}
	err := r.out.show(views, func(w io.Writer) {
		table(w, rows)
		_, _ = fmt.Fprintln(w)
		for _, s := range cfg.Settings() {
			_, _ = fmt.Fprintf(w, "%s\n    %s.\n", s.Name, s.Meaning)
		}
	})
	if invalid != nil {
		invalid = configError{invalid}
	}
	return errors.Join(err, invalid)
}

func orNone(value string) string {
	if value == "" {
		return "-"
	}
	return value
}
