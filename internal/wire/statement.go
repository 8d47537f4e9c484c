package wire

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// StatementRow is one row of GET /statement. Amounts are cents, signed as in the ledger: a
// debt is negative.
type StatementRow struct {
	Number       int64
	Entry        payment.ID
	Kind         ledger.Kind
	Account      ledger.Account
	Amount       money.Cents
	BalanceAfter money.Cents
	OrderType    payment.Operation // "" with Order and ReferenceID if the entry is about no order
	Order        payment.ID
	ReferenceID  string
	EndToEndID   string // of the order, if it is known and the order has one payment
	Dispute      payment.ID
	Installment  int // from 1
	CreatedAt    time.Time
}

type statementView struct {
	Number       int64             `json:"number"`
	EntryID      string            `json:"entryId"`
	Kind         ledger.Kind       `json:"kind"`
	Account      ledger.Account    `json:"account"`
	Amount       money.Cents       `json:"amount"`
	BalanceAfter money.Cents       `json:"balanceAfter"`
	OrderType    payment.Operation `json:"orderType,omitzero"`
	OrderID      string            `json:"orderId,omitzero"`
	ReferenceID  string            `json:"referenceId,omitzero"`
	CreatedAt    Timestamp         `json:"createdAt"`
	EndToEndID   string            `json:"endToEndId,omitzero"`
	RefundID     string            `json:"refundId,omitzero"`
	DisputeID    string            `json:"disputeId,omitzero"`
	Installment  int               `json:"installment,omitzero"`
}

func (r *StatementRow) view() statementView {
	v := statementView{
		Number: r.Number, EntryID: r.Entry.String(), Kind: r.Kind, Account: r.Account, Amount: r.Amount,
		BalanceAfter: r.BalanceAfter, CreatedAt: TimestampOf(r.CreatedAt), Installment: r.Installment,
	}
	if !r.Dispute.IsZero() {
		v.DisputeID = r.Dispute.String()
	}
	if r.OrderType != "" {
		v.OrderType, v.OrderID, v.ReferenceID, v.EndToEndID = r.OrderType, r.Order.String(), r.ReferenceID, r.EndToEndID
	}
	if r.OrderType == payment.OperationRefund {
		v.RefundID = v.OrderID
	}
	return v
}

// Statement is a row as JSON.
func Statement(r *StatementRow) ([]byte, error) {
	v := r.view()
	return json.Marshal(&v)
}

// StatementColumns is the header of the statement as CSV.
var StatementColumns = []string{
	"number", "entryId", "kind", "account", "amount", "balanceAfter", "orderType", "orderId", "referenceId", "createdAt",
	"endToEndId", "refundId", "disputeId", "installment",
}

// quoteFormula puts an apostrophe before each part of a text that a spreadsheet would take for a
// formula, and before one that begins with an apostrophe: a program removes one apostrophe at the
// beginning and after each semicolon, if there is one (OWASP, CSV injection). A semicolon begins
// another cell where that is the separator of lists, as in Brazil; a spreadsheet then removes the
// quotes with which that begins, and may remove space. Other columns have no text of a client.
func quoteFormula(text string) string {
	const begins = "=+-@\t\r\n'＝＋－＠" // a formula, and an apostrophe
	parts := strings.Split(text, ";")
	for i, part := range parts {
		shown := strings.TrimLeftFunc(part, func(r rune) bool { return r == '"' || unicode.IsSpace(r) })
		if startsWithAny(part, begins) || startsWithAny(shown, begins) {
			parts[i] = "'" + part
		}
	}
	return strings.Join(parts, ";")
}

func startsWithAny(text, runes string) bool {
	first, size := utf8.DecodeRuneInString(text)
	return size > 0 && strings.ContainsRune(runes, first)
}

// StatementFormat is how a statement is written as CSV.
type StatementFormat string

// FormatBR is for spreadsheets in Brazil: a byte order mark, semicolons, reais with a decimal comma, times
// of São Paulo.
const FormatBR StatementFormat = "br"

func (f StatementFormat) amount(c money.Cents) string {
	text := strconv.FormatInt(int64(c), 10)
	if f != FormatBR {
		return text
	}
	digits, negative := strings.CutPrefix(text, "-")
	digits = strings.Repeat("0", max(3-len(digits), 0)) + digits
	text = digits[:len(digits)-2] + "," + digits[len(digits)-2:]
	if negative {
		text = "-" + text
	}
	return text
}

func (f StatementFormat) time(t time.Time) string {
	if f == FormatBR {
		return payment.InSaoPaulo(t).Format("02/01/2006 15:04:05")
	}
	return string(TimestampOf(t))
}

// installmentText is empty if the row is about no instalment.
func installmentText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// StatementCSV writes rows as CSV (RFC 4180), after a header if they are the first ones.
// Errors are those of w.
func StatementCSV(w io.Writer, f StatementFormat, rows []StatementRow, first bool) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if f == FormatBR {
		out.Comma = ';'
	}
	if first && f == FormatBR {
		if _, err := w.Write(byteOrderMark); err != nil {
			return err
		}
	}
	if first {
		if err := out.Write(StatementColumns); err != nil {
			return err
		}
	}
	for i := range rows {
		v := rows[i].view()
		if err := out.Write([]string{
			strconv.FormatInt(v.Number, 10), v.EntryID, string(v.Kind), string(v.Account),
			f.amount(v.Amount), f.amount(v.BalanceAfter),
			string(v.OrderType), v.OrderID, quoteFormula(v.ReferenceID), f.time(rows[i].CreatedAt),
			quoteFormula(v.EndToEndID), v.RefundID, v.DisputeID, installmentText(v.Installment),
		}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
