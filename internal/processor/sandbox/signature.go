package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/processor"
)

// Headers of a notice: Unix seconds, and the HMAC-SHA256 under the shared
// secret of the seconds, a dot, and the body, in lower-case hex digits.
const (
	HeaderTimestamp = "X-Porteira-Bank-Timestamp"
	HeaderSignature = "X-Porteira-Bank-Signature"
)

// noticeTolerance is how far a notice's time may lie from ours, either way.
const noticeTolerance = 300 * time.Second

// ErrNotice says that a notice is not one of this bank's, or not a fresh one.
var ErrNotice = errors.New("sandbox: notice refused")

// Why a notice is refused, for the operator.
var (
	errNoticeHeaders   = errors.New("timestamp or signature missing, double or malformed")
	errNoticeTime      = errors.New("timestamp too far from now")
	errNoticeSignature = errors.New("signature does not match")
	errNoticeBody      = errors.New("body is not a notice")
)

// signNotice sets the headers of a notice that is sent at now.
func signNotice(h http.Header, secret string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	h.Set(HeaderTimestamp, timestamp)
	h.Set(HeaderSignature, hex.EncodeToString(noticeMAC(secret, timestamp, body)))
}

func noticeMAC(secret, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return mac.Sum(nil)
}

// VerifyNotice implements [processor.Notifier]. Every error is an [ErrNotice].
func (p *Processor) VerifyNotice(h http.Header, body []byte, now time.Time) (noticeID string, err error) {
	notice, err := verifyNotice(p.secret, h, body, now)
	if err != nil {
		return "", errors.Join(ErrNotice, err)
	}
	return notice.ID, nil
}

func verifyNotice(secret string, h http.Header, body []byte, now time.Time) (n noticeBody, err error) {
	timestamp, ok1 := single(h, HeaderTimestamp)
	signature, ok2 := single(h, HeaderSignature)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if !ok1 || !ok2 || err != nil || strconv.FormatInt(seconds, 10) != timestamp {
		return n, errNoticeHeaders
	}
	want := hex.EncodeToString(noticeMAC(secret, timestamp, body))
	if !hmac.Equal([]byte(signature), []byte(want)) {
		return n, errNoticeSignature
	}
	if now.Sub(time.Unix(seconds, 0)).Abs() > noticeTolerance {
		return n, errNoticeTime
	}
	return readNotice(body)
}

// single returns the value of a header that is there once: a second one could
// be read by another program than the first.
func single(h http.Header, name string) (string, bool) {
	values := h[name]
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

// readNotice reads a body. Members that it does not know are left alone, as a
// newer bank may add some.
func readNotice(body []byte) (n noticeBody, err error) {
	if err := json.Unmarshal(body, &n); err != nil {
		return noticeBody{}, errNoticeBody
	}
	known := n.Subject == processor.SubjectCharge || n.Subject == processor.SubjectTransfer || n.Subject == processor.SubjectRefund
	if !isToken(n.ID) || !isExternalID(n.ExternalID) || !known {
		return noticeBody{}, errNoticeBody
	}
	if n.Payment != nil && !n.Payment.fits() {
		return noticeBody{}, errNoticeBody
	}
	return n, nil
}

// ParseNotice implements [processor.Notifier].
func (p *Processor) ParseNotice(body []byte) ([]processor.Hint, error) {
	n, err := readNotice(body)
	if err != nil {
		return nil, errors.Join(ErrNotice, err)
	}
	hint := processor.Hint{Subject: n.Subject, ExternalID: n.ExternalID}
	if n.Payment != nil {
		payment := n.Payment.payment()
		hint.Payment = &payment
	}
	return []processor.Hint{hint}, nil
}
