package notice

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/url"
	"strings"
)

// HeaderClientCert is how a TLS proxy passes on the certificate of its client: the form of RFC
// 9440, DER in base64 between colons, or PEM with percent-encoding, as nginx writes it. The
// server deletes it from requests that do not come from a trusted proxy.
const HeaderClientCert = "Client-Cert"

// clientCertMax bounds the header, in bytes.
const clientCertMax = 16 << 10

// peerChain is the sender's certificate with its intermediates; nil if the sender has shown none
// that can be read.
func peerChain(r *http.Request) []*x509.Certificate {
	if r.TLS != nil {
		return r.TLS.PeerCertificates
	}
	lines := r.Header[HeaderClientCert]
	if len(lines) != 1 || len(lines[0]) > clientCertMax {
		return nil
	}
	c, err := x509.ParseCertificate(clientCertDER(lines[0]))
	if err != nil {
		return nil
	}
	return []*x509.Certificate{c}
}

func clientCertDER(text string) []byte {
	if inner, ok := strings.CutPrefix(text, ":"); ok {
		der, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, ":"))
		if err != nil || !strings.HasSuffix(inner, ":") {
			return nil
		}
		return der
	}
	text, err := url.PathUnescape(text)
	if err != nil {
		return nil
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil
	}
	return block.Bytes
}
