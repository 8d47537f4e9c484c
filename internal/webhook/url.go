package webhook

import (
	"errors"
	"net/url"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/weburl"
)

// maxURLLength is in characters.
const maxURLLength = 2048

// Errors of [CheckURL]. None repeats the URL, which may contain a token.
var (
	// ErrURLTooLong means that a URL has more than 2,048 characters.
	ErrURLTooLong = errors.New("URL must have at most 2048 characters")
	// ErrURLForm means that a text is not an absolute URL with a host.
	ErrURLForm = errors.New("URL must be absolute, with a host and without spaces or control characters")
	// ErrURLScheme means that a URL's scheme is not allowed here.
	ErrURLScheme = errors.New("URL must begin with https://")
	// ErrURLUserInfo means that a URL carries a name or password.
	ErrURLUserInfo = errors.New("URL must not contain a user name or password")
)

// CheckURL checks that deliveries may go to raw: an absolute https URL (or http,
// if the operator allows it) of at most 2,048 characters, with a host and without
// user info. It looks nothing up: the host's address is checked when it is
// dialled.
func CheckURL(raw string, allowHTTP bool) error {
	_, err := parseURL(raw, allowHTTP)
	return err
}

// parseURL is CheckURL, and returns the URL as it is sent.
func parseURL(raw string, allowHTTP bool) (*url.URL, error) {
	if utf8.RuneCountInString(raw) > maxURLLength {
		return nil, ErrURLTooLong
	}
	u, err := weburl.Parse(raw)
	if err != nil {
		return nil, ErrURLForm
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !allowHTTP) {
		return nil, ErrURLScheme
	}
	if u.User != nil {
		return nil, ErrURLUserInfo
	}
	return u, nil
}

// EndpointKey names the receiver behind a URL, for [Limiter]: one merchant's
// deliveries to one scheme, host and port. Path and query are left out as they
// may differ by order; the merchant is included as many merchants may use one
// service.
func EndpointKey(merchant, raw string) string {
	u, err := weburl.Parse(raw)
	if err != nil {
		return merchant + " " + raw
	}
	return merchant + " " + u.Scheme + "://" + u.Host
}
