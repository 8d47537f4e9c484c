package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/porteira/porteira/internal/app"
)

type credentialRotate struct {
	author

	Key     string  `arg:""        help:"The credential's x-api-key."`
	Overlap overlap `default:"24h" help:"How long the current secret stays valid, in days or hours, at most 7d; 0s ends it at once (default 24h)." placeholder:"DURATION"`
}

// Run replaces a credential's secret and shows the new one, which is not stored.
func (c *credentialRotate) Run(r *runner, root *commands) error {
	return r.change(&root.Credential.settings, &c.author, func(a *app.Admin) error {
		rotated, secret, err := a.Merchants.RotateCredential(r.ctx, c.Key, "", time.Duration(c.Overlap))
		if isNotFound(err) {
			return fmt.Errorf("credential %q not found, or revoked: porteira credential list MERCHANT lists them", c.Key)
		}
		if err != nil {
			return err
		}
		v := viewCredential(&rotated)
		v.Secret = secret
		return r.out.show(v, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Rotated %s. The new secret is shown only this once.\n\n", v.KeyID)
			rows := [][]string{{"  x-api-key", v.KeyID}, {"  x-api-secret", v.Secret}}
			ends := "within 2 seconds"
			if v.PreviousUntil != nil {
				ends = stamp(*v.PreviousUntil)
			}
			table(w, append(rows, []string{"  previous secret ends", ends}))
		})
	})
}
