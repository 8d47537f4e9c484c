// Package reference renders the contract of the API, and the page about its errors, for a browser.
//
// The pages need no network: they have their own style, no script, and no link that leaves the
// gateway.
package reference

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"sync"

	"github.com/porteira/porteira/api"
	"github.com/porteira/porteira/docs"
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

var page = template.Must(template.New("page").Parse(pageText))

// Policy is the Content-Security-Policy of the pages: it allows their style and nothing else.
func Policy() string {
	hash := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// Contract is the page of the contract, and Errors that of the error codes. Both are rendered
// once, from what the program was built with. They must not be changed.
var (
	Contract = sync.OnceValues(func() ([]byte, error) { return renderContract(api.JSON()) })
	Errors   = sync.OnceValues(func() ([]byte, error) { return render("errors", "Errors", markdown(string(docs.Errors()))) })
)

func renderContract(text []byte) ([]byte, error) {
	d, err := parse(text)
	if err != nil {
		return nil, err
	}
	v, err := d.view()
	if err != nil {
		return nil, err
	}
	return render("contract", v.Title, v)
}

func render(name, title string, data any) ([]byte, error) {
	var out bytes.Buffer
	if err := page.ExecuteTemplate(&out, name, map[string]any{"Title": title, "Style": template.CSS(style), "Data": data}); err != nil {
		return nil, fmt.Errorf("page %s: %w", name, err)
	}
	return out.Bytes(), nil
}
