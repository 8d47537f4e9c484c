package sandboxbank

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// requestLimit is the largest body that the bank reads, in bytes, and defenseLimit that of a
// defense with its files.
const (
	requestLimit = 64 << 10
	defenseLimit = 2 << 20
)

// readBody reads a body to its end: only then does the server notice that its
// client has disconnected.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limit := int64(requestLimit)
	if strings.HasSuffix(r.URL.Path, "/defense") {
		limit = defenseLimit
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, bankapi.CodeBodyTooLarge
	}
	if len(body) > 0 && !isJSON(r.Header) {
		return nil, bankapi.CodeMediaUnsupported
	}
	return body, nil
}

func isJSON(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && media == bankapi.JSONType
}

// decode reads strict JSON; no body at all is an empty object.
func (c *call) decode(into any) error {
	if len(c.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.body, into, json.RejectUnknownMembers(true)); err != nil {
		return bankapi.CodeRequestInvalid
	}
	return nil
}

// respond answers 200 with a body, or with the error's code.
func respond(w http.ResponseWriter, body any, err error) {
	if err == nil {
		write(w, http.StatusOK, encode(body))
		return
	}
	code, ok := errors.AsType[bankapi.Code](err)
	if !ok {
		code = bankapi.CodeInternal
	}
	write(w, code.Status(), encode(code.Problem()))
}

// respondHalf answers with half of a body. An error is answered in full.
func respondHalf(w http.ResponseWriter, body any, err error) {
	if err != nil {
		respond(w, nil, err)
		return
	}
	text := encode(body)
	write(w, http.StatusOK, text[:len(text)/2])
}

// respondStatus answers with a status that proves nothing.
func respondStatus(w http.ResponseWriter, status int) {
	write(w, status, encode(bankapi.CodeInternal.Problem()))
}

func encode(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(http.ErrAbortHandler) // the caller sees a broken connection: unknown
	}
	return text
}

func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", bankapi.JSONType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that disconnected will call again
}
