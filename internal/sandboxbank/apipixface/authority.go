package apipixface

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/porteira/porteira/internal/env"
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
	// early is how long before now certificates begin: clocks differ.
	early = 24 * time.Hour
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

// randomReader is a source of randomness as crypto wants it.
type randomReader struct{ env.Random }

// Read implements [io.Reader].
func (r randomReader) Read(p []byte) (int, error) {
	r.Random.Read(p)
	return len(p), nil
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
	random randomReader
	root   *x509.Certificate
	key    *ecdsa.PrivateKey
}

func makeAuthority(dir, host string, clock env.Clock, random env.Random) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("apipixface: make the folder of certificates: %w", err)
	}
	i := &issuer{dir: dir, now: clock.Now(), random: randomReader{random}}
	secret := make([]byte, 32)
	random.Read(secret)
	err := errors.Join(
		i.makeRoot(),
		i.issue(fileServer, "sandbox bank", x509.ExtKeyUsageServerAuth, host),
		i.issue(fileClient, ClientID, x509.ExtKeyUsageClientAuth, ""),
		i.issue(fileNotice, "sandbox bank, notices", x509.ExtKeyUsageClientAuth, ""),
	)
	if err != nil {
		return err
	}
	return i.write(fileSecret, []byte(hex.EncodeToString(secret)))
}

func (i *issuer) template(name string, life time.Duration) *x509.Certificate {
	serial := make([]byte, 16)
	i.random.Random.Read(serial)
	serial[0] &= 0x7f
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial), Subject: pkix.Name{CommonName: name, Organization: []string{"Porteira sandbox"}},
		NotBefore: i.now.Add(-early), NotAfter: i.now.Add(life), KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

func (i *issuer) makeRoot() error {
	root := i.template("Porteira sandbox authority", authorityLife)
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	key, err := ecdsa.GenerateKey(elliptic.P256(), i.random)
	if err != nil {
		return fmt.Errorf("apipixface: make a key: %w", err)
	}
	der, err := x509.CreateCertificate(i.random, root, root, &key.PublicKey, key)
	if err != nil {
		return fmt.Errorf("apipixface: make a certificate: %w", err)
	}
	if i.root, err = x509.ParseCertificate(der); err != nil {
		return fmt.Errorf("apipixface: make a certificate: %w", err)
	}
	i.key = key // its file would let others issue certificates, so it has none
	return i.write(fileCA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func (i *issuer) issue(file, name string, use x509.ExtKeyUsage, host string) error {
	if i.key == nil {
		return nil // makeRoot has failed
	}
	leaf := i.template(name, certificateLife)
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{use}
	if use == x509.ExtKeyUsageServerAuth {
		leaf.DNSNames, leaf.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else if ip == nil && host != "" {
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), i.random)
	if err != nil {
		return fmt.Errorf("apipixface: make a key: %w", err)
	}
	der, err := x509.CreateCertificate(i.random, leaf, i.root, &key.PublicKey, i.key)
	if err != nil {
		return fmt.Errorf("apipixface: make a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("apipixface: write a key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return i.write(file, append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...))
}

func (i *issuer) write(name string, text []byte) error {
	if err := os.WriteFile(filepath.Join(i.dir, name), text, 0o600); err != nil {
		return fmt.Errorf("apipixface: write a certificate: %w", err)
	}
	return nil
}
