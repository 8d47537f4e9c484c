package asaasface

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/sandboxbank/certificate"
)

// The files of a face's folder.
const (
	fileKey     = "api-key"
	fileToken   = "notice-token"
	fileServer  = "server.pem" // certificate, signed by itself, and its key
	fileRoot    = "ca.pem"     // the certificate alone
	fileBook    = "book.jsonl"
	fileMode    = 0o600
	folderMode  = 0o700
	keyPrefix   = "$aact_hmlg_"
	secretBytes = 32
)

const certificateLife = 10 * 365 * 24 * time.Hour

// Folder has the secrets, the certificate and the book of a face. Its files are made once.
type Folder struct {
	dir         string
	Key, Token  string
	Certificate tls.Certificate
}

// Book is the file of the book.
func (f *Folder) Book() string { return filepath.Join(f.dir, fileBook) }

// KeyFile has the API key of the gateway's account.
func (f *Folder) KeyFile() string { return filepath.Join(f.dir, fileKey) }

// TokenFile has the token for its notices.
func (f *Folder) TokenFile() string { return filepath.Join(f.dir, fileToken) }

// RootFile has the authority of the server's certificate.
func (f *Folder) RootFile() string { return filepath.Join(f.dir, fileRoot) }

// TLS is the server's.
func (f *Folder) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{f.Certificate}}
}

// OpenFolder opens a folder, or makes its files. The certificate is for this machine, and for
// host if it is another name or address.
func OpenFolder(dir, host string, w env.Env) (*Folder, error) {
	f := &Folder{dir: dir}
	_, err := os.Stat(f.TokenFile()) // the last one that is written
	if errors.Is(err, fs.ErrNotExist) {
		err = f.make(host, w)
	}
	var errs []error
	read := func(path string) []byte {
		text, err := os.ReadFile(path)
		errs = append(errs, err)
		return text
	}
	f.Key, f.Token = string(read(f.KeyFile())), string(read(f.TokenFile()))
	pair := read(filepath.Join(dir, fileServer))
	if err = errors.Join(err, errors.Join(errs...)); err == nil {
		f.Certificate, err = tls.X509KeyPair(pair, pair)
	}
	if err != nil {
		return nil, fmt.Errorf("asaasface: open %s: %w: move the folder away to make a new one", dir, err)
	}
	return f, nil
}

func (f *Folder) make(host string, w env.Env) error {
	if err := os.MkdirAll(f.dir, folderMode); err != nil {
		return err
	}
	server, root, err := newCertificate(host, w)
	if err != nil {
		return err
	}
	secret := func(prefix string) []byte {
		b := make([]byte, secretBytes)
		w.Random.Read(b)
		return []byte(prefix + hex.EncodeToString(b))
	}
	for _, file := range []struct {
		name string
		text []byte
	}{{fileServer, server}, {fileRoot, root}, {fileKey, secret(keyPrefix)}, {fileToken, secret("")}} {
		if err := os.WriteFile(filepath.Join(f.dir, file.name), file.text, fileMode); err != nil {
			return err
		}
	}
	return nil
}

// newCertificate makes a certificate that is its own authority.
func newCertificate(host string, w env.Env) (server, root []byte, err error) {
	c := certificate.Template("Porteira sandbox, as Asaas", w.Clock.Now(), certificateLife, w.Random)
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageDigitalSignature|x509.KeyUsageCertSign
	certificate.ForServer(c, host)
	signed, err := certificate.Sign(c, nil, w.Random)
	if err != nil {
		return nil, nil, err
	}
	server, err = signed.WithKey()
	return server, signed.PEM, err
}
