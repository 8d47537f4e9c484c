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
	"github.com/porteira/porteira/internal/processor/apipix"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/apipixface"
)

// The files of the API Pix of a sandbox bank, in its folder.
const (
	apiPixFolder = "api-pix" // certificates
	apiPixNotes  = "api-pix.notes"
)

// APIPixBank is what a gateway needs for an account at a sandbox bank's API Pix.
type APIPixBank struct {
	BaseURL     string `json:"baseUrl"`
	ClientID    string `json:"clientId"`
	PIXKey      string `json:"pixKey"`
	SecretFile  string `json:"secretFile"`
	Certificate string `json:"certificateFile"`
	CA          string `json:"caFile"`
	// Control is the path of the bank's own protocol for this account, which forces outcomes.
	Control string `json:"controlPath"`
}

// AccountAdd is the command that adds an account at the bank, in the shell's words.
func (b *APIPixBank) AccountAdd(name string) string {
	return strings.Join([]string{
		"porteira account add", name, "--driver", apipix.Name, "--set", apipix.SettingProfile + "=" + apipix.ProfileEfi,
		"--set", apipix.SettingBaseURL + "=" + b.BaseURL, "--set", apipix.SettingClientID + "=" + b.ClientID,
		"--set", apipix.SettingPIXKey + "=" + b.PIXKey, "--secret", Quoted(apipix.SecretClient + "=@" + b.SecretFile),
		"--secret", Quoted(apipix.SecretCertificate + "=@" + b.Certificate), "--secret", Quoted(apipix.SecretCA + "=@" + b.CA),
	}, " ")
}

// bankAPIPix serves a sandbox bank as one of the API Pix.
type bankAPIPix struct {
	authority *apipixface.Authority
	face      *apipixface.Face
	listener  net.Listener
	server    *http.Server
}

// openAPIPix listens, so that nothing is served yet; nil if the configuration has none.
func openAPIPix(ctx context.Context, cfg *config.Config, w env.Env, log *slog.Logger) (_ *bankAPIPix, err error) {
	if cfg.APIPix == "" {
		return nil, nil //nolint:nilnil // its methods accept nil
	}
	host, _, err := net.SplitHostPort(cfg.APIPix)
	if err != nil {
		return nil, fmt.Errorf("api-pix: %w", err)
	}
	folder, err := filepath.Abs(filepath.Join(cfg.Data, apiPixFolder)) // the printed command has it
	if err != nil {
		return nil, fmt.Errorf("api-pix: %w", err)
	}
	v := &bankAPIPix{}
	if v.authority, err = apipixface.OpenAuthority(folder, host, w.Clock, w.Random); err != nil {
		return nil, err
	}
	v.face, err = apipixface.New(apipixface.Options{
		Path: filepath.Join(cfg.Data, apiPixNotes), BankURL: sandboxbank.InProcessURL, BankSecret: cfg.BankSecret.Reveal(),
		Secret: v.authority.Secret, Clock: w.Clock, Random: w.Random, Webhooks: w.Processor, Certificate: &v.authority.Notice,
	})
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	plain, err := lc.Listen(ctx, "tcp", cfg.APIPix)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot listen on %s: %w: choose another address with --api-pix", cfg.APIPix, err), v.face.Close())
	}
	v.listener = tls.NewListener(plain, v.authority.ServerConfig())
	v.server = httpapi.Server(v.face.Handler(), log)
	return v, nil
}

// notify makes the bank send its notices through the face.
func (v *bankAPIPix) notify(o *sandboxbank.Options) {
	if v != nil {
		o.Notify = v.face.Notify(o.Notify)
	}
}

// serve serves the bank until the server is closed.
func (v *bankAPIPix) serve(b *sandboxbank.Bank, failed chan<- error) error {
	if v == nil {
		return nil
	}
	contract, err := b.Contract(apipixface.Repeat, apipixface.Contract)
	if err != nil {
		return fmt.Errorf("open the contract of the API Pix: %w", err)
	}
	contract.SetNotifyURL(apipixface.NotifyURL)
	v.face.Connect(contract)
	go func() { failed <- v.server.Serve(v.listener) }()
	return nil
}

// account is what a gateway needs for an account.
func (v *bankAPIPix) account() APIPixBank {
	return APIPixBank{
		BaseURL: "https" + strings.TrimPrefix(localURL(v.listener.Addr()), "http"), ClientID: apipixface.ClientID, PIXKey: apipixface.Key,
		SecretFile: v.authority.SecretFile(), Certificate: v.authority.ClientFile(), CA: v.authority.CAFile(),
		Control: apipixface.ControlPath(),
	}
}

func (v *bankAPIPix) drain(ctx context.Context) error {
	if v == nil {
		return nil
	}
	return drain(ctx, v.server)
}

// close ends the server at once, and closes the files.
func (v *bankAPIPix) close() error {
	if v == nil {
		return nil
	}
	_ = v.listener.Close() // the server may have closed it
	return errors.Join(v.server.Close(), v.face.Close())
}
