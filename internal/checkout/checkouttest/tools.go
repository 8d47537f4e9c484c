// Package checkouttest looks at payers' pages and bills as payers do: it prints
// them, and reads their codes from the picture with programs that are not ours.
package checkouttest

import (
	"bytes"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Tool finds a program, under any of its names, or ends the test as Missing
// does; `.ci/run` installs what it takes.
func Tool(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, names[0]+" is not installed")
	return ""
}

// Missing ends a test that lacks something: a skip on a developer's machine, a
// failure where browsers are required.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv("PORTEIRA_REQUIRE_BROWSER") == "1" {
		t.Fatal(what)
	}
	t.Skip(what + "; payers' pages are NOT tested here")
}

// Symbol is a code that was found in a picture.
type Symbol struct {
	Kind string // "QR-Code" or "I2/5"
	Text string
}

// Symbols reads every QR code and bar code of a PNG.
func Symbols(t testing.TB, png []byte) []Symbol {
	t.Helper()
	name := filepath.Join(t.TempDir(), "picture.png")
	if err := os.WriteFile(name, png, 0o600); err != nil {
		t.Fatal(err)
	}
	reader := exec.CommandContext(t.Context(), Tool(t, "zbarimg"), "--quiet", "--xml", "-S*.disable", "-Sqrcode.enable", "-Si25.enable", name)
	output, err := reader.Output()
	if err != nil && reader.ProcessState.ExitCode() != 4 { // 4: nothing was found
		t.Fatalf("zbarimg: %v", err)
	}
	var read struct {
		Symbols []struct {
			Kind string `xml:"type,attr"`
			Data string `xml:"data"`
		} `xml:"source>index>symbol"`
	}
	if err := xml.Unmarshal(output, &read); err != nil && len(output) > 0 {
		t.Fatalf("zbarimg: %v: %s", err, output)
	}
	var symbols []Symbol
	for _, symbol := range read.Symbols {
		symbols = append(symbols, Symbol{symbol.Kind, symbol.Data})
	}
	return symbols
}

// Picture prints a PDF of one page as a PNG; a second page is a failure.
func Picture(t testing.TB, pdf []byte, dotsPerInch string) []byte {
	t.Helper()
	folder := t.TempDir()
	printer := exec.CommandContext(t.Context(), Tool(t, "pdftoppm"), "-png", "-r", dotsPerInch, "-", filepath.Join(folder, "page"))
	printer.Stdin = bytes.NewReader(pdf)
	if output, err := printer.CombinedOutput(); err != nil || len(output) > 0 {
		t.Fatalf("pdftoppm: %v: %s", err, output)
	}
	pages, err := filepath.Glob(filepath.Join(folder, "page*.png"))
	if err != nil || len(pages) != 1 {
		t.Fatalf("%d pages, want one (%v)", len(pages), err)
	}
	png, err := os.ReadFile(pages[0])
	if err != nil {
		t.Fatal(err)
	}
	return png
}

// Words extracts the text of a PDF in its layout.
func Words(t testing.TB, pdf []byte) string {
	t.Helper()
	reader := exec.CommandContext(t.Context(), Tool(t, "pdftotext"), "-layout", "-", "-")
	reader.Stdin = bytes.NewReader(pdf)
	output, err := reader.Output()
	if err != nil {
		t.Fatalf("pdftotext: %v", err)
	}
	return string(output)
}
