package brcode

// Checks of single values, for both directions. They return one of the package's
// errors, without a position.

// checkText is for free text.
func checkText(s string, maxLen int) error {
	if s == "" {
		return ErrMissing
	}
	if len(s) > maxLen {
		return ErrTooLong
	}
	if badCharacter(s) >= 0 {
		return ErrCharset
	}
	return nil
}

// badCharacter returns the position of the first character outside printable
// ASCII, or -1.
func badCharacter(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return i
		}
	}
	return -1
}

// checkWord is for text without blanks.
func checkWord(s string, maxLen int) error {
	if err := checkText(s, maxLen); err != nil {
		return err
	}
	for i := range len(s) {
		if s[i] == ' ' {
			return ErrValue
		}
	}
	return nil
}

func checkKey(s string) error          { return checkWord(s, MaxKey) }
func checkInfo(s string) error         { return checkText(s, MaxInfo) }
func checkMerchantName(s string) error { return checkText(s, MaxMerchantName) }
func checkCity(s string) error         { return checkText(s, MaxCity) }
func checkPostalCode(s string) error   { return checkText(s, valueMax) }

// checkURL rejects a scheme: codes omit https://.
func checkURL(s string) error {
	if err := checkWord(s, MaxURL); err != nil {
		return err
	}
	if s[0] == '/' {
		return ErrValue
	}
	for i := range len(s) - 1 {
		if s[i] == ':' && s[i+1] == '/' {
			return ErrValue
		}
	}
	return nil
}

// checkFSS is for an ISPB, which may contain letters as it derives from a CNPJ.
func checkFSS(s string) error {
	if len(s) != fssLen {
		return ErrValue
	}
	for i := range len(s) {
		if !isDigit(s[i]) && (s[i] < 'A' || s[i] > 'Z') {
			return ErrValue
		}
	}
	return nil
}

// checkTxID is for the transaction id of a static code.
func checkTxID(s string) error {
	if s == NoTxID {
		return nil
	}
	if err := checkText(s, MaxTxID); err != nil {
		return err
	}
	for i := range len(s) {
		lower := s[i] | 0x20
		if !isDigit(s[i]) && (lower < 'a' || lower > 'z') {
			return ErrValue
		}
	}
	return nil
}

// checkReference is for the same field of a dynamic code, which should be *** and
// is ignored by payers' banks.
func checkReference(s string) error { return checkText(s, MaxTxID) }

func checkInitiation(s string) error {
	if s != initiationMany && s != initiationOnce {
		return ErrValue
	}
	return nil
}

func checkCategory(s string) error {
	if len(s) != categoryLen || !allDigits(s) {
		return ErrValue
	}
	return nil
}

// checkAmount is for 1 to 10 digits of reais, a dot and two digits of cents.
func checkAmount(s string) error {
	dot := len(s) - amountDecimals - 1
	if len(s) > amountMaxLen {
		return ErrTooLong
	}
	if dot < 1 || s[dot] != '.' || !allDigits(s[:dot]) || !allDigits(s[dot+1:]) {
		return ErrValue
	}
	return nil
}

func checkFixed(s, want string) error {
	if s != want {
		return ErrValue
	}
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func allDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}
