package httpapi

import (
	"context"
	"encoding/binary"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// StatementReader reads statements: [store.Store].
type StatementReader interface {
	Statement(ctx context.Context, merchant payment.ID, f store.StatementFilter) ([]store.StatementRow, error)
	ContinueStatement(ctx context.Context, merchant payment.ID, at store.EventPosition) (store.EventPosition, error)
	StatementEnd(ctx context.Context, merchant payment.ID) (number int64, err error)
	StatementNumber(ctx context.Context, merchant payment.ID, number int64) (store.Posting, error)
	StatementBefore(ctx context.Context, merchant payment.ID, t time.Time) (number int64, err error)
}

// csvRows is how many rows of a statement as CSV are read and written at a time.
const csvRows = 1000

// statementKinds are the kinds that a row of a statement can have.
var statementKinds = func() (list []string) {
	for _, r := range ledger.Recipes {
		list = append(list, string(r.Kind))
	}
	return list
}()

// listStatement answers with a page in JSON, which always has a cursor for later rows, or
// with all rows as CSV.
func (a *API) listStatement(c *call) error {
	q := c.query()
	format := wire.StatementFormat(q.oneOf("format", []string{string(wire.FormatBR)}))
	asCSV := acceptsCSV(c.r) || format != ""
	f := store.StatementFilter{
		Account: ledger.Account(q.oneOf("account", texts(ledger.StatementAccounts))), Kind: ledger.Kind(q.oneOf("kind", statementKinds)),
	}
	from, to := q.time("from"), q.time("to")
	var at statementPosition
	if !asCSV {
		f.Limit, at = q.limit(), a.cursorStatement(c, q)
	}
	if err := q.done(); err != nil {
		return err
	}
	if asCSV {
		if err := a.statementRange(c, &f, 0, from, to); err != nil {
			return err
		}
		return a.sendCSV(c, f, format)
	}
	at, err := a.continueStatement(c, at)
	if err != nil {
		return err
	}
	if err := a.statementRange(c, &f, at.number, from, to); err != nil {
		return err
	}
	if err := c.reserve(f.Limit * entryBytes); err != nil {
		return err
	}
	rows, err := a.reader.Statement(c.ctx, c.merchant.ID, f)
	if err != nil {
		return readError(err)
	}
	entries := make([][]byte, len(rows))
	for i := range rows {
		row := statementRow(&rows[i])
		if entries[i], err = wire.Statement(&row); err != nil {
			return err
		}
		at.number, at.entry = row.Number, row.Entry
	}
	return c.json(http.StatusOK, wire.Page(entries, a.cursor(c, at.bytes())))
}

// continueStatement is the position at which a reader continues, which is cut to where
// histories part if a backup was restored since.
func (a *API) continueStatement(c *call, at statementPosition) (statementPosition, error) {
	now, err := a.reader.ContinueStatement(c.ctx, c.merchant.ID, store.EventPosition{History: at.history, Number: at.number})
	if err != nil {
		return at, readError(err)
	}
	was := at
	if at = (statementPosition{history: now.History, number: now.Number}); at.number == 0 {
		return at, nil
	}
	p, err := a.reader.StatementNumber(c.ctx, c.merchant.ID, at.number)
	if errors.Is(err, store.ErrNotFound) || err == nil && at.history == was.history && p.Entry != was.entry {
		return at, problem.New(problem.ValidationFailed, "The statement was restored from a backup.").WithFields(problem.FieldError{
			Field: "cursor", Code: problem.CodeNotAllowed, Detail: "its row no longer exists: send the request again later, or without cursor",
		})
	}
	at.entry = p.Entry
	return at, readError(err)
}

// statementRange sets the numbers between which rows are read: after a position, from a time
// to another. Both times are positions in the order of numbers, as for GET /balance?at.
func (a *API) statementRange(c *call, f *store.StatementFilter, after int64, from, to time.Time) (err error) {
	f.After = after
	if !from.IsZero() {
		before, err := a.reader.StatementBefore(c.ctx, c.merchant.ID, from)
		if err != nil {
			return readError(err)
		}
		f.After = max(f.After, before)
	}
	if to.IsZero() {
		f.To, err = a.reader.StatementEnd(c.ctx, c.merchant.ID)
	} else {
		f.To, err = a.reader.StatementBefore(c.ctx, c.merchant.ID, to)
	}
	return readError(err)
}

// sendCSV writes all rows, however many. An error after the first part ends the connection,
// so that the client does not take these rows for all of them.
func (a *API) sendCSV(c *call, f store.StatementFilter, format wire.StatementFormat) error {
	if !a.exports.begin(c.merchant.ID, exportsMax, exportsOfMerchant) {
		return problem.New(problem.Overloaded, "Too many statements are being sent as CSV.")
	}
	defer a.exports.end(c.merchant.ID)
	f.Limit = csvRows
	if err := c.reserve(csvRows * entryBytes); err != nil {
		return err
	}
	control := http.NewResponseController(c.w)
	if err := control.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	for {
		last, err := a.sendPart(c, control, f, format)
		switch {
		case err == nil && last.Number == 0:
			// The last bytes leave after the handler; the connection ends with them.
			ctx, _ := a.env.Clock.WithTimeout(context.WithoutCancel(c.r.Context()), writeTimeout)
			context.AfterFunc(ctx, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) })
			return nil
		case err == nil:
			f.After = last.Number
		case c.status == 0:
			return readError(err)
		default:
			a.log.WarnContext(c.ctx, "a statement as CSV ended early", "requestId", c.requestID, "cause", err)
			panic(http.ErrAbortHandler)
		}
	}
}

// sendPart reads and writes the next rows, in the time of a usual request, and returns the
// last one; zero if there are no more.
func (a *API) sendPart(c *call, control *http.ResponseController, f store.StatementFilter, format wire.StatementFormat) (last store.StatementRow, err error) {
	ctx, cancel := a.env.Clock.WithTimeout(c.r.Context(), writeTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) }) // ends a write to a slow client
	defer stop()
	list, err := a.reader.Statement(ctx, c.merchant.ID, f)
	if err != nil {
		return last, err
	}
	rows := make([]wire.StatementRow, len(list))
	for i := range list {
		rows[i] = statementRow(&list[i])
	}
	first := c.status == 0
	if first {
		c.w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
		c.w.Header().Set("Content-Disposition", `attachment; filename="statement.csv"`)
		c.w.Header().Set("Connection", "close")
		c.status = http.StatusOK
		c.w.WriteHeader(c.status)
	}
	err = wire.StatementCSV(c.w, format, rows, first)
	if err == nil {
		if err = control.Flush(); errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
	}
	if len(list) == f.Limit && c.r.Method != http.MethodHead {
		last = list[len(list)-1]
	}
	return last, err
}

// Statements that are sent as CSV at the same time: each may take hours, as long as its client
// reads.
const (
	exportsMax        = 16
	exportsOfMerchant = 2
)

// large counts the large requests or answers in flight of one kind.
type large struct {
	mu  sync.Mutex
	all int
	of  map[payment.ID]int
}

// begin counts a further answer; false if there are too many of all merchants, or of this merchant.
func (e *large) begin(merchant payment.ID, max, ofMerchant int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == max || e.of[merchant] == ofMerchant {
		return false
	}
	if e.of == nil {
		e.of = map[payment.ID]int{}
	}
	e.all++
	e.of[merchant]++
	return true
}

// end ends one that begin counted.
func (e *large) end(merchant payment.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all--
	if e.of[merchant]--; e.of[merchant] == 0 {
		delete(e.of, merchant)
	}
}

func statementRow(r *store.StatementRow) wire.StatementRow {
	return wire.StatementRow{
		Number: r.Number, Entry: r.Entry, Kind: r.Kind, Account: r.Account, Amount: r.Amount, BalanceAfter: r.BalanceAfter,
		OrderType: r.OrderType, Order: r.Subject, ReferenceID: r.ReferenceID, EndToEndID: r.EndToEndID, Dispute: r.Dispute, Installment: r.Installment, CreatedAt: r.CreatedAt,
	}
}

// acceptsCSV reports whether a request asks for CSV rather than JSON, by the weights of both.
func acceptsCSV(r *http.Request) bool {
	weights := map[string]float64{}
	for _, header := range r.Header["Accept"] {
		for media := range strings.SplitSeq(header, ",") {
			name, params, err := mime.ParseMediaType(media)
			if err != nil {
				continue
			}
			weights[name] = 1
			if q, ok := params["q"]; ok {
				weights[name], _ = strconv.ParseFloat(q, 64) // 0, not acceptable, if it is no number
			}
		}
	}
	return weights["text/csv"] > 0 && weights["text/csv"] >= weights["application/json"]
}

// statementPosition is the last row that a reader of a statement has, and the history of the
// database in which it was read. The entry shows if another copy of the database, of which
// that is not known yet, has another row with that number.
type statementPosition struct {
	history, number int64
	entry           payment.ID
}

func (p statementPosition) bytes() []byte {
	return append(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(p.history)), uint64(p.number)), p.entry[:]...)
}

// cursorStatement is the position after the previous page; zero for the first page.
func (a *API) cursorStatement(c *call, q *query) statementPosition {
	position, ok := a.position(c, q, 16+len(payment.ID{}))
	if !ok {
		return statementPosition{}
	}
	return statementPosition{int64(binary.BigEndian.Uint64(position)), int64(binary.BigEndian.Uint64(position[8:])), payment.ID(position[16:])}
}
