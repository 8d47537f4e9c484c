package cli

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
)

// A secret is text without its last line's end, or, such as PKCS #12, binary: then it is kept in
// base64.
func TestSecretsOfFiles(t *testing.T) {
	t.Parallel()
	binary := []byte{0x30, 0x82, 0xff, 0x00, '\n'}
	for contents, want := range map[string]string{
		"a secret\r\n":   "a secret",
		"ação":           "ação",
		string(binary):   base64.StdEncoding.EncodeToString(binary),
		"-----BEGIN\n\n": "-----BEGIN",
	} {
		path := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := (&runner{}).readSecrets(map[string]string{"certificate": "@" + path})
		if err != nil || got["certificate"] != want {
			t.Errorf("%q: %q, %v", contents, got["certificate"], err)
		}
	}
}
