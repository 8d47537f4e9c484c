package payment

import (
	"crypto/sha256"
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
)

// MerchantNumberMax is the largest short number of a merchant: 62^5 - 1.
const MerchantNumberMax = 916_132_831

// ErrExternalID says that a text is not an external id.
var ErrExternalID = errors.New("payment: not an external id")

// ExternalID derives the one id that an order ever has at processors: the
// merchant's short number, then a digest of installation, merchant, operation and
// reference. It contains no secret: a lost key or a restored backup cannot change
// it, which could pay an order twice.
func ExternalID(installation ID, number int64, merchant ID, op Operation, reference string) string {
	var buffer [256]byte
	msg := append(buffer[:0], "porteira/external-id/1\x00"...)
	msg = append(msg, installation[:]...)
	msg = append(msg, merchant[:]...)
	msg = append(msg, op...)
	msg = append(msg, 0)
	msg = append(msg, reference...)
	digest := sha256.Sum256(msg)

	var out [ExternalIDLength]byte
	AppendMerchantNumber(out[:0], number)
	limbs := [4]uint64{be64(digest[0:]), be64(digest[8:]), be64(digest[16:]), be64(digest[24:])}
	for i := merchantDigits; i < len(out); i++ {
		out[i] = base62[divmod62(&limbs)]
	}
	return string(out[:])
}

// MerchantNumber reads the short number at the start of an external id, complete
// or cut to the part in a static BR Code; else ErrExternalID.
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
