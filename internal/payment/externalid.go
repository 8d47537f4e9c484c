package payment

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"math/bits"
	"strings"
)

// base62 is the alphabet of external ids: the one that Pix allows in a txid
// and an idEnvio (API Pix, schemas TxId and IdEnvio).
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Lengths of an external id, in characters.
const (
	ExternalIDLength       = 32
	ExternalIDStaticLength = 25 // the part that fits into a static BR Code
	merchantDigits         = 5
	checkDigits            = 4

	// ExternalIDKeyLength is the length of the key of the check, in bytes.
	ExternalIDKeyLength = 32
)

// MerchantNumberMax is the largest short number of a merchant: 62^5 - 1.
const MerchantNumberMax = 916_132_831

// ErrExternalID means that a text is not an external id.
var ErrExternalID = errors.New("payment: not an external id")

// ExternalIDs derives the external ids of an installation, and recognises them. Both
// fields are stored in the database when it is created, and never change.
type ExternalIDs struct {
	Installation ID
	Key          [ExternalIDKeyLength]byte // of the check
}

// New derives the one id that an order ever has at processors: the merchant's short
// number, a check, and a digest of installation, merchant, operation and reference. A
// restored backup does not change it, which could pay an order twice.
func (x *ExternalIDs) New(number int64, merchant ID, op Operation, reference string) string {
	var buffer [256]byte
	msg := append(buffer[:0], "porteira/external-id/1\x00"...)
	msg = append(msg, x.Installation[:]...)
	msg = append(msg, merchant[:]...)
	msg = append(msg, op...)
	msg = append(msg, 0)
	msg = append(msg, reference...)
	digest := sha256.Sum256(msg)

	var out [ExternalIDLength]byte
	AppendMerchantNumber(out[:0], number)
	limbs := [4]uint64{be64(digest[0:]), be64(digest[8:]), be64(digest[16:]), be64(digest[24:])}
	for i := merchantDigits + checkDigits; i < len(out); i++ {
		out[i] = base62[divmod62(&limbs)]
	}
	check := x.check(string(out[:]))
	copy(out[merchantDigits:], check[:])
	return string(out[:])
}

// check is a keyed hash of the part of an external id that fits into a static BR Code,
// without the check itself. Its message has one length, so the key can be its prefix.
func (x *ExternalIDs) check(externalID string) (check [checkDigits]byte) {
	var buffer [ExternalIDKeyLength + ExternalIDStaticLength - checkDigits]byte
	msg := append(buffer[:0], x.Key[:]...)
	msg = append(msg, externalID[:merchantDigits]...)
	msg = append(msg, externalID[merchantDigits+checkDigits:ExternalIDStaticLength]...)
	digest := sha256.Sum256(msg)
	limbs := [4]uint64{be64(digest[0:]), be64(digest[8:]), be64(digest[16:]), be64(digest[24:])}
	for i := range check {
		check[i] = base62[divmod62(&limbs)]
	}
	return check
}

// MerchantNumber reads the short number of an id that this installation derived,
// complete or cut to the part in a static BR Code; else ErrExternalID: the id of another
// installation or program, or one that a payer chose.
func (x *ExternalIDs) MerchantNumber(externalID string) (int64, error) {
	number, err := MerchantNumber(externalID)
	if err != nil {
		return 0, err
	}
	check := x.check(externalID)
	if subtle.ConstantTimeCompare(check[:], []byte(externalID[merchantDigits:merchantDigits+checkDigits])) == 0 {
		return 0, ErrExternalID
	}
	return number, nil
}

// MerchantNumber reads the short number at the start of an external id of any
// installation, complete or cut to the part in a static BR Code; else ErrExternalID.
func MerchantNumber(externalID string) (int64, error) {
	if len(externalID) < ExternalIDStaticLength || len(externalID) > ExternalIDLength {
		return 0, ErrExternalID
	}
	for i := merchantDigits; i < len(externalID); i++ {
		if strings.IndexByte(base62, externalID[i]) < 0 {
			return 0, ErrExternalID
		}
	}
	return ParseMerchantNumber(externalID[:merchantDigits])
}

// AppendMerchantNumber appends a merchant's short number, five digits of base 62:
// the beginning of external ids and of checkout tokens.
func AppendMerchantNumber(dst []byte, number int64) []byte {
	var out [merchantDigits]byte
	for i := merchantDigits - 1; i >= 0; i-- {
		out[i] = base62[number%62]
		number /= 62
	}
	return append(dst, out[:]...)
}

// ParseMerchantNumber reads what AppendMerchantNumber wrote; else ErrExternalID.
func ParseMerchantNumber(text string) (n int64, err error) {
	if len(text) != merchantDigits {
		return 0, ErrExternalID
	}
	for i := range len(text) {
		digit := strings.IndexByte(base62, text[i])
		if digit < 0 {
			return 0, ErrExternalID
		}
		n = n*62 + int64(digit)
	}
	return n, nil
}

// divmod62 divides the 256-bit number by 62 and returns the remainder.
func divmod62(limbs *[4]uint64) uint64 {
	var rest uint64
	for i := range limbs {
		limbs[i], rest = bits.Div64(rest, limbs[i], 62)
	}
	return rest
}

func be64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0])<<56 | uint64(b[1])<<48 | uint64(b[2])<<40 | uint64(b[3])<<32 |
		uint64(b[4])<<24 | uint64(b[5])<<16 | uint64(b[6])<<8 | uint64(b[7])
}
