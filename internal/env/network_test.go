package env_test

import (
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
