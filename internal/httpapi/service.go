package httpapi

import (
	"net/http"

	"github.com/porteira/porteira/api"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/reference"
)

func (a *API) getContract(c *call) error { return c.shared(http.StatusOK, api.JSON()) }

func (a *API) getReference(c *call) error { return c.page(reference.Contract()) }

func (a *API) getErrorReference(c *call) error { return c.page(reference.Errors()) }

// page answers with a page for a browser, which all calls share.
func (c *call) page(page []byte, err error) error {
	if err != nil {
		return err
	}
	header := c.w.Header()
	header.Set("Content-Security-Policy", reference.Policy())
	header.Set("Referrer-Policy", "no-referrer")
	return c.sharedAs("text/html; charset=utf-8", http.StatusOK, page)
}

var healthy = []byte(`{"status":"ok"}`)

func (a *API) getHealth(c *call) error { return c.shared(http.StatusOK, healthy) }

func (a *API) getReadiness(c *call) error {
	if a.ready != nil {
		if err := a.ready(c.ctx); err != nil {
			return problem.New(problem.Unavailable, "The gateway is not ready.").With(err)
		}
	}
	return c.shared(http.StatusOK, healthy)
}

// receiveNotice passes a notice of a processor to its handler, which reads the
// request id from the header X-Request-Id of the answer.
func (a *API) receiveNotice(c *call) error {
	w := &statusWriter{ResponseWriter: c.w, status: http.StatusOK}
	defer func() { c.status = w.status }()
	a.inbound.ServeHTTP(w, c.r)
	return nil
}

// statusWriter records the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap serves [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
