package apipix

import (
	"crypto"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"strings"

	"software.sslmate.com/src/go-pkcs12"
)

// certificateMax bounds a certificate with its chain and key, in bytes.
const certificateMax = 64 << 10

// Why a certificate cannot be used. The cause is left out: its text may quote the file.
var (
	errCertificate = errors.New("must be PEM with a certificate and its key, or PKCS #12")
	errKey         = errors.New("has no key that fits its certificate: PEM needs both in one file")
	errPassword    = errors.New("does not open with certificate-password")
)

// readCertificate reads a client certificate with its chain and key: PEM, or PKCS #12 in
// base64. The error follows the name of the secret in a sentence.
func readCertificate(text, password string) (*tls.Certificate, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // the caller says that it is missing
	}
	if len(text) > certificateMax {
		return nil, errCertificate
	}
	if strings.Contains(text, "-----BEGIN ") {
		c, err := tls.X509KeyPair([]byte(text), []byte(text))
		if err != nil {
			return nil, errKey
		}
		return &c, nil
	}
	file, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil || len(file) == 0 {
		return nil, errCertificate
	}
	return readPKCS12(file, password)
}

func readPKCS12(file []byte, password string) (*tls.Certificate, error) {
	key, leaf, chain, err := pkcs12.DecodeChain(file, password)
	switch {
	case errors.Is(err, pkcs12.ErrIncorrectPassword):
		return nil, errPassword
	case err != nil:
		return nil, errCertificate
	}
	c := &tls.Certificate{PrivateKey: key, Leaf: leaf, Certificate: [][]byte{leaf.Raw}}
	for _, authority := range chain {
		c.Certificate = append(c.Certificate, authority.Raw)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errKey
	}
	public, ok := leaf.PublicKey.(interface {
		Equal(other crypto.PublicKey) bool
	})
	if !ok || !public.Equal(signer.Public()) {
		return nil, errKey
	}
	return c, nil
}
