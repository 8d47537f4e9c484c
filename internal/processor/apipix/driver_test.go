package apipix

import (
	"crypto/ecdsa"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
)

// faultsOf are the fields that the driver refuses.
func faultsOf(t *testing.T, a processor.Account) []string {
	t.Helper()
	_, clock := env.Virtual(start, 1)
	_, err := Driver{}.Open(a, processor.Env{Clock: clock, Transport: http.DefaultTransport})
	var invalid *problem.Error
	if err != nil && !errors.As(err, &invalid) {
		t.Fatalf("not a problem: %v", err)
	}
	var fields []string
	if invalid != nil {
		for _, f := range invalid.Fields {
			fields = append(fields, f.Field)
			for _, secret := range a.Secrets {
				if secret != "" && strings.Contains(f.Detail, secret) {
					t.Errorf("%s: the detail has a secret", f.Field)
				}
			}
		}
	}
	slices.Sort(fields)
	return fields
}

func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		profile string
		change  func(a *processor.Account)
		want    []string
	}{
		"complete":      {ProfileEfi, func(*processor.Account) {}, nil},
		"standard":      {ProfileBacen, func(*processor.Account) {}, nil},
		"default":       {ProfileBacen, func(a *processor.Account) { delete(a.Settings, SettingProfile) }, nil},
		"no token-url":  {ProfileBacen, func(a *processor.Account) { delete(a.Settings, SettingTokenURL) }, []string{"settings.token-url"}},
		"clear text":    {ProfileEfi, func(a *processor.Account) { a.Settings[SettingBaseURL] = "http://bank.example" }, []string{"settings.base-url"}},
		"with a query":  {ProfileEfi, func(a *processor.Account) { a.Settings[SettingBaseURL] += "?a=b" }, []string{"settings.base-url"}},
		"with a user":   {ProfileEfi, func(a *processor.Account) { a.Settings[SettingBaseURL] = "https://me@bank.example" }, []string{"settings.base-url"}},
		"other profile": {ProfileEfi, func(a *processor.Account) { a.Settings[SettingProfile] = "inter" }, []string{"settings.profile", "settings.token-url"}},
		"unknown":       {ProfileEfi, func(a *processor.Account) { a.Settings["pix"], a.Secrets["pin"] = "1", "1" }, []string{"secrets.pin", "settings.pix"}},
		"rate":          {ProfileEfi, func(a *processor.Account) { a.Settings[SettingRate] = "many" }, []string{"settings.rate"}},
		"hosts":         {ProfileEfi, func(a *processor.Account) { a.Settings[SettingCodeHosts] = "pix.bank.example, Qr.bank.example:8443" }, nil},
		"no hosts":      {ProfileEfi, func(a *processor.Account) { a.Settings[SettingCodeHosts] = "https://pix.bank.example" }, []string{"settings.code-hosts"}},
		"subject alone": {ProfileEfi, func(a *processor.Account) { a.Settings[SettingNoticeSubject] = "bank" }, []string{"settings.notice-subject"}},
		"no subject": {ProfileEfi, func(a *processor.Account) {
			a.Settings[SettingNoticeAuth], a.Settings[SettingNoticeSubject] = NoticeMTLS, "bank; "
		}, []string{"secrets.notice-ca", "settings.notice-subject"}},
		"mtls alone":     {ProfileEfi, func(a *processor.Account) { a.Settings[SettingNoticeAuth] = NoticeMTLS }, []string{"secrets.notice-ca"}},
		"no certificate": {ProfileEfi, func(a *processor.Account) { delete(a.Secrets, SecretCertificate) }, []string{"secrets.certificate"}},
		"no key in it": {ProfileEfi, func(a *processor.Account) {
			a.Secrets[SecretCertificate] = a.Secrets[SecretCertificate][:strings.Index(a.Secrets[SecretCertificate], "-----BEGIN PRIVATE")]
		}, []string{"secrets.certificate"}},
		"not a certificate": {ProfileEfi, func(a *processor.Account) { a.Secrets[SecretCertificate] = "@!" }, []string{"secrets.certificate"}},
		"bad authority":     {ProfileEfi, func(a *processor.Account) { a.Secrets[SecretCA] = "none" }, []string{"secrets.ca"}},
		"nothing": {ProfileEfi, func(a *processor.Account) { a.Settings, a.Secrets = nil, nil }, []string{
			"secrets.certificate", "secrets.client-secret", "settings.base-url", "settings.client-id", "settings.pix-key", "settings.token-url",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a := account(t, c.profile, testBase)
			c.change(&a)
			if got := faultsOf(t, a); !slices.Equal(got, c.want) {
				t.Errorf("faults %v, want %v", got, c.want)
			}
		})
	}
}

// TestPKCS12: the certificate may be PKCS #12 with a password, in base64.
func TestPKCS12(t *testing.T) {
	c, err := tls.X509KeyPair(testCertificate(t), testCertificate(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, encoder := range map[string]*pkcs12.Encoder{"modern": pkcs12.Modern2023, "legacy": pkcs12.LegacyDES} {
		file, err := encoder.Encode(c.PrivateKey.(*ecdsa.PrivateKey), c.Leaf, nil, "the password")
		if err != nil {
			t.Fatal(err)
		}
		text := base64.StdEncoding.EncodeToString(file)
		a := account(t, ProfileEfi, testBase)
		a.Secrets = maps.Clone(a.Secrets)
		a.Secrets[SecretCertificate], a.Secrets[SecretPassword] = text, "the password"
		if faults := faultsOf(t, a); faults != nil {
			t.Errorf("%s: %v", name, faults)
		}
		read, err := readCertificate(text, "the password")
		if err != nil || !read.Leaf.Equal(c.Leaf) {
			t.Errorf("%s: read %v", name, err)
		}
		if _, err := readCertificate(text, "another"); !errors.Is(err, errPassword) {
			t.Errorf("%s, with another password: %v", name, err)
		}
	}
	leaf := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
	if _, err := readCertificate(string(leaf), ""); !errors.Is(err, errKey) {
		t.Errorf("without a key: %v", err)
	}
}

// TestContract: one application at a bank is one contract, with any key.
func TestContract(t *testing.T) {
	a, b := account(t, ProfileEfi, testBase), account(t, ProfileEfi, testBase+"/")
	b.Settings[SettingPIXKey] = "another"
	if (Driver{}).Contract(a) != (Driver{}).Contract(b) {
		t.Error("two contracts of one application")
	}
	b.Settings[SettingClientID] = "another"
	if (Driver{}).Contract(a) == (Driver{}).Contract(b) {
		t.Error("one contract of two applications")
	}
}
