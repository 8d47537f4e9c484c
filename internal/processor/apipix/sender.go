package apipix

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/problem"
)

// sender is how notices prove who sent them, besides the token in their address.
type sender struct {
	mtls  bool           // they come with a certificate
	roots *x509.CertPool // of that certificate
	names []string       // of that certificate: one of them; empty: any
}

// namesMax is the most names of senders, and nameMax the longest one in bytes.
const (
	namesMax = 20
	nameMax  = 512
)

// sender reads how notices prove their sender.
func (r *reader) sender(noticeAuth string) sender {
	s := sender{mtls: noticeAuth == NoticeMTLS, roots: r.authorities(SecretNoticeCA)}
	if s.mtls && r.account.Secrets[SecretNoticeCA] == "" {
		r.fault("secrets."+SecretNoticeCA, problem.CodeRequired, "is missing: with notice-auth=mtls notices come with a certificate of the bank")
	}
	given := r.account.Settings[SettingNoticeSubject]
	if given == "" {
		return s
	}
	for name := range strings.SplitSeq(given, ";") {
		if name = strings.TrimSpace(name); name == "" || len(name) > nameMax || !isText(name) || len(s.names) == namesMax {
			r.fault("settings."+SettingNoticeSubject, problem.CodeInvalidFormat,
				"must be up to 20 subjects, common names, DNS names or SHA-256 of certificates, with semicolons between them")
			break
		}
		s.names = append(s.names, name)
	}
	if !s.mtls {
		r.fault("settings."+SettingNoticeSubject, problem.CodeNotAllowed, "needs notice-auth=mtls")
	}
	return s
}

// verify returns nil if a chain, which begins with the sender's certificate, proves the sender.
func (s *sender) verify(chain []*x509.Certificate, now time.Time) error {
	if !s.mtls {
		return nil
	}
	if len(chain) == 0 {
		return errors.Join(ErrNotice, errNoticePeer)
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: s.roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return errors.Join(ErrNotice, errNoticeChain)
	}
	if len(s.names) > 0 && !slices.ContainsFunc(s.names, func(name string) bool { return isOf(chain[0], name) }) {
		return errors.Join(ErrNotice, fmt.Errorf("%w: it is of %.*q, SHA-256 %s", errNoticeSubject, nameMax, chain[0].Subject.String(), fingerprint(chain[0])))
	}
	return nil
}

// isOf reports whether a certificate has a name: its subject as RFC 2253 writes it, its common
// name, one of its DNS names, or its SHA-256 in hexadecimal digits with or without colons.
func isOf(c *x509.Certificate, name string) bool {
	return name == c.Subject.String() || name == c.Subject.CommonName || slices.Contains(c.DNSNames, name) ||
		strings.ToLower(strings.ReplaceAll(name, ":", "")) == fingerprint(c)
}

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}
