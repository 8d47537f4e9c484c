package apipixface

import (
	"cmp"
	"net/http"
)

// fault is an error answer: by default of the standard (RFC 7807), else of Efí or OAuth.
type fault struct {
	status   int
	kind     string // the last part of the standard's type
	title    string
	property string // that is violated
	name     string // of an error of Efí
	message  string // of an error of Efí; "" is a general one
	oauth    string
	wait     string // Retry-After
}

// Error implements error.
func (f *fault) Error() string { return "apipixface: " + f.kind + f.name + f.oauth }

func invalid(kind, property string) *fault {
	return &fault{status: http.StatusBadRequest, kind: kind, title: "Requisição inválida", property: property}
}

func missing(kind string) error {
	return &fault{status: http.StatusNotFound, kind: kind, title: "Não encontrado"}
}

// named is an error of Efí.
func named(status int, name string) error { return &fault{status: status, name: name} }

func serverFault(status int) *fault {
	kinds := map[int]string{http.StatusServiceUnavailable: "ServicoIndisponivel", http.StatusGatewayTimeout: "IndisponibilidadePorTempoEsgotado"}
	kind := kinds[status]
	if kind == "" {
		status, kind = http.StatusInternalServerError, "ErroInternoDoServidor"
	}
	return &fault{status: status, kind: kind, title: "Erro do servidor"}
}

// problem is Problema.
type problem struct {
	Type       string      `json:"type"`
	Title      string      `json:"title"`
	Status     int         `json:"status"`
	Detail     string      `json:"detail"`
	Violations []violation `json:"violacoes,omitempty"`
}

type violation struct {
	Reason   string `json:"razao"`
	Property string `json:"propriedade"`
}

// namedProblem is an error of Efí.
type namedProblem struct {
	Name    string `json:"nome"`
	Message string `json:"mensagem"`
}

const problemPrefix = "https://pix.bcb.gov.br/api/v2/error/"

func writeFault(w http.ResponseWriter, f *fault) {
	if f.wait != "" {
		w.Header().Set("Retry-After", f.wait)
	}
	switch {
	case f.oauth != "":
		write(w, f.status, "application/json", encode(oauthFault{f.oauth}))
	case f.name != "":
		write(w, f.status, "application/json", encode(namedProblem{f.name, cmp.Or(f.message, "A requisição não pode ser atendida")}))
	default:
		body := problem{Type: problemPrefix + f.kind, Title: f.title, Status: f.status, Detail: f.title + "."}
		if f.property != "" {
			body.Violations = []violation{{Reason: "O valor não é aceito", Property: f.property}}
		}
		write(w, f.status, "application/problem+json", encode(body))
	}
}
