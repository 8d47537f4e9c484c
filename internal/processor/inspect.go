package processor

import (
	"context"
	"crypto/x509"
	"time"

	"github.com/porteira/porteira/brcode"
)

// Finding is the result of one check of an account at its processor.
type Finding struct {
	Check   string // what was checked
	Detail  string // what was found, if it is not wrong
	Problem string // "" if it is not wrong
	Action  string // what to do about it; without a problem a person decides
	Stops   bool   // no other check can succeed before the problem is solved
}

// InspectCode is a finding if a code of an account has letters beyond ASCII.
func InspectCode(code string) Finding {
	f := Finding{Check: "codes"}
	if !brcode.IsASCII(code) {
		f.Detail = "names or cities in them have letters beyond ASCII"
		f.Action = "They are shown to payers as they are. Some payers' banks refuse such codes: ask the processor to write the receiver without accents."
	}
	return f
}

// Inspector checks an account at its processor, without an effect there.
type Inspector interface {
	Inspect(ctx context.Context) []Finding
}

// Authenticator is a processor whose driver recognises that the credentials are refused.
type Authenticator interface {
	// Refused reports whether the last answer was that the credentials are refused: a hint.
	Refused() bool
	// Authenticate proves by a query, without an effect, whether the credentials are accepted:
	// its error is [ErrCredentials] if they are refused, a different error if that is unknown.
	Authenticate(ctx context.Context) error
}

// Registrar is a processor at which a program can register the address for notices.
type Registrar interface {
	// Register registers an address until ttl has passed.
	Register(ctx context.Context, noticeURL string, ttl time.Duration) error
}

// Installer is a processor at which a person registers the address for notices, once. Unlike
// a [Registrar] it is not called by itself.
type Installer interface {
	Install(ctx context.Context, noticeURL string) error
	// Installed checks that the address is registered, without an effect.
	Installed(ctx context.Context, noticeURL string) Finding
}

// Certified is a processor with a client certificate.
type Certified interface {
	// CertificateEnd is when it expires, UTC; zero if there is none.
	CertificateEnd() time.Time
}

// PeerVerifier is a [Notifier] whose notices may have to come with a client certificate.
type PeerVerifier interface {
	// VerifyPeer authenticates the sender by its certificate, with those of the authorities
	// between; chain is empty if there is none. Any doubt is an error.
	VerifyPeer(chain []*x509.Certificate, now time.Time) error
}
