package apipix

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// noticeEntries bounds the payments of one notice, and what it asks to look up.
const noticeEntries = 1000

// Why a notice is refused, for the operator.
var (
	ErrNotice      = errors.New("apipix: notice refused")
	errNoticeBody  = errors.New("body is not a notice")
	errNoticePeer  = errors.New("it came without a client certificate: the TLS proxy must ask for one and pass it on")
	errNoticeChain = errors.New("its client certificate is not of the authorities in notice-ca")

	errNoticeSubject = errors.New("its client certificate is not one that notice-subject names")
)

// VerifyPeer implements [processor.PeerVerifier]. The chain begins with the sender's
// certificate.
func (p *Processor) VerifyPeer(chain []*x509.Certificate, now time.Time) error {
	return p.sender.verify(chain, now)
}

// VerifyNotice implements [processor.Notifier]. A notice has no id, so its contents are its
// id: the same contents again say nothing new. The standard signs nothing: the token in the
// address, and with notice-auth=mtls the certificate, prove the sender.
func (p *Processor) VerifyNotice(_ http.Header, body []byte, _ time.Time) (noticeID string, err error) {
	if _, err := readNotice(body); err != nil {
		return "", errors.Join(ErrNotice, err)
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:]), nil
}

// readNotice reads the entries of a notice. Banks test an address with a body that has none.
func readNotice(body []byte) ([]pix, error) {
	if len(body) == 0 {
		return nil, nil
	}
	var n struct {
		Entries []jsontext.Value `json:"pix"`
	}
	if json.Unmarshal(body, &n, anyText) != nil || len(n.Entries) > noticeEntries {
		return nil, errNoticeBody
	}
	var entries []pix
	hints := 0
	for _, raw := range n.Entries {
		var v pix
		if unmarshal(raw, &v) == nil && v.isNotice() {
			entries = append(entries, v)
			hints += len(v.hints())
		}
	}
	if hints > noticeEntries { // each is a look-up
		return nil, errNoticeBody
	}
	if len(entries) == 0 && len(n.Entries) > 0 {
		return nil, errNoticeBody
	}
	return entries, nil
}

// isNotice reports whether an entry says enough to look something up. The others are
// found in the lists.
func (v *pix) isNotice() bool {
	if v.Kind == kindTransfer {
		return isWord(v.Extras.TransferID, idMax)
	}
	_, ok := v.payment()
	return ok
}

// ParseNotice implements [processor.Notifier].
func (p *Processor) ParseNotice(body []byte) ([]processor.Hint, error) {
	entries, err := readNotice(body)
	if err != nil {
		return nil, errors.Join(ErrNotice, err)
	}
	var hints []processor.Hint
	for i := range entries {
		hints = append(hints, entries[i].hints()...)
	}
	return hints, nil
}

// hints are what an entry of a notice asks to look up. A payment of no charge is only in the
// list of payments, and a return that was not requested here in the list of returns.
func (v *pix) hints() (hints []processor.Hint) {
	if v.Kind == kindTransfer {
		state, _ := transferState(v.Status)
		return []processor.Hint{{Subject: processor.SubjectTransfer, ExternalID: v.Extras.TransferID, Transfer: state, Reason: shownText(v.Extras.Error.Reason)}}
	}
	paid, ok := v.payment()
	if !ok {
		return nil
	}
	if isTxID(v.TxID) {
		hints = append(hints, processor.Hint{Subject: processor.SubjectCharge, ExternalID: v.TxID, Payment: &paid})
	}
	for i := range v.Returns {
		if r := &v.Returns[i]; !r.isDispute() && len(r.ID) == payment.ExternalIDLength && isWord(r.ID, idMax) {
			hints = append(hints, processor.Hint{Subject: processor.SubjectRefund, ExternalID: r.ID})
		}
	}
	return hints
}

// shownMax is the longest text of a bank that is shown, in bytes.
const shownMax = 200

// shownText is a bank's reason if it can be kept and shown; "" if not: it may have a document, a key or an
// address in it.
func shownText(text string) string {
	text = strings.TrimSpace(text)
	digits := 0
	for _, r := range text {
		if digits++; r < '0' || r > '9' {
			digits = 0
		}
		if digits > 4 || r == '@' || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ""
		}
	}
	if len(text) > shownMax {
		return ""
	}
	return text
}

// name is an id of a return that is unique at the bank: its own one is unique among the
// returns of one payment, unless we made it.
func (r *pixReturn) name(paymentID string) string {
	if len(r.ID) == payment.ExternalIDLength {
		return r.ID
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s", paymentID, r.ID))
	return hex.EncodeToString(sum[:])[:payment.ExternalIDLength]
}
