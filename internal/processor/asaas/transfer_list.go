package asaas

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
)

// Asaas' list of transfers has no filter by reference, so each look-up needs all rows of its
// period. transferList remembers them: all look-ups of an account share one pass over the list at
// a time, and a further pass ends at the rows that are known, if the list is seen to begin with
// the newest. It is safe for concurrent use.
type transferList struct {
	client client
	clock  env.Clock

	mu    sync.Mutex
	calls int64 // look-ups so far

	// turn is held by the look-up that reads; it guards all that follows.
	turn chan struct{}

	rows  map[string]*listedRow // by id; nil: the list was never read to its end
	byRef map[string][]*listedRow
	since string // the list is complete from this day on; "" is its beginning
	// The last pass, and the last one over all rows: calls when it began and ended, and when it
	// began.
	last, full passTimes
	// front is how many new rows in a row came before all known ones; newest, that the days of a
	// full pass only decrease.
	front  int
	newest bool
	pass   *listPass // not at its end
}

// listedRow is a row of the list as it was last read.
type listedRow struct {
	row[wireTransfer]

	id   string
	seen int64 // calls when the pass that read it began
}

// passTimes are when a pass began and ended: the calls until then, and the monotonic time.
type passTimes struct {
	began, ended int64
	at           time.Duration
}

// listPass is one pass over the list. It may go on in the next look-up: rows are only added, so
// an offset never passes a row.
type listPass struct {
	passTimes

	full   bool
	since  string
	offset int
	pages  int
	rows   []*listedRow // in the list's order, each once
	ids    map[string]bool
	day    string // of the last row
	fewer  bool   // the days decrease, and never increase
	more   bool   // they increase somewhere
	fresh  int    // new rows before the first known one
	known  int    // known rows in a row
	late   bool   // a new row came after a known one
}

const (
	// transferPages is the most pages of a pass: 100 rows each.
	transferPages = 500
	// A pass over all rows is repeated, as one may have shown up late: after listEvery, and for a
	// transfer that may have been requested after transferConfirm.
	listEvery = time.Hour
	// A pass that took several look-ups counts if it began this recently.
	listFresh = time.Minute
	// frontProof is how many rows show that new ones come first, and knownRows how many known ones
	// in a row that all further ones are known: one may have shown up late.
	frontProof = 3
	knownRows  = 50
)

var errListing = errors.New("asaas: the list of transfers could not be read to its end")

func newTransferList(c client, clock env.Clock) *transferList {
	return &transferList{client: c, clock: clock, turn: make(chan struct{}, 1)}
}

// find looks for the transfers under a reference, the newest first. Without an error all of the
// period are known that were there when the call began; with one, there may be others. A row that
// was seen before the call has the state of then.
func (l *transferList) find(ctx context.Context, ref processor.Ref) (matches []listedRow, call int64, err error) {
	l.mu.Lock()
	l.calls++
	call = l.calls
	l.mu.Unlock()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, call, errors.Join(errListing, ctx.Err())
	}
	defer func() { <-l.turn }()
	since, valid := "", transferConfirm
	if !ref.Since.IsZero() {
		since = dayOf(ref.Since)
	}
	if ref.Unsent {
		valid = listEvery
	}
	err = l.update(ctx, call, since, valid)
	found := slices.Concat(l.byRef[ref.ExternalID], l.byRef[unknownReference])
	if err != nil {
		found = l.pass.of(ref.ExternalID)
	}
	for _, r := range found {
		matches = append(matches, *r)
	}
	return matches, call, err
}

// of are the rows of a reference that a pass has read so far.
func (p *listPass) of(reference string) (list []*listedRow) {
	if p == nil {
		return nil
	}
	for _, r := range p.rows {
		if r.reference == reference {
			list = append(list, r)
		}
	}
	return list
}

// unknownReference stands for rows whose reference cannot be read: each may be the one that is
// searched for.
const unknownReference = "\x00"

// covered reports whether all rows since a day are known, and how late one may have shown up.
func (l *transferList) covered(call int64, since string, valid time.Duration) bool {
	return l.rows != nil && l.since <= since && (l.full.ended >= call || l.clock.Monotonic()-l.full.at < valid)
}

// current reports whether the last pass shows what was there when a call began, or nearly.
func (l *transferList) current(call int64) bool {
	return l.last.began >= call || l.last.ended >= call && l.clock.Monotonic()-l.last.at <= listFresh
}

// called is the number of look-ups so far.
func (l *transferList) called() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// update reads the list until all rows since a day are known that were there when the call
// began.
func (l *transferList) update(ctx context.Context, call int64, since string, valid time.Duration) error {
	for {
		covered := l.covered(call, since, valid)
		if covered && l.current(call) {
			return nil
		}
		if p := l.pass; p == nil || !covered && (!p.full || p.since > since) {
			l.begin(covered, since)
		}
		if err := l.read(ctx); err != nil {
			return err
		}
	}
}

// begin begins a pass: to the rows that are known, or over all.
func (l *transferList) begin(covered bool, since string) {
	p := &listPass{since: since, passTimes: passTimes{began: l.called(), at: l.clock.Monotonic()}, ids: map[string]bool{}}
	p.full = !covered || !l.newest && l.front < frontProof
	if l.rows != nil && (covered || l.since < since && p.at-l.full.at < listEvery) {
		p.since = l.since
	}
	l.pass = p
}

// read carries on with the pass to its end.
func (l *transferList) read(ctx context.Context) error {
	for p := l.pass; ; {
		if p.pages++; p.pages > transferPages {
			l.pass, l.rows, l.byRef = nil, nil, nil
			return errPages
		}
		rows, more, err := transfersAt(ctx, l.client, p.since, p.offset)
		if err != nil {
			p.pages--
			return errors.Join(errListing, err)
		}
		l.take(p, rows)
		if !more || endsBefore(rows, p.since) || p.known >= knownRows && !p.full {
			l.end(p)
			return nil
		}
		p.offset += advance(len(rows))
	}
}

// take takes a page.
func (l *transferList) take(p *listPass, rows []row[wireTransfer]) {
	for i := range rows {
		r := &listedRow{row: rows[i], id: rows[i].v.ID, seen: p.began}
		if !r.valid || r.id == "" {
			sum := sha256.Sum256(r.text)
			r.id = string(sum[:])
		}
		r.text = nil
		if p.ids[r.id] { // pages overlap
			continue
		}
		_, before := l.rows[r.id]
		switch {
		case before:
			p.known++
		case p.fresh < len(p.rows): // after a known one
			p.late, p.known = true, 0
		default:
			p.fresh++
		}
		p.ids[r.id], p.rows = true, append(p.rows, r)
		if day := r.v.DateCreated; r.valid {
			p.fewer, p.more = p.fewer || p.day != "" && day < p.day, p.more || p.day != "" && day > p.day
			p.day = day
		}
	}
}

// end takes over what a pass has read.
func (l *transferList) end(p *listPass) {
	if l.since == p.since {
		if l.front += p.fresh; p.late || p.fresh == len(p.rows) { // it shows no order
			l.front = 0
		}
	}
	p.ended = l.called()
	if l.newest = l.newest && !p.more; p.full {
		l.newest = p.fewer && !p.more
		l.since, l.full, l.rows, l.byRef = p.since, p.passTimes, map[string]*listedRow{}, map[string][]*listedRow{}
	}
	for _, r := range slices.Backward(p.rows) {
		if old := l.rows[r.id]; old != nil {
			*old = *r
			continue
		}
		l.rows[r.id] = r
		switch reference := r.reference; {
		case r.unknown:
			l.byRef[unknownReference] = append(l.byRef[unknownReference], r)
		case isExternalID(reference): // else it is another program's
			l.byRef[reference] = slices.Concat([]*listedRow{r}, l.byRef[reference])
		}
	}
	l.last, l.pass = p.passTimes, nil
}

// transfersAt reads a page of the list of transfers since a day; "" is all.
func transfersAt(ctx context.Context, c client, since string, offset int) (rows []row[wireTransfer], more bool, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(offset)}}
	if since != "" {
		query.Set("dateCreated[ge]", since)
	}
	return readPage[wireTransfer](ctx, c, "/transfers?"+query.Encode())
}
