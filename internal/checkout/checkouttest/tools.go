// Package checkouttest reads payers' pages and bills with independent programs:
// it prints them and reads their codes from the picture.
package checkouttest

import (
	"bytes"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Tool returns the path of a program that has one of the names, or ends the
// test as Missing does. `.ci/run` installs these programs.
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

// Missing ends a test that lacks a program: it skips on a developer's machine,
// and fails if browsers are required.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv("PORTEIRA_REQUIRE_BROWSER") == "1" {
		t.Fatal(what)
	}
	t.Skip(what + "; payers' pages are NOT tested here")
}

// Symbol is a code found in a picture.
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
	if err != nil && reader.ProcessState.ExitCode() != 4 { // 4: no code found
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

// Picture renders a PDF of one page as a PNG; it fails if there is a second
// page.
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

// Words extracts the text of a PDF with its layout.
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
