package flow

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/jpeg" // a form that a logo may have
	_ "image/png"  // another
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/taxid"
)

// Limits of what payers see of a merchant.
const (
	brandTitleMax = 60       // characters
	LogoBytesMax  = 32 << 10 // a page with everything stays small
	logoSideMax   = 1024     // pixels
)

// colorForm is how a colour is written: it goes into a style sheet as it is.
var colorForm = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// SaveBrand checks and keeps what payers see of a merchant. Errors: problem
// kind validation_failed.
func (f *Flow) SaveBrand(ctx context.Context, b store.Brand) error {
	b.Title, b.Color = strings.TrimSpace(b.Title), strings.ToLower(b.Color)
	faulty := func(format string, args ...any) error {
		return problem.New(problem.ValidationFailed, fmt.Sprintf(format, args...))
	}
	if utf8.RuneCountInString(b.Title) > brandTitleMax || strings.ContainsFunc(b.Title, unicode.IsControl) || !utf8.ValidString(b.Title) {
		return faulty("The title must have at most %d characters, without control characters.", brandTitleMax)
	}
	if b.Color != "" && !colorForm.MatchString(b.Color) {
		return faulty("The colour must have the form #rrggbb.")
	}
	if b.Document != "" && !taxid.ValidCPF(b.Document) && !taxid.ValidCNPJ(b.Document) {
		return faulty("The document must be a valid CPF (11 digits) or CNPJ (14 characters), without punctuation.")
	}
	b.LogoType = ""
	if len(b.Logo) > 0 {
		if len(b.Logo) > LogoBytesMax {
			return faulty("The logo must have at most %d KiB.", LogoBytesMax>>10)
		}
		c, form, err := image.DecodeConfig(bytes.NewReader(b.Logo))
		if err != nil || c.Width < 1 || c.Height < 1 || c.Width > logoSideMax || c.Height > logoSideMax {
			return faulty("The logo must be a PNG or JPEG of at most %d pixels per side.", logoSideMax)
		}
		b.LogoType = "image/" + form
	}
	return f.write(ctx, func(tx *store.Tx) error { return tx.SaveBrand(ctx, b) })
}
