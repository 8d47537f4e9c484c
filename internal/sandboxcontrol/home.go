package sandboxcontrol

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/env"
)

//go:embed home.html
var homeText string

//go:embed home.css
var homeStyle string

var (
	homePage  = template.Must(template.New("home").Parse(homeText))
	styleHash = sha256.Sum256([]byte(homeStyle))
	// homePolicy allows the page its own style, and forms to this origin.
	homePolicy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(styleHash[:]) + "'" +
		"; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

// pathNewPix is the path to which the button of the home page posts.
const pathNewPix = "/sandbox/home/pix"

// Home is the first page of a sandbox in a browser: what runs here, the credentials,
// and a button that makes a Pix and opens its page. Other clients get the API's
// answer.
type Home struct {
	// API serves everything else; the button calls it as a merchant's program does.
	API http.Handler
	Env env.Env
	Log *slog.Logger
	// BaseURL is the address of the API, for the commands that the page shows;
	// MetricsURL is the address of the metrics.
	BaseURL, MetricsURL string
	Key, Secret         string // of the sandbox's merchant
	// WebhookSecret reads the merchant's webhook secret, which can rotate.
	WebhookSecret func(context.Context) (string, error)
	Version       string
}

// Handler returns the home page in front of the API.
func (h *Home) Handler() http.Handler {
	create := http.NewCrossOriginProtection().Handler(http.HandlerFunc(h.createPix))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html"):
			h.show(w, r, http.StatusOK, "")
		case r.URL.Path == pathNewPix && r.Method == http.MethodPost:
			create.ServeHTTP(w, r)
		default:
			h.API.ServeHTTP(w, r)
		}
	})
}

// homeView is the data of the page.
type homeView struct {
	*Home

	Style         template.CSS
	English       bool
	Action        string
	Problem       string // why the button failed; "" if it did not
	WebhookSecret string
}

func (h *Home) show(w http.ResponseWriter, r *http.Request, status int, problem string) {
	var page bytes.Buffer
	secret, err := h.WebhookSecret(r.Context())
	if err == nil {
		view := homeView{h, template.CSS(homeStyle), checkout.PrefersEnglish(r.Header.Get("Accept-Language")), pathNewPix, problem, secret}
		err = homePage.Execute(&page, view)
	}
	if err != nil {
		h.Log.ErrorContext(r.Context(), "cannot render the home page", "cause", err)
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", homePolicy)
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept, Accept-Language")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Robots-Tag", "noindex, nofollow")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w) // the browser may have disconnected
}

// pixRequest is the body of the button's POST /payin; %x makes its reference new.
const pixRequest = `{"paymentMethod":"PIX","amount":1290,"referenceId":"home-%x","description":"Café e pão de queijo",` +
	`"customer":{"name":"Maria da Silva","document":"52998224725"},` +
	`"items":[{"title":"Café","quantity":1,"unitPrice":690,"tangible":true},{"title":"Pão de queijo","quantity":2,"unitPrice":300,"tangible":true}]}`

// createPix creates a pay-in by the API and redirects to its page.
func (h *Home) createPix(w http.ResponseWriter, r *http.Request) {
	body := fmt.Sprintf(pixRequest, h.Env.IDs.NewID(h.Env.Clock.Now()))
	request := r.Clone(r.Context())
	request.URL.Path, request.URL.RawPath, request.URL.RawQuery = "/payin", "", ""
	request.Header = http.Header{
		"Content-Type": {"application/json"}, "X-Api-Key": {h.Key}, "X-Api-Secret": {h.Secret},
	}
	request.Body, request.ContentLength, request.TransferEncoding = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
	answer := &recorder{header: http.Header{}}
	h.API.ServeHTTP(answer, request)
	var order struct {
		CheckoutURL string `json:"checkoutUrl"`
		Detail      string `json:"detail"` // of a problem
	}
	if err := json.Unmarshal(answer.body.Bytes(), &order); err != nil || order.CheckoutURL == "" {
		h.show(w, r, http.StatusServiceUnavailable, order.Detail)
		return
	}
	http.Redirect(w, r, order.CheckoutURL, http.StatusSeeOther)
}

// recorder keeps an answer of the API.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (r *recorder) Header() http.Header { return r.header }

// Write implements [http.ResponseWriter].
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// WriteHeader implements [http.ResponseWriter]; the status is not used.
func (r *recorder) WriteHeader(int) {}
