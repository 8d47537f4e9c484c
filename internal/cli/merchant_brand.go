package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

type merchantBrand struct {
	brandFlags

	Name string `arg:"" help:"The merchant's name."`
}

// brandFlags are the changes of a brand.
type brandFlags struct {
	Title    *string `help:"The title that payers see; empty uses the merchant's name."                                placeholder:"TEXT"`
	Document *string `help:"The merchant's CPF or CNPJ, shown on boletos; empty shows none."                           placeholder:"DIGITS"`
	Color    *string `help:"The colour of buttons, as #rrggbb; empty uses the default."                                placeholder:"#RRGGBB"`
	Logo     *string `help:"The logo, a PNG or JPEG file of at most 32 KiB and 1024 pixels per side; empty shows none." placeholder:"FILE"`
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

// Run changes the given fields and shows the brand.
func (c *merchantBrand) Run(r *runner, root *commands) error {
	return r.admin(&root.Merchant.settings, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Name)
		if err != nil {
			return err
		}
		b, changed, err := c.withFlags(r, a, m.ID)
		if err != nil {
			return err
		}
		if changed {
			if _, err := a.Merchants.Update(r.ctx, m.ID, merchant.Update{Brand: &b}); err != nil {
				return err
			}
			if b, err = a.Store.Brand(r.ctx, m.ID); err != nil { // as it was normalized
				return err
			}
		}
		v := brandView{m.Name, b.Title, b.Document, b.Color, b.LogoType, len(b.Logo)}
		return r.out.show(v, func(w io.Writer) {
			if changed {
				_, _ = fmt.Fprintf(w, "Saved the brand of %q.\n\n", m.Name)
			}
			table(w, v.rows())
		})
	})
}

func (v *brandView) rows() [][]string {
	logo := ""
	if v.LogoBytes > 0 {
		logo = fmt.Sprintf("%s, %d bytes", v.LogoType, v.LogoBytes)
	}
	return [][]string{{"  title", v.Title}, {"  document", v.Document}, {"  colour", v.Color}, {"  logo", logo}}
}

// withFlags reads the merchant's brand and applies the given flags to it; changed is false if there
// were none. It saves nothing.
func (c *brandFlags) withFlags(r *runner, a *app.Admin, merchant payment.ID) (b store.Brand, changed bool, err error) {
	if b, err = a.Store.Brand(r.ctx, merchant); err != nil {
		return b, false, err
	}
	changed, err = c.change(&b)
	return b, changed, err
}

// change applies the given flags and reports whether there were any.
func (c *brandFlags) change(b *store.Brand) (changed bool, err error) {
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
			return false, configError{fmt.Errorf("cannot read the logo: %w", err)}
		}
	}
	return true, nil
}
