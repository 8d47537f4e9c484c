package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/merchant"
)

type merchantBrand struct {
	author

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
	return r.change(&root.Merchant.settings, &c.author, func(a *app.Admin) error {
		m, err := merchantNamed(r, a, c.Name)
		if err != nil {
			return err
		}
		update, err := c.update()
		if err != nil {
			return err
		}
		changed := update != nil
		if changed {
			if _, err := a.Merchants.Update(r.ctx, m.ID, merchant.Update{Brand: update}); err != nil {
				return err
			}
		}
		b, err := a.Store.Brand(r.ctx, m.ID)
		if err != nil {
			return err
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

// update is the change of the given flags; nil if there are none.
func (c *brandFlags) update() (u *merchant.BrandUpdate, err error) {
	if *c == (brandFlags{}) {
		return u, nil
	}
	u = &merchant.BrandUpdate{Title: c.Title, Document: c.Document, Color: c.Color}
	if c.Logo == nil {
		return u, nil
	}
	u.Logo = new([]byte)
	if *c.Logo != "" {
		if *u.Logo, err = os.ReadFile(*c.Logo); err != nil {
			return u, configError{fmt.Errorf("cannot read the logo: %w", err)}
		}
	}
	return u, nil
}
