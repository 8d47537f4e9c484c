// Command slowbank is a bank of the API Pix that answers slowly, or never, to measure a gateway.
//
//	go run ./slowbank -data DIR -after 200ms
//	go run ./slowbank -data OTHER -listen 127.0.0.1:9444 -after -1s
//
// It makes charges and nothing else, over TLS with client certificates, keeps nothing, and
// prints the command that connects it. At the end it prints how many charges it made, and the
// most calls that were in flight at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/sandboxbank/apipixface"
)

// options are the flags.
type options struct {
	listen string
	data   string        // folder of the certificates
	after  time.Duration // how long an answer takes; negative: there is none
}

func main() {
	var o options
	flag.StringVar(&o.listen, "listen", "127.0.0.1:9443", "`address`")
	flag.StringVar(&o.data, "data", "", "`folder` of the certificates; it is created")
	flag.DurationVar(&o.after, "after", 200*time.Millisecond, "how long an answer takes; negative for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "slowbank:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.data == "" || flag.NArg() > 0 {
		return errors.New("-data is required: -h lists the flags")
	}
	w := env.System(env.OutboundOptions{})
	folder, err := filepath.Abs(o.data)
	if err != nil {
		return err
	}
	a, err := apipixface.OpenAuthority(folder, "", w.Clock, w.Random)
	if err != nil {
		return err
	}
	b := &bank{after: o.after, clock: w.Clock}
	server := &http.Server{Addr: o.listen, Handler: b.handler(), TLSConfig: a.ServerConfig(), ReadHeaderTimeout: 10 * time.Second}
	fmt.Printf("porteira account add NAME --driver apipix --set profile=efi --set base-url=https://%s --set client-id=%s --set pix-key=%s --secret client-secret=@%s --secret certificate=@%s --secret ca=@%s\n",
		o.listen, apipixface.ClientID, apipixface.Key, a.SecretFile(), a.ClientFile(), a.CAFile())
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServeTLS("", "") }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	fmt.Printf("%d charges, %d other calls, at most %d calls in flight\n", b.charges.Load(), b.others.Load(), b.most.Load())
	return server.Close()
}

// bank answers calls.
type bank struct {
	after time.Duration
	clock env.Clock

	charges, others, inFlight, most atomic.Int64
}

func (b *bank) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, _ *http.Request) {
		b.others.Add(1)
		answer(w, http.StatusOK, map[string]any{"access_token": "slowbank", "token_type": "Bearer", "expires_in": 3600})
	})
	mux.HandleFunc("PUT /v2/cob/{txid}", b.charge)
	for path, list := range map[string]string{"GET /v2/pix": "pix", "GET /v2/gn/pix/enviados": "pix", "GET /v2/cob": "cobs"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			b.others.Add(1)
			pages := map[string]any{"paginaAtual": 0, "itensPorPagina": 100, "quantidadeDePaginas": 1, "quantidadeTotalDeItens": 0}
			span := map[string]any{"inicio": r.FormValue("inicio"), "fim": r.FormValue("fim"), "paginacao": pages}
			answer(w, http.StatusOK, map[string]any{"parametros": span, list: []any{}}) //nolint:misspell // it is Portuguese
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		b.others.Add(1)
		w.WriteHeader(http.StatusNotFound)
	})
	return mux
}

// charge makes a charge, after a while.
func (b *bank) charge(w http.ResponseWriter, r *http.Request) {
	now := b.inFlight.Add(1)
	defer b.inFlight.Add(-1)
	for most := b.most.Load(); now > most && !b.most.CompareAndSwap(most, now); most = b.most.Load() {
	}
	var in struct {
		Calendar map[string]any `json:"calendario"`
		Value    map[string]any `json:"valor"`
		Key      string         `json:"chave"`
	}
	if err := json.UnmarshalRead(r.Body, &in); err != nil || in.Calendar == nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if b.after < 0 {
		<-r.Context().Done()
		return
	}
	timer := b.clock.NewTimer(b.after)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-r.Context().Done():
		return
	}
	b.charges.Add(1)
	in.Calendar["criacao"] = b.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	txid := r.PathValue("txid")
	answer(w, http.StatusCreated, map[string]any{
		"calendario": in.Calendar, "valor": in.Value, "chave": in.Key, "txid": txid, "revisao": 0, "status": "ATIVA",
		"location": "pix.slowbank.invalid/qr/v2/" + txid,
	})
}

func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a caller that disconnected will call again
}
