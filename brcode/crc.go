package brcode

// crcTable is CRC-16/CCITT-FALSE (polynomial 0x1021, not reflected) of each byte.
var crcTable = func() (table [256]uint16) {
	const polynomial = 0x1021
	for i := range table {
		crc := uint16(i) << 8 //nolint:gosec // i is at most 255
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= polynomial
			}
		}
		table[i] = crc
	}
	return table
}()

// CRC16 returns the checksum that closes a BR Code: CRC-16/CCITT-FALSE over
// everything before it, including its own id and length ("6304"). A code contains
// it as four upper-case hexadecimal digits.
func CRC16(s string) uint16 { return crc16(s) }

func crc16[T string | []byte](s T) uint16 {
	crc := uint16(0xFFFF)
	for i := range len(s) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^s[i]]
	}
	return crc
}

// crcDigits returns a checksum as it is written in a code.
func crcDigits(crc uint16) [crcLen]byte {
	const digits = "0123456789ABCDEF"
	return [crcLen]byte{digits[crc>>12], digits[crc>>8&0xF], digits[crc>>4&0xF], digits[crc&0xF]}
}

// appendCRC appends the checksum field of the payload in b.
func appendCRC(b []byte) []byte {
	b = append(b, crcHeader...)
	digits := crcDigits(crc16(b))
	return append(b, digits[:]...)
}
