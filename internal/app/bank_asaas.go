package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/asaasface"
)

// asaasFolder has the files of the bank's face as Asaas.
const asaasFolder = "asaas"

// AsaasBank is what an account at the bank's face as Asaas needs.
type AsaasBank struct {
	BaseURL    string `json:"baseUrl"`
	KeyFile    string `json:"apiKeyFile"`
	TokenFile  string `json:"noticeTokenFile"`
	RootFile   string `json:"caFile"`
	PanelURL   string `json:"panelUrl"` // what Asaas has in its panel
	SandboxURL string `json:"sandboxUrl"`
}

// AccountAdd is the command that adds an account, for a shell.
func (b *AsaasBank) AccountAdd(name string) string {
	return fmt.Sprintf("porteira account add %s --driver asaas --set base-url=%s --secret %s --secret %s --secret %s", name, b.BaseURL,
		Quoted("api-key=@"+b.KeyFile), Quoted("notice-token=@"+b.TokenFile), Quoted("ca=@"+b.RootFile))
}

// Quoted is a word for a shell.
func Quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// asaasServer serves the bank's face as Asaas. The zero value serves nothing.
type asaasServer struct {
	AsaasBank

	face     *asaasface.Face
	listener net.Listener
	server   *http.Server
}

// openAsaas opens the face, if the configuration has an address for it.
func openAsaas(ctx context.Context, cfg *config.Config, inside *sandboxbank.Bank, relay *asaasface.Relay, w env.Env, log *slog.Logger) (*asaasServer, error) {
	if cfg.BankAsaas == "" {
		return &asaasServer{}, nil
	}
	dir, err := filepath.Abs(filepath.Join(cfg.Data, asaasFolder))
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(cfg.BankAsaas)
	if err != nil {
		return nil, err
	}
	files, err := asaasface.OpenFolder(dir, host, w)
	if err != nil {
		return nil, err
	}
	contract, err := inside.Contract(asaasface.ContractRepeat, asaasface.ContractName)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", cfg.BankAsaas)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w: choose another address with --asaas", cfg.BankAsaas, err)
	}
	base := "https://" + strings.TrimPrefix(localURL(listener.Addr()), "http://")
	face, err := asaasface.Open(asaasface.Options{
		Bank: contract, Key: files.Key, Path: files.Book(), Notify: w.Processor, BaseURL: base, Log: log,
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	relay.Serve(face)
	return &asaasServer{
		AsaasBank: AsaasBank{
			BaseURL: base + "/v3", PanelURL: base + "/panel", SandboxURL: base + "/v3/sandbox",
			KeyFile: files.KeyFile(), TokenFile: files.TokenFile(), RootFile: files.RootFile(),
		},
		face: face, listener: tls.NewListener(listener, files.TLS()), server: httpapi.Server(face.Handler(), log),
	}, nil
}

func (s *asaasServer) serve() error { return s.server.Serve(s.listener) }

// close ends the server and closes the book; the face's bank outlives it.
func (s *asaasServer) close() error {
	if s.listener == nil {
		return nil
	}
	return errors.Join(s.server.Close(), s.face.Close())
}
