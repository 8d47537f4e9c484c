package checkout

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

//go:embed assets/page.html
var pageText string

//go:embed assets/style.css
var styleText string

//go:embed assets/script.js
var scriptText string

// Style and script are inlined, so that the page is painted after one round
// trip; the policy allows them by their hashes.
var (
	style      = minify(styleText)
	script     = minify(scriptText)
	styleHash  = cspHash(style)
	scriptHash = cspHash(script)
	pages      = template.Must(template.New("page").Parse(pageText))
)

// minify removes indentation, empty lines and comment lines.
func minify(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "/*") && strings.HasSuffix(line, "*/") {
			continue
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// cspHash is the source expression of an inline text in a
// Content-Security-Policy.
func cspHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// setHeaders sets the headers of every response.
func setHeaders(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
}

// policy is the Content-Security-Policy of a page: inline styles and scripts by
// their hashes; images, events and forms from this origin only.
func policy(merchantHash string) string {
	return "default-src 'none'; style-src " + styleHash + " " + merchantHash + "; script-src " + scriptHash +
		"; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// document is the data of the template. Merchants' texts are strings here:
// html/template escapes them.
type document struct {
	*view

	Lang   string
	Base   string // path of the order's page; "" on a page without an order
	Style  template.CSS
	Accent template.CSS
	Script template.JS

	lang *language
}

// Text is a text in the page's language.
func (s *document) Text(key string, about ...string) string { return s.lang.text(key, about...) }

var (
	buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}
	gzips   = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
)

// acceptsGzip reports whether an Accept-Encoding header allows gzip; a weight
// of 0 refuses it (RFC 9110, section 12.5.3).
func acceptsGzip(header string) bool {
	for item := range strings.SplitSeq(header, ",") {
		coding, weight, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

// render responds with a page.
func (p *Pages) render(req *request, status int, kind string, data *view) {
	data.Kind = kind
	s := &document{view: data, lang: req.lang, Lang: req.lang.tag, Style: template.CSS(style), Script: template.JS(script)} //nolint:gosec // our own files
	hash := defaultAccentHash
	s.Accent = template.CSS(defaultAccent) //nolint:gosec // made of numbers
	if req.merchant != nil {
		s.Base, hash = pagePath+req.token, req.merchant.accentHash
		s.Accent = template.CSS(req.merchant.accentCSS) //nolint:gosec // made of numbers
	}
	body := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(body)
	body.Reset()
	if err := pages.Execute(body, s); err != nil {
		req.status = http.StatusInternalServerError
		p.log.Error("cannot render the page", "kind", kind, "cause", err)
		http.Error(req.w, http.StatusText(req.status), req.status)
		return
	}
	header := req.header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Language", req.lang.tag)
	header.Set("Content-Security-Policy", policy(hash))
	header.Set("Vary", "Accept-Language, Accept-Encoding")
	req.status = status
	if acceptsGzip(req.r.Header.Get("Accept-Encoding")) {
		compressed := buffers.Get().(*bytes.Buffer)
		defer buffers.Put(compressed)
		compressed.Reset()
		z := gzips.Get().(*gzip.Writer)
		defer gzips.Put(z)
		z.Reset(compressed)
		_, _ = z.Write(body.Bytes()) // writing to memory cannot fail
		_ = z.Close()
		header.Set("Content-Encoding", "gzip")
		body = compressed
	}
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	req.w.WriteHeader(status)
	_, _ = req.w.Write(body.Bytes()) // the client may have disconnected
}

var (
	defaultAccent     = accentCSS("")
	defaultAccentHash = cspHash(defaultAccent)
)
