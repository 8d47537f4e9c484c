package bankapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// Notice is a notice to a gateway. Its bytes are the same in each attempt.
type Notice struct {
	ID         string    `json:"id"`
	Subject    Subject   `json:"subject"`
	ExternalID string    `json:"externalId"`
	CreatedAt  time.Time `json:"createdAt"`
	Payment    *Payment  `json:"payment,omitempty"`
}

// Headers of a notice: Unix seconds, and the HMAC-SHA256 under the shared
// secret of the seconds, a dot, and the body, in lower-case hex digits.
const (
	HeaderTimestamp = "X-Porteira-Bank-Timestamp"
	HeaderSignature = "X-Porteira-Bank-Signature"
)

// SignNotice sets the headers of a notice that is sent at now.
func SignNotice(h http.Header, secret string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	h.Set(HeaderTimestamp, timestamp)
	h.Set(HeaderSignature, NoticeSignature(secret, timestamp, body))
}

// NoticeSignature is the signature of a notice's timestamp and body.
func NoticeSignature(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
