package wire

import "testing"

// An endpoint has the ports that the sender reaches, also after a change.
func TestPortsOfEndpoints(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://shop.example/hook":      "",
		"https://shop.example:443/hook":  "",
		"https://shop.example:80/hook":   "validation_failed, url not_allowed",
		"https://loja.exämple/São?é":     "",
		"https://shop.example:8443/hook": "validation_failed, url not_allowed",
	} {
		body := []byte(`{"url":"` + url + `","events":["*"]}`)
		rules := Rules{WebhookPorts: []uint16{443}}
		if _, err := DecodeEndpoint(body, rules); described(err) != want {
			t.Errorf("%s: %s", url, described(err))
		}
		if _, err := DecodeEndpointChange(body, rules); described(err) != want {
			t.Errorf("%s as a change: %s", url, described(err))
		}
		if _, err := DecodeEndpoint(body, Rules{}); err != nil {
			t.Errorf("%s with any port: %s", url, described(err))
		}
	}
}
