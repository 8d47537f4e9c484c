package store

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/db"
)

// entryVersion begins the input of an entry's hash.
const entryVersion = 1

// entryHead is the last entry of a merchant's ledger.
type entryHead struct {
	number int64
	hash   []byte
	at     time.Time
}

// next is the time of the next entry: now, or the time of the last one if another process's clock
// was ahead, so that times follow the numbers. A clock that was wrong by more than clocksDiffer does
// not date the entries after it.
func (h *entryHead) next(now time.Time) time.Time {
	if ahead := h.at.Sub(now); ahead > 0 && ahead < clocksDiffer {
		return h.at
	}
	return now
}

// chainEntries gives the entries of a commit their hashes, each merchant's in their order.
func (c *Changes) chainEntries(keys *db.Keyring) {
	var buffer [512]byte
	sums := make([]byte, 0, len(c.postings)/2*sha256.Size) // an entry has at least two lines
	for rest := c.postings; len(rest) > 0; {
		lines := entryOf(rest)
		rest = rest[len(lines):]
		last := &c.l.balances[lines[0].merchant].last
		sums = keys.AppendMAC(sums, db.PurposeEntry, appendEntry(buffer[:0], last.hash, lines))
		last.hash = slices.Clip(sums[len(sums)-sha256.Size:])
		lines[0].entryHash = last.hash
	}
}

// entryOf is the lines of the first entry in a list.
func entryOf(list []posting) []posting {
	n := 1
	for n < len(list) && list[n].Entry == list[0].Entry {
		n++
	}
	return list[:n]
}

// appendEntry appends the input of an entry's hash: its lines, and the hash of the merchant's entry
// before. Texts have their lengths before them, so that no two entries have the same form.
func appendEntry(b, previous []byte, lines []posting) []byte {
	first := &lines[0]
	b = append(b, entryVersion, byte(len(previous)))
	b = append(b, previous...)
	b = append(b, first.merchant[:]...)
	b = append(b, first.Entry[:]...)
	b = append(b, first.Subject[:]...)
	b = append(b, first.Part[:]...)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(first.Kind))), first.Kind...) //nolint:gosec // short
	for _, n := range [...]int64{first.entryNumber, micros(first.CreatedAt), int64(len(lines))} {
		b = binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // bits
	}
	for i := range lines {
		p := &lines[i]
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(p.Account))), p.Account...) //nolint:gosec // short
		for _, n := range [...]int64{int64(p.Amount), p.Number, int64(p.BalanceAfter)} {
			b = binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // bits
		}
	}
	return b
}
