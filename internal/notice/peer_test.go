package notice_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/processor"
)

// proving is a processor whose notices come with one certificate.
type proving struct {
	bank

	want *x509.Certificate
}

// VerifyPeer implements [processor.PeerVerifier].
func (p proving) VerifyPeer(chain []*x509.Certificate, _ time.Time) error {
	if len(chain) != 1 || !chain[0].Equal(p.want) {
		return errors.New("not the sender")
	}
	return nil
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// A notice may have to come with a certificate: from the connection, or from the header of a
// proxy, in both forms. A header beside a connection with TLS does not count.
func TestPeerOfNotices(t *testing.T) {
	t.Parallel()
	ours, other := selfSigned(t), selfSigned(t)
	j := &journal{}
	w, _ := env.Virtual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 1)
	mux := http.NewServeMux()
	mux.Handle("POST /inbound/{account}/{token}", notice.NewHandler(notice.HandlerOptions{
		Recorder: j, Clock: w.Clock, Processors: processor.Registry{"bank": proving{want: ours.Leaf}},
	}))
	rfc := func(c tls.Certificate) string {
		return ":" + base64.StdEncoding.EncodeToString(c.Certificate[0]) + ":"
	}
	escaped := func(c tls.Certificate) string {
		return url.PathEscape(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})))
	}
	for name, c := range map[string]struct {
		header string
		want   int
	}{
		"RFC 9440":          {rfc(ours), 200},
		"escaped PEM":       {escaped(ours), 200},
		"other, RFC 9440":   {rfc(other), 401},
		"other, PEM":        {escaped(other), 401},
		"none":              {"", 401},
		"half":              {rfc(ours)[:100], 401},
		"two in one":        {escaped(ours) + escaped(ours), 401},
		"a key":             {url.PathEscape(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))), 401},
		"bad escape":        {"%zz", 401},
		"colons":            {"::", 401},
		"longer than ever":  {":" + strings.Repeat("A", 20_000) + ":", 401},
		"a second in front": {rfc(other) + "," + rfc(ours), 401},
	} {
		headers := []string{"Signature", "word", "Notice-Id", "n " + name}
		if c.header != "" {
			headers = append(headers, "Client-Cert", c.header)
		}
		if got := post(mux, "/inbound/bank/bank", "x", headers...); got.Code != c.want {
			t.Errorf("%s: answered %d, want %d", name, got.Code, c.want)
		}
	}

	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	for name, c := range map[string]struct {
		certificates []tls.Certificate
		want         int
	}{"ours": {[]tls.Certificate{ours}, 200}, "other": {[]tls.Certificate{other}, 401}, "none": {nil, 401}} {
		way := server.Client().Transport.(*http.Transport).Clone()
		way.TLSClientConfig.Certificates, way.DisableKeepAlives = c.certificates, true
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/inbound/bank/bank", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Signature", "word")
		r.Header.Set("Notice-Id", "tls "+name)
		r.Header.Set("Client-Cert", rfc(ours)) // invented
		answer, err := way.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("over TLS, %s: answered %d, want %d", name, answer.StatusCode, c.want)
		}
	}
}

func FuzzClientCert(f *testing.F) {
	f.Add(":AAAA:")
	f.Add("-----BEGIN%20CERTIFICATE-----%0AAAAA%0A-----END%20CERTIFICATE-----%0A")
	mux := http.NewServeMux()
	w, _ := env.Virtual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 1)
	mux.Handle("POST /inbound/{account}/{token}", notice.NewHandler(notice.HandlerOptions{
		Recorder: &journal{}, Clock: w.Clock, Processors: processor.Registry{"bank": proving{want: &x509.Certificate{Raw: []byte("none")}}},
	}))
	f.Fuzz(func(t *testing.T, header string) {
		if got := post(mux, "/inbound/bank/bank", "x", "Signature", "word", "Notice-Id", "n", "Client-Cert", header); got.Code != 401 {
			t.Errorf("answered %d", got.Code)
		}
	})
}
