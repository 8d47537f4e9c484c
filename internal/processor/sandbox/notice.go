package sandbox

import (
	"crypto/hmac"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// noticeTolerance is how far a notice's time may differ from ours, either way.
const noticeTolerance = 300 * time.Second

// ErrNotice means that a notice is not from this bank, or is not recent.
var ErrNotice = errors.New("sandbox: notice refused")

// Why a notice is refused, for the operator.
var (
	errNoticeHeaders   = errors.New("timestamp or signature missing, double or malformed")
	errNoticeTime      = errors.New("timestamp too far from now")
	errNoticeSignature = errors.New("signature does not match")
	errNoticeBody      = errors.New("body is not a notice")
)

// VerifyNotice implements [processor.Notifier]. Every error is an [ErrNotice].
func (p *Processor) VerifyNotice(h http.Header, body []byte, now time.Time) (noticeID string, err error) {
	if err := p.verify(h, body, now); err != nil {
		return "", errors.Join(ErrNotice, err)
	}
	n, err := readNotice(body)
	if err != nil {
		return "", errors.Join(ErrNotice, err)
	}
	return n.ID, nil
}

// verify checks the signature of a notice or a question.
func (p *Processor) verify(h http.Header, body []byte, now time.Time) (err error) {
	for _, secret := range p.secrets {
		if err = verifySignature(secret, h, body, now); err == nil {
			return nil
		}
	}
	return err
}

func verifySignature(secret string, h http.Header, body []byte, now time.Time) error {
	timestamp, ok1 := single(h, bankapi.HeaderTimestamp)
	signature, ok2 := single(h, bankapi.HeaderSignature)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if !ok1 || !ok2 || err != nil || strconv.FormatInt(seconds, 10) != timestamp {
		return errNoticeHeaders
	}
	want := bankapi.NoticeSignature(secret, timestamp, body)
	if !hmac.Equal([]byte(signature), []byte(want)) {
		return errNoticeSignature
	}
	if now.Sub(time.Unix(seconds, 0)).Abs() > noticeTolerance {
		return errNoticeTime
	}
	return nil
}

// single returns the value of a header that appears once: another program
// could read a second one.
func single(h http.Header, name string) (string, bool) {
	values := h[name]
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

// readNotice reads a body. It ignores unknown members, which a newer bank may
// add.
func readNotice(body []byte) (n bankapi.Notice, err error) {
	if err := json.Unmarshal(body, &n); err != nil {
		return bankapi.Notice{}, errNoticeBody
	}
	switch n.Subject {
	case bankapi.SubjectCharge, bankapi.SubjectTransfer, bankapi.SubjectRefund:
	default:
		return bankapi.Notice{}, errNoticeBody
	}
	if !isToken(n.ID) || !bankapi.IsExternalID(n.ExternalID) || n.Payment != nil && !validPayment(n.Payment) {
		return bankapi.Notice{}, errNoticeBody
	}
	return n, nil
}

// ParseNotice implements [processor.Notifier].
func (p *Processor) ParseNotice(body []byte) ([]processor.Hint, error) {
	n, err := readNotice(body)
	if err != nil {
		return nil, errors.Join(ErrNotice, err)
	}
	hint := processor.Hint{Subject: processor.Subject(n.Subject), ExternalID: n.ExternalID}
	if n.Payment != nil {
		paid := paymentOf(n.Payment)
		hint.Payment = &paid
	}
	return []processor.Hint{hint}, nil
}
