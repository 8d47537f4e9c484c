package notice_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// fuzzSecret is shared by the sandbox's bank and the gateway.
const fuzzSecret = "a secret between bank and gateway"

// fieldName and fieldControl are what a server checks before any handler sees a
// header (RFC 9110, sections 5.1 and 5.5).
var (
	fieldName    = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	fieldControl = regexp.MustCompile(`[\x00-\x08\x0a-\x1f\x7f]`)
)

// keeper keeps what was recorded last.
type keeper struct {
	count             int
	name, id, headers string
	body              []byte
}

// Record implements [notice.Recorder].
func (k *keeper) Record(_ context.Context, name, id, headers string, body []byte) error {
	k.count, k.name, k.id, k.headers, k.body = k.count+1, name, id, headers, body
	return nil
}

// FuzzReceive sends anything to the route for notices, signed or not. A notice
// without a valid signature of its bytes and time leaves no trace; a valid one is
// stored unchanged, without headers that contain secrets.
func FuzzReceive(f *testing.F) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w, _ := env.Virtual(start, 1)
	bank, err := sandbox.NewProcessor(sandbox.Options{URL: "http://bank.invalid", Secret: fuzzSecret, Transport: http.NewFileTransport(http.Dir("/nonexistent"))})
	if err != nil {
		f.Fatal(err)
	}
	kept := &keeper{}
	mux := http.NewServeMux()
	mux.Handle("POST /inbound/{account}/{token}", notice.NewHandler(notice.HandlerOptions{
		Recorder: kept, Clock: w.Clock, Processors: processor.Registry{sandbox.Name: bank, "silent": silent{}},
	}))
	good := []byte(`{"id":"n1","subject":"charge","externalId":"abc","createdAt":"2026-03-01T12:00:00Z","payment":{"id":"E1","externalId":"abc","amount":1}}`)
	f.Add("sandbox", "X-Odd: a\xffb\nAuthorization: Bearer x\nx-api-secret: y", good, true, int64(0))
	f.Add("sandbox", "X-Porteira-Bank-Signature: 00\nX-Porteira-Bank-Timestamp: 1772366400", good, false, int64(0))
	f.Add("sandbox", "X-Porteira-Bank-Timestamp: 1", good, true, int64(0))
	f.Add("silent", "", []byte("{}"), true, int64(-300))
	f.Add("../sandbox", "Cookie: "+strings.Repeat("x", 9000)+"\nB: "+strings.Repeat("y", 8190), []byte(`{"id":"n1","subject":"transfer","externalId":"a","x":[]}`), true, int64(301))
	f.Fuzz(func(t *testing.T, name, headers string, body []byte, signed bool, shift int64) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/inbound/x", bytes.NewReader(body))
		r.URL.Path, r.URL.RawPath = "/inbound/"+name+"/"+name, ""
		for line := range strings.SplitSeq(headers, "\n") {
			if key, value, ok := strings.Cut(line, ": "); ok && fieldName.MatchString(key) && !fieldControl.MatchString(value) {
				r.Header.Add(textproto.CanonicalMIMEHeaderKey(key), value)
			}
		}
		forged := r.Header[bankapi.HeaderSignature] != nil || r.Header[bankapi.HeaderTimestamp] != nil
		shift %= 1000
		if signed {
			sign(r.Header, start.Add(time.Duration(shift)*time.Second), body)
		}
		before := kept.count
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, r)
		_, unreadable := bank.ParseNotice(body)
		taken := name == sandbox.Name && signed && !forged && shift >= -300 && shift <= 300 && unreadable == nil
		if (answer.Code == http.StatusOK) != taken || (kept.count != before) != taken || answer.Code >= 500 {
			t.Fatalf("answered %d, recorded %v, want %v", answer.Code, kept.count != before, taken)
		}
		if !taken {
			if known := name == sandbox.Name || name == "silent"; known && answer.Header().Get("Content-Type") != problem.MediaType {
				t.Fatalf("answered %d with %q", answer.Code, answer.Body)
			}
			return
		}
		if kept.count != before+1 || kept.name != name || !bytes.Equal(kept.body, body) || kept.id == "" {
			t.Fatalf("kept %+v", kept)
		}
		if len(kept.headers) > 8<<10 || !utf8.ValidString(kept.headers) {
			t.Fatalf("kept headers %q", kept.headers)
		}
		for _, secret := range []string{"Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "X-Api-Secret"} {
			if strings.HasPrefix(kept.headers, secret+": ") || strings.Contains(kept.headers, "\n"+secret+": ") {
				t.Fatalf("kept headers %q", kept.headers)
			}
		}
	})
}

// sign writes a notice's headers as the bank documents them, in addition to any
// others.
func sign(h http.Header, at time.Time, body []byte) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(fuzzSecret))
	mac.Write([]byte(seconds + "."))
	mac.Write(body)
	h.Add(bankapi.HeaderTimestamp, seconds)
	h.Add(bankapi.HeaderSignature, hex.EncodeToString(mac.Sum(nil)))
}
