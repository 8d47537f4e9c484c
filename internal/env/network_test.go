package env_test

import (
	"net/netip"
	"testing"

	"github.com/porteira/porteira/internal/env"
)

func TestNetworkOf(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.7:1":              "192.0.2.7/32",
		"[::ffff:192.0.2.7]:1":     "192.0.2.7/32",
		"[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1":         "fe80::/64",
		"@":                        "invalid Prefix",
		"":                         "invalid Prefix",
	} {
		if got := env.NetworkOf(remote).String(); got != want {
			t.Errorf("NetworkOf(%q) is %s, want %s", remote, got, want)
		}
	}
}

func TestUsualNetwork(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"::ffff:203.0.113.7/128": "203.0.113.7/32",
		"::ffff:203.0.113.7/120": "203.0.113.0/24",
		"::ffff:0:0/96":          "0.0.0.0/0",
		"::ffff:0:0/95":          "::fffe:0:0/95",
		"203.0.113.7/24":         "203.0.113.0/24",
		"2001:db8::7/64":         "2001:db8::/64",
	} {
		if got := env.UsualNetwork(netip.MustParsePrefix(text)).String(); got != want {
			t.Errorf("UsualNetwork(%q) is %s, want %s", text, got, want)
		}
	}
}
