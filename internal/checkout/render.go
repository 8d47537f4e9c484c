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

// Style and script stand in the page itself, so that it is painted after one
// round trip; the policy names them by their hash.
var (
	style      = squeeze(styleText)
	script     = squeeze(scriptText)
	styleHash  = hashOf(style)
	scriptHash = hashOf(script)
	pages      = template.Must(template.New("page").Parse(pageText))
)

// squeeze takes indentation and empty lines away, and the lines that are
// comments.
func squeeze(text string) string {
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

// hashOf names an inline text as a Content-Security-Policy does.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// setHeaders sets what every answer has, page or not.
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

// policy is what a page may do: what stands in it by its hash, pictures and
// news from this origin, forms to it.
func policy(merchantHash string) string {
	return "default-src 'none'; style-src " + styleHash + " " + merchantHash + "; script-src " + scriptHash +
		"; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// sheet is all that a page is made of. What comes from merchants is text here,
// and html/template makes it harmless.
type sheet struct {
	*view

	Lang   string
	Base   string // of the order's addresses; "" on a page of no order
	Style  template.CSS
	Accent template.CSS
	Script template.JS

	lang *language
}

// Say is a sentence of the page's language.
func (s *sheet) Say(key string, about ...string) string { return s.lang.say(key, about...) }

var (
	buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}
	gzips   = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
)

// takesGzip says whether the browser takes gzip, which it may also refuse by a
// weight of 0 (RFC 9110, section 12.5.3).
func takesGzip(header string) bool {
	for item := range strings.SplitSeq(header, ",") {
		coding, weight, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

// show answers with a page.
func (p *Pages) show(v *visit, status int, kind string, shown *view) {
	shown.Kind = kind
	s := &sheet{view: shown, lang: v.lang, Lang: v.lang.tag, Style: template.CSS(style), Script: template.JS(script)} //nolint:gosec // our own files
	hash := defaultAccentHash
	s.Accent = template.CSS(defaultAccent) //nolint:gosec // made of numbers
	if v.merchant != nil {
		s.Base, hash = pagePath+v.token, v.merchant.hash
		s.Accent = template.CSS(v.merchant.rules) //nolint:gosec // made of numbers
	}
	body := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(body)
	body.Reset()
	if err := pages.Execute(body, s); err != nil {
		v.status = http.StatusInternalServerError
		p.log.Error("page cannot be made", "kind", kind, "cause", err)
		http.Error(v.w, http.StatusText(v.status), v.status)
		return
	}
	header := v.header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Language", v.lang.tag)
	header.Set("Content-Security-Policy", policy(hash))
	header.Set("Vary", "Accept-Language, Accept-Encoding")
	v.status = status
	if takesGzip(v.r.Header.Get("Accept-Encoding")) {
		squeezed := buffers.Get().(*bytes.Buffer)
		defer buffers.Put(squeezed)
		squeezed.Reset()
		z := gzips.Get().(*gzip.Writer)
		defer gzips.Put(z)
		z.Reset(squeezed)
		_, _ = z.Write(body.Bytes()) // memory takes it
		_ = z.Close()
		header.Set("Content-Encoding", "gzip")
		body = squeezed
	}
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	v.w.WriteHeader(status)
	_, _ = v.w.Write(body.Bytes()) // the caller may have gone
}

var (
	defaultAccent     = accentRules("")
	defaultAccentHash = hashOf(defaultAccent)
)
