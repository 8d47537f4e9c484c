package payment

// installmentsMax is the most instalments of a card.
const installmentsMax = 12

// luhn says whether digits pass the check of ISO/IEC 7812-1, annex B.
func luhn(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		weighted := int(d)
		if (len(digits)-i)%2 == 0 {
			if weighted *= 2; weighted > 9 {
				weighted -= 9
			}
		}
		sum += weighted
	}
	return sum%10 == 0
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
