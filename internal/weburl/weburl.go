// Package weburl parses URLs that merchants send, and writes them as HTTP sends them.
package weburl

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Errors of [Parse]. None repeats the URL, which may contain a token.
var (
	// ErrForm means that a text is not an absolute URL with a host.
	ErrForm = errors.New("weburl: not an absolute URL with a host")
	// ErrHost means that no name or address can be looked up for the host.
	ErrHost = errors.New("weburl: invalid host")
)

// hostMax is the maximum length of a name in the DNS.
const hostMax = 253

// hostForm is a name in the DNS. Names of containers have underscores.
var hostForm = regexp.MustCompile(`^[0-9a-z_]([0-9a-z_-]{0,61}[0-9a-z_])?(\.[0-9a-z_]([0-9a-z_-]{0,61}[0-9a-z_])?)*\.?$`)

// Parse parses an absolute URL of any scheme. Every character of it is visible, so that it cannot
// mislead. The result can be sent: its host is in lower case and ASCII (IDNA), and path and query
// are percent-encoded. Errors: ErrForm, ErrHost.
func Parse(raw string) (*url.URL, error) {
	if !utf8.ValidString(raw) || strings.ContainsFunc(raw, misleads) {
		return nil, ErrForm
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Hostname() == "" || strings.Contains(u.Host, "%") || !validPort(u) {
		return nil, ErrForm
	}
	host, err := asciiHost(u.Hostname())
	if err != nil {
		return nil, err
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" {
		host += ":" + port
	}
	u.Host, u.RawQuery = host, encoded(u.RawQuery)
	return u, nil
}

// misleads reports whether a character looks like none, or like a slash.
func misleads(r rune) bool {
	return r == '\\' || unicode.IsSpace(r) || !unicode.IsGraphic(r)
}

func validPort(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}

// asciiHost is the address, or the name as it is looked up.
func asciiHost(host string) (string, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.String(), nil
	}
	host = strings.ToLower(host)
	for i := range len(host) {
		if host[i] < utf8.RuneSelf {
			continue
		}
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", ErrHost
		}
		host = ascii
		break
	}
	if len(host) > hostMax || !hostForm.MatchString(host) {
		return "", ErrHost
	}
	return host, nil
}

// encoded is a query with escapes for everything that a query has not (RFC 3986, section 3.4), and
// for a % that begins no escape. Many servers refuse a request with such a byte.
func encoded(query string) string {
	var out strings.Builder
	for i := range len(query) {
		switch c := query[i]; {
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("-._~!$&'()*+,;=:@/?", c) >= 0,
			c == '%' && i+2 < len(query) && isHex(query[i+1]) && isHex(query[i+2]):
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
