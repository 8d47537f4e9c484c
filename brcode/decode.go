package brcode

import "strings"

// Field is a data object: an id of two digits and a value of 1 to 99
// characters. The value of a template (26 to 51, 62, 64, 80 to 99) is made of
// data objects itself: see [Code.Value].
type Field struct {
	// ID is two digits.
	ID string
	// Value is the text after the length.
	Value string
}

// Code is a decoded code. All its methods read Fields.
type Code struct {
	// Fields are all data objects of the code in their order, including unknown ones;
	// only the checksum (63) is left out.
	Fields []Field

	lengths lengths // in which the templates count
}

// Decode reads a code and checks its structure, its checksum, and the form of
// every field that the Manual do BR Code defines. [Code.Encode] reproduces an
// accepted code exactly. The error is an [*Error]. Decode does not check that a
// key exists or that a URL belongs to a bank.
func Decode(s string) (Code, error) {
	if len(s) > MaxPayload {
		return Code{}, &Error{Pos: MaxPayload, Err: ErrTooLong}
	}
	if i := badCharacter(s); i >= 0 {
		return Code{}, &Error{Pos: i, Err: ErrCharset}
	}
	return decode(s, strict)
}

// decode reads a code of valid characters. Its error is an [*Error].
func decode(s string, r reading) (Code, error) {
	fields, err := parseFields(make([]Field, 0, fieldsUsual), s, "", 0, r.lengths)
	if err != nil {
		return Code{}, err
	}
	fields, err = takeCRC(s, fields)
	if err != nil {
		return Code{}, err
	}
	if err := checkFields(fields, r); err != nil {
		return Code{}, err
	}
	return Code{Fields: fields, lengths: r.lengths}, nil
}

// Encode writes the fields and their checksum, and checks the result as
// [Decode] does. The error is an [*Error].
func (c Code) Encode() (string, error) {
	b := make([]byte, 0, MaxPayload)
	for _, f := range c.Fields {
		switch {
		case len(f.ID) != 2 || !allDigits(f.ID) || f.Value == "":
			return "", &Error{Field: f.ID, Pos: len(b), Err: ErrTLV}
		case len(f.Value) > valueMax:
			return "", &Error{Field: f.ID, Pos: len(b), Err: ErrTooLong}
		}
		b = appendField(b, f.ID, f.Value)
	}
	s := string(appendCRC(b))
	if _, err := Decode(s); err != nil {
		return "", err
	}
	return s, nil
}

// Kind returns the kind of the code, or "" if it has none.
func (c Code) Kind() Kind {
	key, url, recurrence := c.Key(), c.URL(), c.Recurrence()
	switch {
	case recurrence != "" && (key != "" || url != ""):
		return KindComposite
	case recurrence != "":
		return KindRecurrence
	case key != "":
		return KindStatic
	case url != "":
		return KindDynamic
	default:
		return ""
	}
}

// Value returns the value of the data object with that id, or "" if there is
// none: Value("59"), and, within a template, Value("62", "05").
func (c Code) Value(ids ...string) string {
	fields, value := c.Fields, ""
	var usual [fieldsUsual]Field
	for depth, id := range ids {
		if depth > 0 {
			fields, _ = parseFields(usual[:0], value, "", 0, c.lengths) // Decode has checked it
		}
		value = find(fields, id)
	}
	return value
}

// Key returns the Pix key of a static code, or "".
func (c Code) Key() string { return c.inPixTemplate(idAccount, idAccountLast, subKey) }

// Info returns the text for the payer of a static code, or "".
func (c Code) Info() string { return c.inPixTemplate(idAccount, idAccountLast, subInfo) }

// FSS returns the ISPB of the facilitator of a withdrawal, or "".
func (c Code) FSS() string { return c.inPixTemplate(idAccount, idAccountLast, subFSS) }

// URL returns the address of a charge, without https://, or "".
func (c Code) URL() string { return c.inPixTemplate(idAccount, idAccountLast, subURL) }

// Recurrence returns the address of a recurrence, without https://, or "".
func (c Code) Recurrence() string {
	return c.inPixTemplate(idUnreserved, idUnreservedLast, subURL)
}

// MerchantName returns the receiver's name.
func (c Code) MerchantName() string { return c.Value(idMerchantName) }

// City returns the receiver's city.
func (c Code) City() string { return c.Value(idCity) }

// PostalCode returns the receiver's CEP, or "".
func (c Code) PostalCode() string { return c.Value(idPostalCode) }

// Category returns the merchant category code, 0000 if it is not given.
func (c Code) Category() string { return c.Value(idCategory) }

// TxID returns the transaction id, or "" if there is none ([NoTxID]).
func (c Code) TxID() string {
	if txid := c.Value(idAdditional, subTxID); txid != NoTxID {
		return txid
	}
	return ""
}

// SingleUse reports whether the code is marked as not to be paid twice.
func (c Code) SingleUse() bool { return c.Value(idInitiation) == initiationOnce }

// Amount returns the amount in cents, and 0 if the code has none.
func (c Code) Amount() int64 {
	text := c.Value(idAmount)
	if checkAmount(text) != nil {
		return 0
	}
	cents := int64(0)
	for i := range len(text) {
		if text[i] != '.' {
			cents = cents*10 + int64(text[i]-'0')
		}
	}
	return cents
}

// inPixTemplate returns a value of the template of Pix among those with ids
// from first to last.
func (c Code) inPixTemplate(first, last, sub string) string {
	var usual [fieldsUsual]Field
	for _, f := range c.Fields {
		if f.ID < first || f.ID > last {
			continue
		}
		if fields, err := parseFields(usual[:0], f.Value, "", 0, c.lengths); err == nil && isPix(fields) {
			return find(fields, sub)
		}
	}
	return ""
}

// isPix reports whether a template belongs to Pix. The manual's own examples
// write its name in both cases.
func isPix(fields []Field) bool {
	return strings.EqualFold(find(fields, subGUI), gui)
}

func find(fields []Field, id string) string {
	for _, f := range fields {
		if f.ID == id {
			return f.Value
		}
	}
	return ""
}
