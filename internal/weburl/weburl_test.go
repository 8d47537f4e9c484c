package weburl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/weburl"
)

func TestParse(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("a", 63)
	for raw, want := range map[string]string{
		"https://shop.example":                            "https://shop.example",
		"HTTPS://Shop.Example:8443/A?b=C":                 "https://shop.example:8443/A?b=C",
		"https://shop.example/h?loja=São&n=1":             "https://shop.example/h?loja=S%C3%A3o&n=1",
		"https://shop.example/São/%C3%A3?a=%41%e3":        "https://shop.example/S%C3%A3o/%C3%A3?a=%41%e3",
		`https://shop.example/h?a[]={"b"}|<c>^` + "`":     "https://shop.example/h?a%5B%5D=%7B%22b%22%7D%7C%3Cc%3E%5E%60",
		"https://shop.example/h?off=100%&x=%4&y=%zz":      "https://shop.example/h?off=100%25&x=%254&y=%25zz",
		"https://Café.Example./ção":                       "https://xn--caf-dma.example./%C3%A7%C3%A3o",
		"https://faß.example/":                            "https://xn--fa-hia.example/",
		"https://my_service.internal/":                    "https://my_service.internal/",
		"https://203.0.113.1:1/":                          "https://203.0.113.1:1/",
		"https://[2001:DB8::1]:443/":                      "https://[2001:db8::1]:443/",
		"https://" + label + ".example/":                  "https://" + label + ".example/",
		"https://" + label + "a.example/":                 "",
		"https://" + strings.Repeat(label+".", 4) + "br/": "",
		"https://-a.example/":                             "",
		"https://a..example/":                             "",
		"https://.example/":                               "",
		`https://a"b.example/`:                            "",
		"https://a<b>.example/":                           "",
		"https://caf\u0301\u0301\u0301-.example/":         "",
		"https://xn--caf-dma.é-.example/":                 "",
	} {
		u, err := weburl.Parse(raw)
		switch {
		case want == "" && !errors.Is(err, weburl.ErrHost):
			t.Errorf("%q: %v, %v, want ErrHost", raw, u, err)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%q: %v, %v, want %s", raw, u, err, want)
		}
	}
	for _, raw := range []string{"", "/h", "shop.example", "https:shop.example", "https://a b.example/", "https://a.example/\u200b", "https://a.example/\\", "https://a.example:0/", "https://a.example:/", "https://[fe80::1%25eth0]/"} {
		if u, err := weburl.Parse(raw); !errors.Is(err, weburl.ErrForm) {
			t.Errorf("%q: %v, %v, want ErrForm", raw, u, err)
		}
	}
}
