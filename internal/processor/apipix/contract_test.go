package apipix

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// corrections are the defects of the official file, and what it means.
var corrections = []struct{ is, means string }{
	// Expressions in the form of another language.
	{`pattern: "/^\\d{11}$/"`, `pattern: "^\\d{11}$"`},
	// A list of payments requires the member of a list of charges.
	{"      title: \"Pix Consultados\"\n      required: [\"parametros\", \"cobs\"]", "      title: \"Pix Consultados\"\n      required: [\"parametros\", \"pix\"]"},
	// A webhook requires the receiver's document, where its example has the key.
	{`required: ["webhookUrl", "cnpj", "criacao"]`, `required: ["webhookUrl", "criacao"]`},
	// Expressions that any longer text fits, too.
	{`pattern: "[a-zA-Z0-9]{26,35}"`, `pattern: "^[a-zA-Z0-9]{26,35}$"`},
	{`pattern: "[a-zA-Z0-9]{32}"`, `pattern: "^[a-zA-Z0-9]{32}$"`},
	{`pattern: "[a-zA-Z0-9]{1,35}"`, `pattern: "^[a-zA-Z0-9]{1,35}$"`},
	{`pattern: "\\d{1,10}\\.\\d{2}"`, `pattern: "^\\d{1,10}\\.\\d{2}$"`},
}

// ours is what Efí documents beyond the standard, in the same form. Members that this driver
// does not use are left out.
const ours = `
openapi: 3.0.0
info: {title: Efí beyond the standard, version: "2026-11"}
paths:
  /v3/gn/pix/{idEnvio}:
    parameters: [{name: idEnvio, in: path, required: true, schema: {type: string, pattern: "^[a-zA-Z0-9]{1,35}$"}}]
    put:
      requestBody: {required: true, content: {application/json: {schema: {$ref: "#/components/schemas/newTransfer"}}}}
      responses:
        "201": {description: accepted, content: {application/json: {schema: {$ref: "#/components/schemas/accepted"}}}}
        "400": {$ref: "#/components/responses/named"}
        "403": {$ref: "#/components/responses/problem"}
        "404": {$ref: "#/components/responses/named"}
        "409": {$ref: "#/components/responses/named"}
        "422": {$ref: "#/components/responses/named"}
        "429": {$ref: "#/components/responses/problem"}
        "500": {$ref: "#/components/responses/problem"}
        "503": {$ref: "#/components/responses/problem"}
  /v2/gn/pix/enviados/id-envio/{idEnvio}:
    parameters: [{name: idEnvio, in: path, required: true, schema: {type: string, pattern: "^[a-zA-Z0-9]{1,35}$"}}]
    get:
      responses:
        "200": {description: found, content: {application/json: {schema: {$ref: "#/components/schemas/transfer"}}}}
        "404": {$ref: "#/components/responses/problem"}
        "429": {$ref: "#/components/responses/problem"}
        "500": {$ref: "#/components/responses/problem"}
        "503": {$ref: "#/components/responses/problem"}
  /v2/gn/pix/enviados:
    get:
      parameters:
        - {name: inicio, in: query, required: true, schema: {type: string, format: date-time}}
        - {name: fim, in: query, required: true, schema: {type: string, format: date-time}}
        - {name: paginacao.paginaAtual, in: query, schema: {type: integer, minimum: 0}}
        - {name: paginacao.itensPorPagina, in: query, schema: {type: integer, minimum: 1, maximum: 1000}}
      responses:
        "200":
          description: list
          content:
            application/json:
              schema:
                type: object
                required: [parametros, pix]
                properties:
                  parametros: {type: object, required: [inicio, fim, paginacao]}
                  pix: {type: array, items: {$ref: "#/components/schemas/transfer"}}
        "429": {$ref: "#/components/responses/problem"}
  /v2/gn/infracoes:
    get:
      parameters:
        - {name: inicio, in: query, required: true, schema: {type: string, format: date-time}}
        - {name: fim, in: query, required: true, schema: {type: string, format: date-time}}
        - {name: paginacao.paginaAtual, in: query, schema: {type: integer, minimum: 0}}
        - {name: paginacao.itensPorPagina, in: query, schema: {type: integer, minimum: 1, maximum: 1000}}
      responses:
        "200":
          description: list
          content:
            application/json:
              schema:
                type: object
                required: [parametros, infracoes]
                properties:
                  parametros: {type: object, required: [inicio, fim, paginacao]}
                  infracoes: {type: array, items: {$ref: "#/components/schemas/infraction"}}
        "403": {$ref: "#/components/responses/problem"}
        "429": {$ref: "#/components/responses/problem"}
        "500": {$ref: "#/components/responses/named"}
  /v2/gn/infracoes/{idInfracao}/defesa:
    parameters: [{name: idInfracao, in: path, required: true, schema: {type: string, minLength: 1}}]
    post:
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [analise, justificativa]
              additionalProperties: false
              properties: {analise: {type: string, enum: [aceito, rejeitado]}, justificativa: {type: string, minLength: 1}}
      responses:
        "200": {description: taken, content: {application/json: {schema: {$ref: "#/components/schemas/infraction"}}}}
        "400": {$ref: "#/components/responses/problem"}
        "404": {$ref: "#/components/responses/problem"}
        "409": {$ref: "#/components/responses/named"}
        "429": {$ref: "#/components/responses/problem"}
        "500": {$ref: "#/components/responses/problem"}
        "503": {$ref: "#/components/responses/problem"}
  /v2/gn/saldo:
    get:
      responses:
        "200":
          description: balance
          content:
            application/json:
              schema: {type: object, required: [saldo], properties: {saldo: {type: string, pattern: "^-?[0-9]+\\.[0-9]{2}$"}}}
        "429": {$ref: "#/components/responses/problem"}
components:
  responses:
    named: {description: an error of Efí, content: {application/json: {schema: {$ref: "#/components/schemas/named"}}}}
    problem: {description: RFC 7807, content: {application/problem+json: {schema: {$ref: "#/components/schemas/problem"}}}}
  schemas:
    amount: {type: string, pattern: "^[0-9]{1,10}\\.[0-9]{2}$"}
    named: {type: object, required: [nome, mensagem], additionalProperties: false, properties: {nome: {type: string}, mensagem: {type: string}}}
    problem: {type: object, required: [type, title, status], properties: {type: {type: string}, title: {type: string}, status: {type: integer}}}
    newTransfer:
      type: object
      required: [valor, pagador, favorecido]
      additionalProperties: false
      properties:
        valor: {$ref: "#/components/schemas/amount"}
        pagador: {type: object, required: [chave], additionalProperties: false, properties: {chave: {type: string, maxLength: 77}, infoPagador: {type: string, maxLength: 140}}}
        favorecido:
          type: object
          required: [chave]
          additionalProperties: false
          properties: {chave: {type: string, maxLength: 77}, cpf: {type: string, pattern: "^[0-9]{11}$"}, cnpj: {type: string, pattern: "^[0-9A-Z]{12}[0-9]{2}$"}}
    infraction:
      type: object
      required: [idInfracao, endToEndId, valor, razao, status]
      properties:
        idInfracao: {type: string}
        endToEndId: {type: string, pattern: "^[a-zA-Z0-9]{32}$"}
        valor: {$ref: "#/components/schemas/amount"}
        razao: {type: string}
        status: {type: string, enum: [ABERTA, ACEITA, CANCELADA_EFI, EM_DEFESA, REJEITADA]}
        dadosAnalise: {type: object, properties: {prazoFinalizacao: {type: string, format: date-time}}}
    status: {type: string, enum: [EM_PROCESSAMENTO, REALIZADO, NAO_REALIZADO]}
    accepted:
      type: object
      required: [idEnvio, e2eId, valor, horario, status]
      properties: {idEnvio: {type: string}, e2eId: {type: string, pattern: "^[a-zA-Z0-9]{32}$"}, valor: {$ref: "#/components/schemas/amount"}, horario: {type: object, required: [solicitacao]}, status: {$ref: "#/components/schemas/status"}}
    transfer:
      type: object
      required: [endToEndId, idEnvio, valor, chave, status, horario]
      properties:
        endToEndId: {type: string, pattern: "^[a-zA-Z0-9]{32}$"}
        idEnvio: {type: string, pattern: "^[a-zA-Z0-9]{1,35}$"}
        valor: {$ref: "#/components/schemas/amount"}
        chave: {type: string, maxLength: 77}
        status: {$ref: "#/components/schemas/status"}
        horario: {type: object, required: [solicitacao]}
    transferNotice:
      type: object
      required: [endToEndId, chave, tipo, status, valor, horario, gnExtras]
      properties:
        tipo: {type: string, enum: [SOLICITACAO]}
        status: {$ref: "#/components/schemas/status"}
        valor: {$ref: "#/components/schemas/amount"}
        gnExtras: {type: object, required: [idEnvio]}
`

// contracts are the official file and ours.
type contracts struct {
	official, efi *openapi3.T
	routes        []routers.Router
}

var loadContracts = sync.OnceValues(func() (*contracts, error) {
	text, err := os.ReadFile("testdata/bacen-pix-api.yaml")
	if err != nil {
		return nil, err
	}
	for _, c := range corrections {
		if !bytes.Contains(text, []byte(c.is)) {
			return nil, &correctionError{c.is}
		}
		text = bytes.ReplaceAll(text, []byte(c.is), []byte(c.means))
	}
	v := &contracts{}
	for _, from := range []struct {
		text []byte
		doc  **openapi3.T
	}{{text, &v.official}, {[]byte(ours), &v.efi}} {
		doc, err := openapi3.NewLoader().LoadFromData(from.text)
		if err != nil {
			return nil, err
		}
		doc.Servers = nil
		for path, item := range doc.Paths.Map() {
			if strings.Contains(path, "UrlAccessToken}") { // served to payers' banks, at other hosts
				doc.Paths.Delete(path)
				continue
			}
			item.Servers = nil
			for _, operation := range item.Operations() {
				operation.Servers, operation.Security = nil, nil
			}
		}
		router, err := legacy.NewRouter(doc, openapi3.DisableExamplesValidation(), openapi3.DisableSchemaDefaultsValidation())
		if err != nil {
			return nil, err
		}
		*from.doc, v.routes = doc, append(v.routes, router)
	}
	return v, nil
})

type correctionError struct{ is string }

func (e *correctionError) Error() string {
	return "the official file has changed: correct it no longer: " + e.is
}

// validator stands between the driver and a bank.
type validator struct {
	t    testing.TB
	next http.RoundTripper
	c    *contracts
}

func newValidator(t testing.TB, next http.RoundTripper) *validator {
	t.Helper()
	c, err := loadContracts()
	if err != nil {
		t.Fatal(err)
	}
	return &validator{t, next, c}
}

// RoundTrip implements [http.RoundTripper].
func (v *validator) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/oauth/token") {
		return v.next.RoundTrip(r)
	}
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(sent))
	answer, err := v.next.RoundTrip(again)
	if err != nil {
		v.check(r, sent, nil, nil)
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	v.check(r, sent, answer, body)
	return answer, err
}

// check checks a request against the file that has its route, and its answer, if there is one
// that is whole.
func (v *validator) check(r *http.Request, sent []byte, answer *http.Response, body []byte) {
	v.t.Helper()
	asked := r.Clone(context.Background())
	asked.Body = io.NopCloser(bytes.NewReader(sent))
	router := v.c.routes[1]
	if !strings.Contains(r.URL.Path, "/gn/") {
		router = v.c.routes[0]
		asked.URL.Path = strings.TrimPrefix(r.URL.Path, "/v2")
	}
	route, parameters, err := router.FindRoute(asked)
	if err != nil {
		v.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		return
	}
	input := &openapi3filter.RequestValidationInput{
		Request: asked, PathParams: parameters, Route: route,
		Options: &openapi3filter.Options{MultiError: true, IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
		v.t.Errorf("request %s %s: %v\n%s", r.Method, r.URL, err, sent)
	}
	if answer == nil || !jsontext.Value(body).IsValid() && len(body) > 0 || v.beyond(r, answer.StatusCode, body) {
		return
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.StatusCode, Header: answer.Header,
		Body: io.NopCloser(bytes.NewReader(body)), Options: input.Options,
	})
	if err != nil {
		v.t.Errorf("answer %d to %s %s: %v\n%s", answer.StatusCode, r.Method, r.URL, err, body)
	}
}

// beyond reports whether an answer is one that the standard does not list for its routes, and
// that Efí documents, or is of OAuth or of any server.
func (v *validator) beyond(r *http.Request, status int, body []byte) bool {
	switch {
	case status == http.StatusUnauthorized:
		return true
	case strings.Contains(r.URL.Path, "/gn/"):
		return false
	case status == http.StatusConflict:
		v.matches("named", body)
		return true
	case status == http.StatusTooManyRequests || status >= 500:
		v.matches("problem", body)
		return true
	default:
		return false
	}
}

func (v *validator) matches(schema string, body []byte) {
	v.t.Helper()
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		v.t.Errorf("%s: %v", schema, err)
		return
	}
	if err := v.c.efi.Components.Schemas[schema].Value.VisitJSON(value); err != nil {
		v.t.Errorf("%s: %v\n%s", schema, err, body)
	}
}

// notice checks a notice: its payments against the official file, transfers against ours.
func (v *validator) notice(body []byte) {
	v.t.Helper()
	var n struct {
		Entries []map[string]any `json:"pix"`
	}
	if err := json.Unmarshal(body, &n); err != nil {
		v.t.Errorf("notice: %v", err)
		return
	}
	for _, entry := range n.Entries {
		schema := v.c.official.Components.Schemas["Pix"].Value
		if entry["tipo"] != nil {
			schema = v.c.efi.Components.Schemas["transferNotice"].Value
		}
		if err := schema.VisitJSON(entry); err != nil {
			v.t.Errorf("notice: %v\n%s", err, body)
		}
	}
}
