package brcode

// Checks of the fields of a code together. Errors carry the position in the
// complete code.

// fieldsUsual is more data objects than most codes have.
const fieldsUsual = 12

// parseFields splits s, which begins at pos of the code within the template
// parent, into data objects, which it appends to fields: for most templates an array on
// the caller's stack is enough.
func parseFields(fields []Field, s, parent string, pos int, in lengths) ([]Field, error) {
	var seen [100]bool
	for i := 0; i < len(s); {
		if i+headerLen > len(s) || !allDigits(s[i:i+headerLen]) {
			return nil, &Error{Field: parent, Pos: pos + i, Err: ErrTLV}
		}
		id := s[i : i+2]
		end := i + headerLen + in.bytes(s[i+headerLen:], number(s[i+2:i+headerLen]))
		if end == i+headerLen || end > len(s) {
			return nil, &Error{Field: within(parent, id), Pos: pos + i, Err: ErrTLV}
		}
		if seen[number(id)] {
			return nil, &Error{Field: within(parent, id), Pos: pos + i, Err: ErrDuplicate}
		}
		seen[number(id)] = true
		fields = append(fields, Field{ID: id, Value: s[i+headerLen : end]})
		i = end
	}
	return fields, nil
}

// takeCRC checks the first and last data object of the code s, and the
// checksum, and returns the fields without it.
func takeCRC(s string, fields []Field) ([]Field, error) {
	if len(fields) == 0 || fields[0].ID != idFormat {
		return nil, &Error{Field: idFormat, Pos: 0, Err: ErrOrder}
	}
	last := len(fields) - 1
	if fields[last].ID != idCRC {
		err := ErrMissing
		if find(fields, idCRC) != "" {
			err = ErrOrder
		}
		return nil, &Error{Field: idCRC, Pos: len(s), Err: err}
	}
	value := fields[last].Value
	pos := len(s) - headerLen - len(value)
	if len(value) != crcLen {
		return nil, &Error{Field: idCRC, Pos: pos, Err: ErrValue}
	}
	if digits := crcDigits(crc16(s[:pos+headerLen])); string(digits[:]) != value {
		return nil, &Error{Field: idCRC, Pos: pos, Err: ErrCRC}
	}
	return fields[:last], nil
}

// checkFields checks each field, and that the required ones are present.
func checkFields(fields []Field, r reading) error {
	var found targets
	pos := 0
	for _, f := range fields {
		if err := checkField(f, pos, r, &found); err != nil {
			return err
		}
		pos += headerLen + len(f.Value)
	}
	for _, id := range [...]string{idCategory, idCurrency, idCountry, idMerchantName, idCity, idAdditional} {
		if find(fields, id) == "" {
			return &Error{Field: id, Pos: pos, Err: ErrMissing}
		}
	}
	switch {
	case !found.account:
		return &Error{Field: idAccount, Pos: pos, Err: ErrNotPix}
	case found.key && found.url:
		return &Error{Field: idAccount, Pos: pos, Err: ErrConflict}
	case !found.key && !found.url && !found.recurrence:
		return &Error{Field: idAccount, Pos: pos, Err: ErrMissing}
	}
	check := checkReference
	if found.key {
		check = checkTxID
	}
	if err := check(found.txid); err != nil {
		return &Error{Field: path(idAdditional, subTxID), Pos: pos, Err: err}
	}
	return nil
}

// targets is which data objects of Pix a code has.
type targets struct {
	account, key, url, recurrence bool
	txid                          string
}

func checkField(f Field, pos int, r reading, found *targets) error {
	var err error
	switch f.ID {
	case idFormat:
		err = checkFixed(f.Value, formatVersion)
	case idInitiation:
		err = checkInitiation(f.Value)
	case idCategory:
		err = checkCategory(f.Value)
	case idCurrency:
		err = checkFixed(f.Value, currencyBRL)
	case idAmount:
		err = checkAmount(f.Value)
	case idCountry:
		err = checkFixed(f.Value, countryBR)
	case idMerchantName:
		err = r.text(f.Value, checkMerchantName)
	case idCity:
		err = r.text(f.Value, checkCity)
	default:
		if isTemplate(f.ID) {
			return checkTemplate(f, pos, r, found)
		}
	}
	if err != nil {
		return &Error{Field: f.ID, Pos: pos, Err: err}
	}
	return nil
}

func isAccount(id string) bool    { return id >= idAccount && id <= idAccountLast }
func isUnreserved(id string) bool { return id >= idUnreserved }

func isTemplate(id string) bool {
	return isAccount(id) || id == idAdditional || id == idLanguage || isUnreserved(id)
}

// checkTemplate checks the data objects in the template f, which begins at pos.
func checkTemplate(f Field, pos int, r reading, found *targets) error {
	var usual [fieldsUsual]Field
	subs, err := parseFields(usual[:0], f.Value, f.ID, pos+headerLen, r.lengths)
	if err != nil {
		return err
	}
	switch {
	case f.ID == idAdditional:
		found.txid = find(subs, subTxID)
	case isAccount(f.ID) && isPix(subs):
		if found.account {
			return &Error{Field: f.ID, Pos: pos, Err: ErrDuplicate}
		}
		found.account = true
		found.key = find(subs, subKey) != ""
		found.url = find(subs, subURL) != ""
		return checkSubs(f.ID, subs, pos+headerLen, r, checkAccountSub)
	case isUnreserved(f.ID) && isPix(subs):
		if found.recurrence {
			return &Error{Field: f.ID, Pos: pos, Err: ErrDuplicate}
		}
		found.recurrence = find(subs, subURL) != ""
		return checkSubs(f.ID, subs, pos+headerLen, r, checkRecurrenceSub)
	}
	return nil
}

// checkSubs checks each data object of a template whose value begins at pos.
func checkSubs(parent string, subs []Field, pos int, r reading, check func(sub, value string, r reading) error) error {
	for _, f := range subs {
		if err := check(f.ID, f.Value, r); err != nil {
			return &Error{Field: path(parent, f.ID), Pos: pos, Err: err}
		}
		pos += headerLen + len(f.Value)
	}
	return nil
}

func checkAccountSub(sub, value string, r reading) error {
	switch sub {
	case subKey:
		return checkKey(value)
	case subInfo:
		return r.text(value, checkInfo)
	case subFSS:
		return checkFSS(value)
	case subURL:
		return checkURL(value)
	default:
		return nil
	}
}

func checkRecurrenceSub(sub, value string, _ reading) error {
	if sub == subURL {
		return checkURL(value)
	}
	return nil
}

// within returns how an [Error] names the data object id of a template, or of
// the code itself.
func within(parent, id string) string {
	if parent == "" {
		return id
	}
	return path(parent, id)
}

// number returns the value of digits that were checked before.
func number(digits string) int {
	n := 0
	for i := range len(digits) {
		n = n*10 + int(digits[i]-'0')
	}
	return n
}
