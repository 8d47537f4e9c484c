package env

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// ErrBlocked means that the resolved address is in a network that is not allowed. No
// packet was sent.
var ErrBlocked = errors.New("destination refused")

// WebhookPorts are the ports to which webhooks go, unless any port is allowed.
var WebhookPorts = []uint16{443}

// OutboundOptions are the allowed destinations. The zero value allows public addresses
// only.
type OutboundOptions struct {
	// AllowNetworks lists allowed private networks, such as 127.0.0.0/8 in
	// development.
	AllowNetworks []netip.Prefix
	// AnyPort allows ports other than WebhookPorts.
	AnyPort bool
	// RootCAs are the trusted authorities; nil means the system's.
	RootCAs *x509.CertPool
	// Resolve replaces DNS; nil means the system's resolver. Its addresses are checked
	// like any other.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Outbound opens all outbound connections.
type Outbound struct {
	webhooks  *http.Transport
	processor *http.Transport
}

// NewOutbound returns the dialers for opts.
func NewOutbound(opts OutboundOptions) *Outbound {
	return &Outbound{
		webhooks:  newTransport(opts, guard(opts)),
		processor: newTransport(opts, nil),
	}
}

// Webhooks returns the transport for URLs from merchants. Each resolved address is
// checked when it is dialled, which prevents DNS rebinding; a refusal is [ErrBlocked].
// Proxies in the environment are ignored, redirects are not followed, and compressed
// answers are not expanded.
func (o *Outbound) Webhooks() http.RoundTripper { return o.webhooks }

// Processor returns the transport for URLs that the operator configured. It does not
// check addresses; otherwise it is like Webhooks.
func (o *Outbound) Processor() http.RoundTripper { return o.processor }

// WithIdentity is transport with a TLS identity of its own, and so with connections of its
// own: the client's certificate and the trusted authorities; nil is the transport's. A
// transport of a simulation is returned as it is.
func WithIdentity(transport http.RoundTripper, certificate *tls.Certificate, roots *x509.CertPool) http.RoundTripper {
	t, ok := transport.(*http.Transport)
	if !ok || certificate == nil && roots == nil {
		return transport
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = t.MaxIdleConns // they are all one processor's, and each costs a handshake
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{}
	}
	t.TLSClientConfig.MinVersion = max(t.TLSClientConfig.MinVersion, tls.VersionTLS12)
	if certificate != nil {
		// It is sent for any authorities that the server names, so that the server's refusal gives
		// the reason.
		t.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	if roots != nil {
		t.TLSClientConfig.RootCAs = roots
	}
	return t
}

// control is [net.Dialer.Control], called with the resolved address before connect.
type control func(network, address string, conn syscall.RawConn) error

// guard refuses the networks of the IANA special-purpose registries (private, loopback,
// link-local with cloud metadata, carrier-grade NAT, multicast, documentation, NAT64,
// 6to4, IPv4-mapped ...), except allowed networks.
func guard(opts OutboundOptions) control {
	var v4, v6 []netip.Prefix
	for _, prefix := range opts.AllowNetworks {
		if prefix.Addr().Is4() {
			v4 = append(v4, prefix.Masked())
		} else {
			v6 = append(v6, prefix.Masked())
		}
	}
	rules := []ssrf.Option{ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...), ssrf.WithPorts(WebhookPorts...)}
	if opts.AnyPort {
		rules = append(rules, ssrf.WithAnyPort())
	}
	guardian := ssrf.New(rules...)
	return func(network, address string, conn syscall.RawConn) error {
		if err := guardian.Safe(network, address, conn); err != nil {
			return fmt.Errorf("%w: %w", ErrBlocked, err)
		}
		return nil
	}
}

func newTransport(opts OutboundOptions, check control) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: check}
	dial := dialer.DialContext
	if opts.Resolve != nil {
		dial = dialResolved(dialer, opts.Resolve)
	}
	return &http.Transport{
		Proxy:       nil, // HTTPS_PROXY would bypass the check of the address
		DialContext: dial,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			RootCAs:    opts.RootCAs,
		},
		ForceAttemptHTTP2:      true, // off by default with a custom dialer
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		DisableCompression:     true, // prevents decompression bombs
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        60 * time.Second,
	}
}

// dialResolved dials the addresses of a host from resolve, in order, until one connects.
func dialResolved(
	dialer *net.Dialer, resolve func(context.Context, string) ([]netip.Addr, error),
) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("dial: %w", err)
		}
		addrs, err := resolve(ctx, host)
		if err != nil {
			return nil, &net.DNSError{Err: err.Error(), Name: host, UnwrapErr: err}
		}
		if len(addrs) == 0 {
			return nil, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
		}
		var failures []error
		for _, addr := range addrs {
			conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(addr.String(), port))
			if err == nil {
				return conn, nil
			}
			failures = append(failures, err)
		}
		return nil, errors.Join(failures...)
	}
}
