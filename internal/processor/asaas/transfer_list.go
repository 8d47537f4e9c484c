package asaas

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
)

// Asaas' list of transfers has no filter by reference, so each look-up needs all rows of its
// period. transferList remembers them, and how many the list had: a further look-up reads until it
// has as many new rows as the list has more, wherever they are, and look-ups at the same time share
// that. It is safe for concurrent use.
type transferList struct {
	client client
	clock  env.Clock

	mu    sync.Mutex
	calls int64 // look-ups so far

	// turn is held by the look-up that reads; it guards all that follows.
	turn chan struct{}
	rows map[string]listedRow // by id
	all  *listPass            // the last pass over all rows; nil: the list was never read to its end
	pass *listPass            // over all rows, not at its end; nil: none
	asOf int64                // calls when the last reading began
}

// listedRow is a row of the list as it was last read.
type listedRow struct {
	row[wireTransfer]

	id   string
	seen int64 // calls when the reading of it began
}

// listPass is a pass over the rows since a day. One over all of them may go on in the next look-up:
// rows are only added, so an offset never passes a row.
type listPass struct {
	since         string // "" is the beginning
	before, total int    // rows that the list had before the pass, and when it began; -1: that is not known
	began         int64  // calls
	at            time.Duration
	offset, pages int
	fresh         int // rows that were not known
}

const (
	// transferPages is the most pages of a reading: 100 rows each.
	transferPages = 500
	// All rows are read again, as one may have taken the place of another: after listEvery, and for
	// a transfer that may have been requested after transferConfirm.
	listEvery = time.Hour
)

var errListing = errors.New("asaas: the list of transfers could not be read to its end")

func newTransferList(c client, clock env.Clock) *transferList {
	return &transferList{client: c, clock: clock, turn: make(chan struct{}, 1), rows: map[string]listedRow{}}
}

// find looks for the transfers under a reference, the newest first. Without an error all of the period are known
// that were there when the call began; with one, there may be others. A row that was seen before
// the call has the state of then.
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
	if err = l.update(ctx, call, since, valid); err != nil {
		err = errors.Join(errListing, err)
	}
	for _, r := range l.rows { // one whose reference cannot be read may be it
		if r.unknown && err == nil || !r.unknown && r.reference == ref.ExternalID {
			matches = append(matches, r)
		}
	}
	slices.SortFunc(matches, func(a, b listedRow) int {
		return cmp.Or(cmp.Compare(b.v.DateCreated, a.v.DateCreated), cmp.Compare(b.id, a.id))
	})
	return matches, call, err
}

// called is the number of look-ups so far.
func (l *transferList) called() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// update reads the list until all rows since a day are known that were there when the call began.
// A pass over all rows counts for valid.
func (l *transferList) update(ctx context.Context, call int64, since string, valid time.Duration) error {
	covered := l.all != nil && l.all.since <= since && l.clock.Monotonic()-l.all.at < valid
	if covered && l.asOf >= call { // another look-up has read it since
		return nil
	}
	began := l.called()
	if !covered {
		if err := l.readAll(ctx, since); err != nil {
			return err
		}
	}
	if l.all.began < call {
		p := &listPass{since: l.all.since, before: l.all.total, began: began}
		if err := l.read(ctx, p); err != nil {
			return err
		}
		l.all.total = p.total
	}
	l.asOf = began
	return nil
}

// readAll carries on with the pass over all rows to its end, or begins one.
func (l *transferList) readAll(ctx context.Context, since string) error {
	if l.pass == nil || l.pass.since > since {
		if l.all != nil {
			since = min(since, l.all.since) // others look for older ones
		}
		l.pass = &listPass{since: since, before: -1, began: l.called(), at: l.clock.Monotonic()}
	}
	p := l.pass
	switch err := l.read(ctx, p); {
	case errors.Is(err, errPages):
		l.all, l.pass = nil, nil
		return err
	case err != nil:
		return err
	}
	maps.DeleteFunc(l.rows, func(_ string, r listedRow) bool { return r.seen < p.began })
	l.all, l.pass = p, nil
	return nil
}

// read carries on with a pass, until it has as many new rows as there are more than before.
func (l *transferList) read(ctx context.Context, p *listPass) error {
	for ; p.pages < transferPages; p.pages++ {
		page, err := transfersAt(ctx, l.client, p.since, p.offset)
		if err != nil {
			return err
		}
		if p.pages == 0 {
			p.total = page.total
		}
		p.fresh += l.take(&page, p.began)
		if page.last(p.since) || p.before >= 0 && p.total >= p.before && p.fresh >= p.total-p.before {
			return nil
		}
		p.offset += advance(len(page.rows))
	}
	return errPages
}

// take takes a page, and returns the number of its rows that were not known.
func (l *transferList) take(page *transferPage, began int64) (fresh int) {
	for _, r := range page.rows {
		id := r.v.ID
		if !r.valid || id == "" {
			sum := sha256.Sum256(r.text)
			id = string(sum[:])
		}
		if _, known := l.rows[id]; !known {
			fresh++
		}
		r.text = nil
		l.rows[id] = listedRow{r, id, began}
	}
	return fresh
}

// transferPage is a page of the list of transfers.
type transferPage struct {
	rows  []row[wireTransfer]
	more  bool
	total int // of the list; -1: it does not say
}

// last reports whether no later page has a row since a day.
func (p *transferPage) last(since string) bool { return !p.more || endsBefore(p.rows, since) }

// transfersAt reads a page of the list of transfers since a day; "" is all.
func transfersAt(ctx context.Context, c client, since string, offset int) (v transferPage, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(offset)}}
	if since != "" {
		query.Set("dateCreated[ge]", since)
	}
	v.rows, v.more, v.total, err = readPage[wireTransfer](ctx, c, "/transfers?"+query.Encode())
	return v, err
}
