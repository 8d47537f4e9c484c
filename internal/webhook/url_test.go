package webhook_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/webhook"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	longest := "https://a.example/" + strings.Repeat("é", 2048-len("https://a.example/"))
	for raw, want := range map[string]error{
		"https://merchant.example":                    nil,
		"https://merchant.example/hooks?order=1#x":    nil,
		"https://merchant.example:8443/":              nil,
		"HTTPS://Merchant.Example/":                   nil,
		"https://loja.exämple/ção?não":                nil,
		"https://a\"b.example/":                       webhook.ErrURLForm,
		"https://203.0.113.1/":                        nil, // refused as it is dialled
		"https://[2606:4700::1111]/":                  nil,
		longest:                                       nil,
		longest + "x":                                 webhook.ErrURLTooLong,
		"http://merchant.example/":                    webhook.ErrURLScheme,
		"ftp://merchant.example/":                     webhook.ErrURLScheme,
		"unix:///run/docker.sock":                     webhook.ErrURLForm,
		"//merchant.example/":                         webhook.ErrURLScheme,
		"/hooks":                                      webhook.ErrURLForm,
		"merchant.example":                            webhook.ErrURLForm,
		"":                                            webhook.ErrURLForm,
		"javascript:alert(1)":                         webhook.ErrURLForm,
		"https:merchant.example":                      webhook.ErrURLForm,
		"https://":                                    webhook.ErrURLForm,
		"https:///hooks":                              webhook.ErrURLForm,
		"https://:443/":                               webhook.ErrURLForm,
		"https://merchant.example:/":                  webhook.ErrURLForm,
		"https://merchant.example:0/":                 webhook.ErrURLForm,
		"https://merchant.example:65536/":             webhook.ErrURLForm,
		"https://merchant.example:https/":             webhook.ErrURLForm,
		"https://user:pass@merchant.example/":         webhook.ErrURLUserInfo,
		"https://user@merchant.example/":              webhook.ErrURLUserInfo,
		"https://@merchant.example/":                  webhook.ErrURLUserInfo,
		"https://merchant.example\\@evil.example/":    webhook.ErrURLForm,
		" https://merchant.example/":                  webhook.ErrURLForm,
		"https://merchant.example/ ":                  webhook.ErrURLForm,
		"https://merchant.example/a b":                webhook.ErrURLForm,
		"https://merchant.example/\r\nX-Evil: 1":      webhook.ErrURLForm,
		"https://merchant.example/\x00":               webhook.ErrURLForm,
		"https://merchant.example/\u200b":             webhook.ErrURLForm,
		"https://merchant.example/\u00a0":             webhook.ErrURLForm,
		"https://merchant.example/\xff":               webhook.ErrURLForm,
		"https://merchant.example/%zz":                webhook.ErrURLForm,
		"https://[fe80::1%25eth0]/":                   webhook.ErrURLForm,
		"https://[::1/":                               webhook.ErrURLForm,
		"https://mer%00chant.example/":                webhook.ErrURLForm,
		"https://merchant.example:443:443/":           webhook.ErrURLForm,
		"https://" + strings.Repeat("a", 5<<20) + "/": webhook.ErrURLTooLong,
	} {
		if err := webhook.CheckURL(raw, false); !errors.Is(err, want) {
			t.Errorf("%.60q: %v, want %v", raw, err, want)
		}
	}
	if err := webhook.CheckURL("http://127.0.0.1:8080/hooks", true); err != nil {
		t.Errorf("http where it is allowed: %v", err)
	}
	if err := webhook.CheckURL("ftp://127.0.0.1/", true); !errors.Is(err, webhook.ErrURLScheme) {
		t.Errorf("ftp: %v", err)
	}
}

func TestEndpointKey(t *testing.T) {
	t.Parallel()
	base := webhook.EndpointKey("m1", "https://hooks.example/a?order=1")
	for raw, same := range map[string]bool{
		"https://hooks.example/b":      true,
		"https://HOOKS.example/a":      true,
		"https://hooks.example:8443/a": false,
		"http://hooks.example/a":       false,
		"https://other.example/a":      false,
	} {
		if got := webhook.EndpointKey("m1", raw) == base; got != same {
			t.Errorf("%s: same = %v", raw, got)
		}
	}
	if webhook.EndpointKey("m2", "https://hooks.example/a") == base {
		t.Error("two merchants share an endpoint")
	}
	if webhook.EndpointKey("m1", "https://%zz") == webhook.EndpointKey("m1", "https://%yy") {
		t.Error("what is no URL is all one endpoint")
	}
}
