package brcode

import "strconv"

// Static is a code that pays a Pix key. It needs Key, MerchantName and City.
type Static struct {
	// Key is the receiver's Pix key in its normal form, up to 77 characters.
	Key string
	// Info is a text shown to the payer. It shares field 26 with the key and with
	// FSS: with an EVP key, 37 characters are left. May be empty.
	Info string
	// FSS is the ISPB, 8 characters, of the facilitator of a withdrawal (Pix
	// Saque). May be empty.
	FSS string
	// MerchantName is the receiver's name, up to 25 characters.
	MerchantName string
	// City is the receiver's city, up to 15 characters.
	City string
	// PostalCode is the receiver's CEP, 8 digits. May be empty.
	PostalCode string
	// Category is the merchant category code (ISO 18245), 4 digits. Empty stands for
	// 0000, not given.
	Category string
	// Amount is in cents. With 0, the payer chooses it.
	Amount int64
	// TxID is the receiver's transaction id, up to 25 ASCII letters and digits.
	// Empty stands for none, [NoTxID].
	TxID string
	// Recurrence is the URL, without https://, of a recurrence that the code offers
	// with the payment. May be empty.
	Recurrence string
	// SingleUse marks a code that is not to be paid twice.
	SingleUse bool
}

// Encode returns the code. The error is an [*Error].
func (s Static) Encode() (string, error) {
	p := payload{
		key: s.Key, info: s.Info, fss: s.FSS,
		name: s.MerchantName, city: s.City, postalCode: s.PostalCode, category: s.Category,
		amount: s.Amount, txid: s.TxID, recurrence: s.Recurrence, once: s.SingleUse,
	}
	if err := checkKey(s.Key); err != nil {
		return "", &Error{Field: idAccount + "-" + subKey, Pos: positionUnknown, Err: err}
	}
	return p.encode()
}

// Dynamic is a code that pays the charge that a URL describes, or offers a
// recurrence, or both. It needs URL or Recurrence, MerchantName and City.
type Dynamic struct {
	// URL is the address of the charge, without https://, up to 77 characters.
	URL string
	// Recurrence is the address of a recurrence (Pix Automático), without
	// https://, up to 77 characters.
	Recurrence string
	// MerchantName is the receiver's name, up to 25 characters.
	MerchantName string
	// City is the receiver's city, up to 15 characters.
	City string
	// PostalCode is the receiver's CEP, 8 digits. May be empty.
	PostalCode string
	// Category is the merchant category code (ISO 18245), 4 digits. Empty stands for
	// 0000, not given.
	Category string
	// Amount is in cents. 0 leaves it out. Payers' banks take the amount from the
	// URL; here it is for people and programs that cannot.
	Amount int64
}

// Encode returns the code. The error is an [*Error].
func (d Dynamic) Encode() (string, error) {
	p := payload{
		url: d.URL, recurrence: d.Recurrence, once: d.URL != "",
		name: d.MerchantName, city: d.City, postalCode: d.PostalCode, category: d.Category,
		amount: d.Amount,
	}
	if d.URL == "" && d.Recurrence == "" {
		return "", &Error{Field: idAccount + "-" + subURL, Pos: positionUnknown, Err: ErrMissing}
	}
	return p.encode()
}

// payload is the common input of both kinds. An empty value is left out, or
// replaced by its fixed value.
type payload struct {
	key, info, fss, url              string
	name, city, postalCode, category string
	txid, recurrence                 string
	amount                           int64
	once                             bool
}

func (p *payload) encode() (string, error) {
	if p.category == "" {
		p.category = categoryUnset
	}
	if p.txid == "" {
		p.txid = NoTxID
	}
	if err := p.check(); err != nil {
		return "", err
	}
	var buffer [MaxPayload]byte
	b := appendField(buffer[:0], idFormat, formatVersion)
	if p.once {
		b = appendField(b, idInitiation, initiationOnce)
	}
	b = p.appendAccount(b)
	b = appendField(b, idCategory, p.category)
	b = appendField(b, idCurrency, currencyBRL)
	b = appendAmount(b, p.amount)
	b = appendField(b, idCountry, countryBR)
	b = appendField(b, idMerchantName, p.name)
	b = appendField(b, idCity, p.city)
	b = appendField(b, idPostalCode, p.postalCode)
	b = appendHeader(b, idAdditional, fieldLen(p.txid))
	b = appendField(b, subTxID, p.txid)
	if p.recurrence != "" {
		b = appendHeader(b, idUnreserved, guiFieldLen+fieldLen(p.recurrence))
		b = appendField(b, subGUI, gui)
		b = appendField(b, subURL, p.recurrence)
	}
	return string(appendCRC(b)), nil
}

// check checks every part, so that encode cannot write an invalid code.
func (p *payload) check() error {
	for _, c := range [...]struct {
		id, sub  string
		value    string
		check    func(string) error
		required bool
	}{
		{idAccount, subInfo, p.info, checkInfo, false},
		{idAccount, subFSS, p.fss, checkFSS, false},
		{idAccount, subURL, p.url, checkURL, false},
		{idCategory, "", p.category, checkCategory, true},
		{idMerchantName, "", p.name, checkMerchantName, true},
		{idCity, "", p.city, checkCity, true},
		{idPostalCode, "", p.postalCode, checkPostalCode, false},
		{idAdditional, subTxID, p.txid, checkTxID, true},
		{idUnreserved, subURL, p.recurrence, checkURL, false},
	} {
		if c.value == "" && !c.required {
			continue
		}
		if err := c.check(c.value); err != nil {
			return &Error{Field: path(c.id, c.sub), Pos: positionUnknown, Err: err}
		}
	}
	if p.amount < 0 || p.amount > MaxAmount {
		return &Error{Field: idAmount, Pos: positionUnknown, Err: ErrValue}
	}
	if p.accountLen() > valueMax {
		return &Error{Field: idAccount, Pos: positionUnknown, Err: ErrTooLong}
	}
	return nil
}

func (p *payload) accountLen() int {
	return guiFieldLen + fieldLen(p.key) + fieldLen(p.info) + fieldLen(p.fss) + fieldLen(p.url)
}

func (p *payload) appendAccount(b []byte) []byte {
	b = appendHeader(b, idAccount, p.accountLen())
	b = appendField(b, subGUI, gui)
	b = appendField(b, subKey, p.key)
	b = appendField(b, subInfo, p.info)
	b = appendField(b, subFSS, p.fss)
	return appendField(b, subURL, p.url)
}

// fieldLen returns the length of a complete field; an empty value has none.
func fieldLen(value string) int {
	if value == "" {
		return 0
	}
	return headerLen + len(value)
}

func appendHeader(b []byte, id string, length int) []byte {
	return append(b, id[0], id[1], byte('0'+length/10), byte('0'+length%10))
}

// appendField appends nothing for an empty value.
func appendField(b []byte, id, value string) []byte {
	if value == "" {
		return b
	}
	return append(appendHeader(b, id, len(value)), value...)
}

// appendAmount appends nothing for 0 cents.
func appendAmount(b []byte, cents int64) []byte {
	if cents == 0 {
		return b
	}
	var buffer [amountMaxLen]byte
	text := strconv.AppendInt(buffer[:0], cents/centsPerReal, 10)
	text = append(text, '.', byte('0'+cents%centsPerReal/10), byte('0'+cents%10))
	return append(appendHeader(b, idAmount, len(text)), text...)
}

// path returns how an [Error] names a data object.
func path(id, sub string) string {
	if sub == "" {
		return id
	}
	return id + "-" + sub
}
