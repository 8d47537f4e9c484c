package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/porteira/porteira/internal/env"
)

// Reason is a stable word for why an attempt did not deliver. The network's own
// error is left out: it would show a merchant details of the gateway's network.
type Reason string

// The reasons.
const (
	// ReasonStatus means that the status was neither 2xx nor 3xx.
	ReasonStatus Reason = "unexpected_status"
	// ReasonRedirect means that the answer was a redirect, which is not followed.
	ReasonRedirect Reason = "redirect"
	// ReasonTimeout means that there was no answer within the timeout.
	ReasonTimeout Reason = "timeout"
	// ReasonDNS means that the host was not found.
	ReasonDNS Reason = "dns_failed"
	// ReasonConnectRefused means that nothing listens there.
	ReasonConnectRefused Reason = "connect_refused"
	// ReasonConnect means that the connection failed for another reason.
	ReasonConnect Reason = "connect_failed"
	// ReasonTLS means that the handshake failed: an expired, self-signed or
	// foreign certificate, a version below 1.2, no TLS at all.
	ReasonTLS Reason = "tls_failed"
	// ReasonReset means that the connection ended before the answer.
	ReasonReset Reason = "connection_reset"
	// ReasonTooLarge means that the answer's headers exceed 64 KiB.
	ReasonTooLarge Reason = "response_too_large"
	// ReasonProtocol means that the answer is not HTTP.
	ReasonProtocol Reason = "protocol_error"
	// ReasonBlocked means that the address is private, or blocked otherwise by the
	// gateway itself; nothing was sent.
	ReasonBlocked Reason = "blocked_address"
	// ReasonInvalidURL means that the URL is invalid; nothing was sent.
	ReasonInvalidURL Reason = "invalid_url"
	// ReasonInterrupted means that the gateway stopped during the attempt. The
	// receiver is not at fault, and may or may not have got the event.
	ReasonInterrupted Reason = "interrupted"
)

// classify names the reason of a failed round trip.
func classify(ctx context.Context, err error, tlsFailed bool) Reason {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		operation   *net.OpError
		network     net.Error
	)
	switch {
	case errors.Is(err, env.ErrBlocked):
		return ReasonBlocked
	case ctx.Err() != nil:
		return ReasonTimeout
	case errors.As(err, &dns):
		return ReasonDNS
	case errors.As(err, &network) && network.Timeout():
		return ReasonTimeout
	case tlsFailed, errors.As(err, &certificate):
		return ReasonTLS
	case errors.Is(err, syscall.ECONNREFUSED):
		return ReasonConnectRefused
	case errors.As(err, &operation) && operation.Op == "dial":
		return ReasonConnect
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return ReasonReset
	case strings.Contains(err.Error(), "response headers exceeded"): // net/http has no value for it
		return ReasonTooLarge
	default:
		return ReasonProtocol
	}
}

// handshakeTrace records a failed handshake: most errors of package crypto/tls
// have neither a type nor a value to recognise them by.
func handshakeTrace(failed *atomic.Bool) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err != nil {
				failed.Store(true)
			}
		},
	}
}
