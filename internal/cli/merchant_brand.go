package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/store"
)

type merchantBrand struct {
	Name     string  `arg:""                                                                                     help:"The merchant's name."`
	Title    *string `help:"What payers see instead of its name; empty takes the name."                          placeholder:"TEXT"`
	Document *string `help:"Its CPF or CNPJ, as bills name their beneficiary; empty names none."                 placeholder:"DIGITS"`
	Color    *string `help:"Colour of its buttons, as #rrggbb; empty takes the gateway's own."                   placeholder:"#RRGGBB"`
	Logo     *string `help:"File of its logo, a PNG or JPEG of at most 32 KiB and 1024 pixels; empty shows none." placeholder:"FILE"`
}

// brandView is a brand as the commands show it.
type brandView struct {
	Merchant  string `json:"merchant"`
	Title     string `json:"title"`
	Document  string `json:"document"`
	Color     string `json:"color"`
	LogoType  string `json:"logoType"`
	LogoBytes int    `json:"logoBytes"`
}

// Run changes what was named, and shows the whole.
func (c *merchantBrand) Run(r *runner, root *commands) error {
	return r.admin(&root.Merchant.settings, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Name)
		if err != nil {
			return err
		}
		b, err := a.Store.Brand(r.ctx, m.ID)
		if err != nil {
			return err
		}
		changed, err := c.change(&b)
		if err != nil {
			return err
		}
		if changed {
			if err := a.Flow.SaveBrand(r.ctx, b); err != nil {
				return err
			}
			if b, err = a.Store.Brand(r.ctx, m.ID); err != nil {
				return err
			}
		}
		v := brandView{m.Name, b.Title, b.Document, b.Color, b.LogoType, len(b.Logo)}
		return r.out.show(v, func(w io.Writer) {
			if changed {
				_, _ = fmt.Fprintf(w, "Payers of %q see this from now on.\n\n", m.Name)
			}
			logo := ""
			if v.LogoBytes > 0 {
				logo = fmt.Sprintf("%s, %d bytes", v.LogoType, v.LogoBytes)
			}
			table(w, [][]string{{"  title", v.Title}, {"  document", v.Document}, {"  colour", v.Color}, {"  logo", logo}})
		})
	})
}

// change takes over what was named, and says whether anything was.
func (c *merchantBrand) change(b *store.Brand) (changed bool, err error) {
	for _, p := range []struct{ from, to *string }{{c.Title, &b.Title}, {c.Document, &b.Document}, {c.Color, &b.Color}} {
		if p.from != nil {
			*p.to, changed = *p.from, true
		}
	}
	if c.Logo == nil {
		return changed, nil
	}
	b.Logo = nil
	if *c.Logo != "" {
		if b.Logo, err = os.ReadFile(*c.Logo); err != nil {
			return false, configError{fmt.Errorf("the logo cannot be read: %w", err)}
		}
	}
	return true, nil
}
