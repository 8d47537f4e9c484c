package wire

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/problem"
)

// payoutColumns are the columns that a batch in CSV may have: the fields of a payout.
var payoutColumns = []string{
	"amount", "pixKey", "pixKeyType", "beneficiaryName", "beneficiaryDocument", "webhookUrl", "referenceId",
}

// cellsMax bounds the commas and lines of a body, and so the work and the memory for its cells.
// Names may have both too.
const cellsMax = 20 * BatchItemsMax

// byteOrderMark begins the files of some spreadsheets.
var byteOrderMark = []byte("\xef\xbb\xbf")

// PayoutBatchCSV is PayoutBatch for a body of CSV (RFC 4180) in UTF-8 with a header, whose
// columns are in any order. An empty cell is an absent field. The reference of the batch is
// not in the body.
func (d *Decoder) PayoutBatchCSV(reference Field[string], body []byte) (*PayoutBatchRequest, *problem.Error) {
	b := newBatchReader(d)
	b.request.ReferenceID, b.sent = reference, true
	if invalid := b.readCSV(body); invalid != nil {
		return &b.request, invalid
	}
	return &b.request, b.finish()
}

// readCSV reads the rows as items: each becomes the JSON object that it stands for, so both
// forms have the same rules. Its error means that the body is malformed.
func (b *batchReader) readCSV(body []byte) *problem.Error {
	if !utf8.Valid(body) {
		return problem.New(problem.MalformedCSV, "The body is not valid UTF-8.")
	}
	if bytes.Count(body, []byte{','})+bytes.Count(body, []byte{'\n'}) > cellsMax {
		return problem.New(problem.MalformedCSV, "The body has too many cells or lines.")
	}
	if detail := notCommas(body); detail != "" {
		return problem.New(problem.MalformedCSV, detail)
	}
	rows := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(body, byteOrderMark)))
	rows.ReuseRecord = true
	first, err := rows.Read()
	if err != nil {
		return explainCSV(err)
	}
	header := slices.Clone(first)
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
		if object, err = appendObject(object[:0], header, row); err != nil {
			return problem.New(problem.MalformedCSV, "The body is not valid UTF-8.").With(err)
		}
		if err := b.item(object); errors.Is(err, errCut) {
			return nil
		} else if err != nil {
			return problem.From(err)
		}
	}
}

// notCommas says what is wrong with a body whose columns or lines a spreadsheet separated in
// another way, as many do in Brazil: the other errors would not explain it. A header of the
// fields of a payout has neither.
func notCommas(body []byte) string {
	header, _, _ := bytes.Cut(body, []byte{'\n'})
	header, _ = bytes.CutSuffix(header, []byte{'\r'})
	switch {
	case bytes.ContainsRune(header, '\r'):
		return "Lines must end with CRLF or LF, not with CR alone."
	case bytes.ContainsAny(header, ";\t") && !bytes.ContainsRune(header, ','):
		return "Columns must be separated by commas."
	default:
		return ""
	}
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

// appendObject appends the JSON object of a row. An amount that is no JSON integer becomes a
// string, whose type is an error of its field.
func appendObject(dst []byte, header, row []string) ([]byte, error) {
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
		if header[i] == "amount" && isInteger(cell) {
			dst = append(dst, cell...)
		} else if dst, err = jsontext.AppendQuote(dst, cell); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
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
	case ok && errors.Is(err, csv.ErrFieldCount):
		return problem.New(problem.MalformedCSV, "Line "+strconv.Itoa(invalid.StartLine)+" does not have as many cells as the header.")
	case ok:
		return problem.New(problem.MalformedCSV, "Line "+strconv.Itoa(invalid.Line)+" is not CSV as in RFC 4180: a quote is not closed, or is inside a cell that is not quoted.")
	default:
		return problem.New(problem.MalformedCSV, "The body is not CSV.").With(err)
	}
}
