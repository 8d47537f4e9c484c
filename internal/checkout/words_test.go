package checkout_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/checkout"
)

// Every text exists once, in both languages, with the same number of
// placeholders, and is used.
func TestTextTable(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	sources := checkout.Template()
	for _, name := range files {
		if name == "words.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources += string(source)
	}
	composed := regexp.MustCompile(`^(invalid|failure|result|method|error)\.|\.(heading|lead)$`) // keys that are composed
	seen := map[string]bool{}
	for _, s := range checkout.Texts() {
		if seen[s.Key] || s.Portuguese == "" || s.English == "" {
			t.Errorf("%s is a duplicate or empty", s.Key)
		}
		seen[s.Key] = true
		if strings.Count(s.Portuguese, "{}") != strings.Count(s.English, "{}") {
			t.Errorf("%s has other placeholders in English", s.Key)
		}
		if !strings.Contains(sources, `"`+s.Key+`"`) && !composed.MatchString(s.Key) {
			t.Errorf("%s is unused", s.Key)
		}
	}
	for _, m := range regexp.MustCompile(`\.Text "([^"]+)"`).FindAllStringSubmatch(checkout.Template(), -1) {
		if !seen[m[1]] {
			t.Errorf("there is no text %s", m[1])
		}
	}
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "pt-BR", "pt-BR,pt;q=0.9,en;q=0.8": "pt-BR", "en": "en", "en-US,en;q=0.9": "en", "en;q=0.9,pt;q=0.8": "en", "en,pt": "pt-BR",
		"es-AR,es;q=0.9": "pt-BR", "es,en;q=0.5": "en", "de;q=x,en;q=7": "pt-BR", "*": "pt-BR", "en;q=0": "pt-BR", "EN-gb": "en", "en ;q=0.9, pt;q=0.1": "en",
	} {
		if got := checkout.Language(header); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

// Any colour of a merchant is legible on both themes, as text and as a button
// (WCAG 2.2, AA).
func TestAnyColorIsLegible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := fmt.Sprintf("#%06x", rapid.IntRange(0, 0xffffff).Draw(t, "color"))
		light, dark, onLight, onDark := checkout.Accents(c)
		for name, got := range map[string]float64{
			"on the page":           onLight,
			"on a panel":            checkout.Contrast(light, "#ffffff"),
			"white on a button":     checkout.Contrast("#ffffff", light),
			"on the dark panel":     onDark,
			"on the dark page":      checkout.Contrast(dark, "#131517"),
			"dark text on a button": checkout.Contrast("#131517", dark),
		} {
			if got < 4.5 {
				t.Errorf("%s, shown as %s and %s, has a contrast of %.2f %s", c, light, dark, got, name)
			}
		}
	})
}

func TestContrast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want float64
	}{{"#000000", "#ffffff", 21}, {"#777777", "#ffffff", 4.48}, {"#ff0000", "#ffffff", 4.00}, {"#123456", "#123456", 1}} {
		if got := checkout.Contrast(c.a, c.b); math.Abs(got-c.want) > 0.005 {
			t.Errorf("%s on %s: %.3f, want %.2f", c.a, c.b, got, c.want)
		}
	}
}
