package wire

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/problem"
)

// payoutColumns are the columns that a batch in CSV may have: the fields of a payout.
var payoutColumns = []string{
	"amount", "pixKey", "pixKeyType", "beneficiaryName", "beneficiaryDocument", "webhookUrl", "referenceId",
}

// cellsMax bounds the separators and lines of a body, and so the work and the memory for its cells.
// Names may have both too.
const cellsMax = 20 * BatchItemsMax

// byteOrderMark begins the files of some spreadsheets.
var byteOrderMark = []byte("\xef\xbb\xbf")

// PayoutBatchCSV is PayoutBatch for a body of CSV (RFC 4180) in UTF-8 with a header, whose columns are in
// any order and separated by commas, semicolons or tabs. An empty cell is an absent field, and an empty row
// is none. decimal: amounts are in reais, such as 1.234,56 or 1234.56; else in cents. The reference of the
// batch is not in the body.
func (d *Decoder) PayoutBatchCSV(reference Field[string], decimal bool, body []byte) (*PayoutBatchRequest, *problem.Error) {
	b := newBatchReader(d)
	b.request.ReferenceID, b.sent = reference, true
	b.amountDetail = "must be an integer of cents: 1000 is R$ 10,00; or send ?amounts=decimal"
	if decimal {
		b.amountDetail = "must be an amount in reais, such as 1.234,56 or 1234.56"
	}
	if invalid := b.readCSV(body, decimal); invalid != nil {
		return &b.request, invalid
	}
	return &b.request, b.finish()
}

// NameLines adds the lines of the file to the errors of items, if the batch came as CSV.
func (r *PayoutBatchRequest) NameLines(invalid *problem.Error) *problem.Error {
	if invalid == nil || len(r.lines) == 0 {
		return invalid
	}
	named := *invalid
	named.Fields = slices.Clone(invalid.Fields)
	for i := range named.Fields {
		f := &named.Fields[i]
		index, _, _ := strings.Cut(strings.TrimPrefix(f.Field, "items["), "]")
		if at, err := strconv.Atoi(index); err == nil && strings.HasPrefix(f.Field, "items[") && at < len(r.lines) {
			f.Detail += " (line " + strconv.Itoa(r.lines[at]) + " of the file)"
		}
	}
	return &named
}

var errNotUTF8 = problem.New(problem.MalformedCSV, "The body is not valid UTF-8. In a spreadsheet, save the file as \"CSV UTF-8\".")

// readCSV reads the rows as items: each becomes the JSON object that it stands for, so both
// forms have the same rules. Its error means that the body is malformed.
func (b *batchReader) readCSV(body []byte, decimal bool) *problem.Error {
	if !utf8.Valid(body) {
		return errNotUTF8
	}
	body = bytes.TrimPrefix(body, byteOrderMark)
	separator, invalid := separatorOf(body)
	if invalid != nil {
		return invalid
	}
	if bytes.Count(body, []byte{separator})+bytes.Count(body, []byte{'\n'}) > cellsMax {
		return problem.New(problem.MalformedCSV, "The body has too many cells or lines.")
	}
	rows := csv.NewReader(bytes.NewReader(body))
	rows.Comma, rows.ReuseRecord, rows.FieldsPerRecord = rune(separator), true, -1
	first, err := rows.Read()
	if err != nil {
		return explainCSV(err)
	}
	header := withoutEmpty(slices.Clone(first))
	if invalid := b.checkHeader(header); invalid != nil {
		return invalid
	}
	var object []byte
	for {
		row, err := rows.Read()
		if err == io.EOF { //nolint:errorlint // documented to be EOF itself
			return nil
		}
		if err != nil {
			return explainCSV(err)
		}
		line, _ := rows.FieldPos(0)
		cells := len(row)
		switch row = withoutEmpty(row); {
		case len(row) == 0 && cells > 1: // of separators only, as spreadsheets write them
			continue
		case len(row) > len(header):
			return problem.New(problem.MalformedCSV, "Line "+strconv.Itoa(line)+" has more cells than the header.")
		case cells < len(header):
			return problem.New(problem.MalformedCSV, "Line "+strconv.Itoa(line)+" does not have as many cells as the header.")
		}
		if object, err = appendObject(object[:0], header, row, decimal); err != nil {
			return errNotUTF8.With(err)
		}
		b.request.lines = append(b.request.lines, line)
		if err := b.item(object); errors.Is(err, errTruncated) {
			return nil
		} else if err != nil {
			return problem.From(err)
		}
	}
}

// withoutEmpty is a row without the empty cells at its end.
func withoutEmpty(row []string) []string {
	for len(row) > 0 && row[len(row)-1] == "" {
		row = row[:len(row)-1]
	}
	return row
}

// separatorOf is the separator of the columns, by the header: a spreadsheet in Brazil writes semicolons. No
// name of a field has one.
func separatorOf(body []byte) (byte, *problem.Error) {
	header, _, _ := bytes.Cut(body, []byte{'\n'})
	header, _ = bytes.CutSuffix(header, []byte{'\r'})
	if bytes.ContainsRune(header, '\r') {
		return 0, problem.New(problem.MalformedCSV, "Lines must end with CRLF or LF, not with CR alone.")
	}
	for _, separator := range []byte(",;\t") {
		if bytes.IndexByte(header, separator) >= 0 {
			return separator, nil
		}
	}
	return ',', nil
}

// checkHeader returns an error if a column appears twice, or none is a field: then the first
// line is a row, whose values no error may repeat. A column that is no field is an unknown field;
// its cells are not read.
func (b *batchReader) checkHeader(header []string) *problem.Error {
	if len(header) > errorsMax {
		return problem.New(problem.MalformedCSV, "The header has too many columns.")
	}
	if !slices.ContainsFunc(header, func(name string) bool { return slices.Contains(payoutColumns, name) }) {
		return problem.New(problem.MalformedCSV, "The first line must be a header with the names of the fields.")
	}
	for i, name := range header {
		if slices.Contains(header[:i], name) {
			return problem.New(problem.DuplicateField, "The header contains a duplicate column.").WithFields(problem.FieldError{
				Field: joinName("", name), Code: problem.CodeNotAllowed, Detail: "must appear only once",
			})
		}
		if !slices.Contains(payoutColumns, name) {
			b.unknown = true
			b.errs.add(joinName("", name), problem.CodeUnknownField, "is not a column of this request")
		}
	}
	return nil
}

// appendObject appends the JSON object of a row. An amount that is none becomes a string, whose type is an
// error of its field.
func appendObject(dst []byte, header, row []string, decimal bool) ([]byte, error) {
	dst = append(dst, '{')
	for i, cell := range row {
		if cell == "" || !slices.Contains(payoutColumns, header[i]) {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), header[i]...), '"', ':')
		var err error
		if amount, ok := amountOf(cell, decimal); ok && header[i] == "amount" {
			dst = append(dst, amount...)
		} else if dst, err = jsontext.AppendQuote(dst, cell); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// Amounts in reais: with a decimal comma, and dots between thousands or none; or with a decimal point. A
// spreadsheet leaves zeros at the end out. 1.234 is none: it may be either.
var (
	amountWithComma = regexp.MustCompile(`^(\d{1,3}(?:\.\d{3})+|\d+),(\d{1,2})$`)
	amountWithPoint = regexp.MustCompile(`^(\d+)(?:\.(\d{1,2}))?$`)
)

// amountOf is the amount of a cell in cents, as a JSON integer; ok is false if it is none.
func amountOf(cell string, decimal bool) (cents string, ok bool) {
	if !decimal {
		return cell, isInteger(cell)
	}
	parts := amountWithComma.FindStringSubmatch(cell)
	if parts == nil {
		parts = amountWithPoint.FindStringSubmatch(cell)
	}
	if parts == nil {
		return "", false
	}
	cents = strings.ReplaceAll(parts[1], ".", "") + (parts[2] + "00")[:2]
	if cents = strings.TrimLeft(cents, "0"); cents == "" {
		cents = "0"
	}
	return cents, true
}

// isInteger reports whether a text is a JSON integer.
func isInteger(text string) bool {
	if len(text) > 1 && text[0] == '-' {
		text = text[1:]
	}
	return text != "" && allDigits(text) && (text[0] != '0' || len(text) == 1)
}

// explainCSV says where a body is not CSV, without repeating it.
func explainCSV(err error) *problem.Error {
	invalid, ok := errors.AsType[*csv.ParseError](err)
	switch {
	case errors.Is(err, io.EOF):
		return problem.New(problem.MalformedCSV, "The body is empty: a header and 1 to "+strconv.Itoa(BatchItemsMax)+" rows are needed.")
	case ok:
		return problem.New(problem.MalformedCSV, "Line "+strconv.Itoa(invalid.Line)+" is not CSV as in RFC 4180: a quote is not closed, or is inside a cell that is not quoted.")
	default:
		return problem.New(problem.MalformedCSV, "The body is not CSV.").With(err)
	}
}
