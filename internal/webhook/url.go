package webhook

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
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
	if utf8.RuneCountInString(raw) > maxURLLength {
		return ErrURLTooLong
	}
	// A URL contains no space of any kind, and characters that look like none, such
	// as a zero-width joiner, only serve to mislead.
	misplaced := func(r rune) bool {
		return r == utf8.RuneError || r == '\\' || unicode.IsSpace(r) || !unicode.IsGraphic(r)
	}
	if !utf8.ValidString(raw) || strings.ContainsFunc(raw, misplaced) {
		return ErrURLForm
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return ErrURLForm
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !allowHTTP) {
		return ErrURLScheme
	}
	if u.User != nil {
		return ErrURLUserInfo
	}
	if u.Hostname() == "" || strings.Contains(u.Host, "%") || !validPort(u) {
		return ErrURLForm
	}
	return nil
}

func validPort(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}

// EndpointKey names the receiver behind a URL, for [Limiter]: one merchant's
// deliveries to one scheme, host and port. Path and query are left out as they
// may differ by order; the merchant is included as many merchants may use one
// service.
func EndpointKey(merchant, raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return merchant + " " + raw
	}
	return merchant + " " + u.Scheme + "://" + strings.ToLower(u.Host)
}
