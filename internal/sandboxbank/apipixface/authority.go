package apipixface

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

// The files of an authority.
const (
	fileCA     = "ca.pem"            // the authority of the server and of notices
	fileServer = "server.pem"        // with its key, as the others
	fileClient = "client.pem"        // of the application: the gateway
	fileNotice = "notices.pem"       // with which notices leave
	fileSecret = "client-secret.txt" // of the application
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 397 * 24 * time.Hour
)

// Authority has the certificates of a face. Its files are made once, for their owner alone.
type Authority struct {
	Dir    string
	CA     []byte // PEM
	Server tls.Certificate
	Client []byte // PEM with the key
	Notice tls.Certificate
	Secret string // of the application
}

// OpenAuthority opens the authority in a folder, or makes it. The server's certificate is for
// this machine, and for host if it is another name or address.
func OpenAuthority(dir, host string, clock env.Clock, random env.Random) (*Authority, error) {
	a := &Authority{Dir: dir}
	_, err := os.Stat(filepath.Join(dir, fileSecret)) // the last one that is written
	if errors.Is(err, fs.ErrNotExist) {
		err = makeAuthority(dir, host, clock, random)
	}
	if err != nil {
		return nil, err
	}
	read := func(name string) []byte {
		text, other := os.ReadFile(filepath.Join(dir, name))
		err = errors.Join(err, other)
		return text
	}
	keyed := func(name string) (c tls.Certificate) {
		text := read(name)
		if err == nil {
			c, err = tls.X509KeyPair(text, text)
		}
		return c
	}
	a.CA, a.Client, a.Secret = read(fileCA), read(fileClient), string(read(fileSecret))
	a.Server, a.Notice = keyed(fileServer), keyed(fileNotice)
	if err != nil {
		return nil, fmt.Errorf("apipixface: open the certificates in %s: %w: move the folder away to make new ones", dir, err)
	}
	return a, nil
}

// ClientFile is the application's certificate with its key, CAFile the authority's, and
// SecretFile the application's secret.
func (a *Authority) ClientFile() string { return filepath.Join(a.Dir, fileClient) }

// CAFile is the authority's certificate.
func (a *Authority) CAFile() string { return filepath.Join(a.Dir, fileCA) }

// SecretFile has the application's secret.
func (a *Authority) SecretFile() string { return filepath.Join(a.Dir, fileSecret) }

// Pool has the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.CA)
	return pool
}

// ServerConfig is the TLS of the server: a certificate of the application is required.
func (a *Authority) ServerConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{a.Server},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool(),
	}
}

// issuer issues certificates.
type issuer struct {
	dir    string
	now    time.Time
	random env.Random
	root   *certificate.Signed // its key has no file, which would let others issue certificates
}

func makeAuthority(dir, host string, clock env.Clock, random env.Random) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("apipixface: make the folder of certificates: %w", err)
	}
	i := &issuer{dir: dir, now: clock.Now(), random: random}
	secret := make([]byte, 32)
	random.Read(secret)
	err := i.makeRoot()
	if err != nil {
		return err
	}
	err = errors.Join(
		i.issue(fileServer, "sandbox bank", func(c *x509.Certificate) { certificate.ForServer(c, host) }),
		i.issue(fileClient, ClientID, forClient),
		i.issue(fileNotice, "sandbox bank, notices", forClient),
	)
	if err != nil {
		return err
	}
	return i.write(fileSecret, []byte(hex.EncodeToString(secret)))
}

func (i *issuer) makeRoot() (err error) {
	root := certificate.Template("Porteira sandbox authority", i.now, authorityLife, i.random)
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	if i.root, err = certificate.Sign(root, nil, i.random); err != nil {
		return err
	}
	return i.write(fileCA, i.root.PEM)
}

func forClient(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }

func (i *issuer) issue(file, name string, use func(*x509.Certificate)) error {
	leaf := certificate.Template(name, i.now, certificateLife, i.random)
	use(leaf)
	signed, err := certificate.Sign(leaf, i.root, i.random)
	if err != nil {
		return err
	}
	text, err := signed.WithKey()
	if err != nil {
		return err
	}
	return i.write(file, text)
}

func (i *issuer) write(name string, text []byte) error {
	if err := os.WriteFile(filepath.Join(i.dir, name), text, 0o600); err != nil {
		return fmt.Errorf("apipixface: write a certificate: %w", err)
	}
	return nil
}
