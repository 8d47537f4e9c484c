// Package certificate makes the TLS certificates of the sandbox bank's faces.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// early is how long before now certificates begin: clocks differ.
const early = 24 * time.Hour

// Template is a certificate to be signed, which is valid from now on for a time.
func Template(name string, now time.Time, life time.Duration, random env.Random) *x509.Certificate {
	serial := make([]byte, 16)
	random.Read(serial)
	serial[0] &= 0x7f
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial), Subject: pkix.Name{CommonName: name, Organization: []string{"Porteira sandbox"}},
		NotBefore: now.Add(-early), NotAfter: now.Add(life), KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// ForServer makes c the certificate of a server on this machine, and at host if that is another
// name or address.
func ForServer(c *x509.Certificate, host string) {
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	c.DNSNames, c.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		c.IPAddresses = append(c.IPAddresses, ip)
	} else if ip == nil && host != "" {
		c.DNSNames = append(c.DNSNames, host)
	}
}

// Signed is a signed certificate with its key.
type Signed struct {
	PEM []byte // the certificate alone

	der []byte
	key *ecdsa.PrivateKey
}

// Sign signs c with a new key. Its authority is by, or c itself if by is nil.
func Sign(c *x509.Certificate, by *Signed, random env.Random) (*Signed, error) {
	source := reader{random}
	key, err := ecdsa.GenerateKey(elliptic.P256(), source)
	if err != nil {
		return nil, fmt.Errorf("certificate: make a key: %w", err)
	}
	authority, signer := c, key
	if by != nil {
		if authority, err = x509.ParseCertificate(by.der); err != nil {
			return nil, fmt.Errorf("certificate: read the authority: %w", err)
		}
		signer = by.key
	}
	der, err := x509.CreateCertificate(source, c, authority, &key.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("certificate: sign: %w", err)
	}
	return &Signed{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), der, key}, nil
}

// WithKey is the certificate followed by its key, in PEM.
func (s *Signed) WithKey() ([]byte, error) {
	secret, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		return nil, fmt.Errorf("certificate: write a key: %w", err)
	}
	return append(slices.Clip(s.PEM), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...), nil
}

// reader is a source of randomness as crypto wants it.
type reader struct{ env.Random }

// Read implements [io.Reader].
func (r reader) Read(p []byte) (int, error) {
	r.Random.Read(p)
	return len(p), nil
}
