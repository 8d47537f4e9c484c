package config

import (
	"log/slog"
	"net/url"
)

// Redacted is shown instead of a secret.
const Redacted = "[redacted]"

// Secret is a text that is never printed, logged or marshalled; Reveal returns it.
type Secret string

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret, and shows only whether there is one.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return Redacted
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret from JSON and its like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the secret from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// withoutPassword redacts the password in a database URL. An invalid URL that may contain
// a password is redacted completely.
func withoutPassword(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		return Redacted
	}
	q := u.Query()
	if q.Has("password") {
		q.Set("password", Redacted)
		u.RawQuery = q.Encode()
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), Redacted)
	} else if !q.Has("password") {
		return database
	}
	text, err := url.QueryUnescape(u.String())
	if err != nil {
		return u.Redacted()
	}
	return text
}
