package merchant

import (
	"bytes"
	"fmt"
	"image"
	_ "image/jpeg" // a logo may be a JPEG
	_ "image/png"  // or a PNG
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/taxid"
)

// Limits of a merchant's brand.
const (
	brandTitleMax = 60       // characters
	LogoBytesMax  = 32 << 10 // keeps the complete page small
	logoSideMax   = 1024     // pixels
)

// colorForm is the form of a colour, which is copied into a style sheet.
var colorForm = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// tidyBrand normalizes and validates a brand. Errors: problem kind validation_failed.
func tidyBrand(b *store.Brand) error {
	b.Title, b.Color = strings.TrimSpace(b.Title), strings.ToLower(b.Color)
	invalid := func(format string, args ...any) error {
		return problem.New(problem.ValidationFailed, fmt.Sprintf(format, args...))
	}
	if utf8.RuneCountInString(b.Title) > brandTitleMax || strings.ContainsFunc(b.Title, unicode.IsControl) || !utf8.ValidString(b.Title) {
		return invalid("The title must have at most %d characters, without control characters.", brandTitleMax)
	}
	if b.Color != "" && !colorForm.MatchString(b.Color) {
		return invalid("The colour must have the form #rrggbb.")
	}
	if b.Document != "" && !taxid.ValidCPF(b.Document) && !taxid.ValidCNPJ(b.Document) {
		return invalid("The document must be a valid CPF (11 digits) or CNPJ (14 characters), without punctuation.")
	}
	b.LogoType = ""
	if len(b.Logo) > 0 {
		if len(b.Logo) > LogoBytesMax {
			return invalid("The logo must have at most %d KiB.", LogoBytesMax>>10)
		}
		c, form, err := image.DecodeConfig(bytes.NewReader(b.Logo))
		if err != nil || c.Width < 1 || c.Height < 1 || c.Width > logoSideMax || c.Height > logoSideMax {
			return invalid("The logo must be a PNG or JPEG of at most %d pixels per side.", logoSideMax)
		}
		b.LogoType = "image/" + form
	}
	return nil
}
