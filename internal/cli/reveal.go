package cli

import (
	"errors"
	"strings"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/store"
)

// reveal shows personal data in clear text, and records who saw whose, and why.
type reveal struct {
	author

	Reveal bool `help:"Show personal data in clear text. The audit records who did it, and why: --reason is required."`
}

// check refuses to reveal without a reason, before anything is read.
func (c *reveal) check() error {
	if c.Reveal && strings.TrimSpace(c.Reason) == "" {
		return configError{errors.New("say why with --reason TEXT: the audit records who saw personal data, and why")}
	}
	return nil
}

// record records that personal data of a subject is shown, before it is.
func (c *reveal) record(r *runner, a *app.Admin, s *query.Subject) error {
	by, err := c.author.author()
	if err != nil {
		return err
	}
	return a.Store.Administer(r.ctx, by, func(tx *store.AdminTx) error {
		tx.Record(string(s.Kind), "reveal", s.Merchant, s.ID.String())
		return nil
	})
}
