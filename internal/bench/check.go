package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/wire"
)

const (
	// pageSize is the longest page of a list.
	pageSize = 200
	// sampleSize is how many acknowledged orders are read one by one.
	sampleSize = 100
	// missingMax bounds how many missing things are named.
	missingMax = 20
	// clockSlack is how much earlier than its id says an order may have been made.
	clockSlack = time.Minute
)

// Check is what the run found out about its own result.
type Check struct {
	// Sound says that nothing is missing and no answer was wrong.
	Sound bool `json:"sound"`
	// Acknowledged is how many orders were answered with 201; Found is how many
	// of them the gateway lists, with their amount. Sampled were read by id.
	Acknowledged int64 `json:"acknowledged"`
	Found        int64 `json:"found"`
	Sampled      int64 `json:"sampled"`
	// Missing names what is not there, at most twenty; Lost is how many.
	Missing []string `json:"missing"`
	Lost    int64    `json:"lost"`
	// Wrong are answers that were wrong, at most ten; Wrongs is how many.
	Wrong  []string `json:"wrong"`
	Wrongs int64    `json:"wrongs"`
	// Verified says that the books were proved, as porteira verify does; Faults
	// are what is wrong with them.
	Verified bool     `json:"verified"`
	Faults   []string `json:"faults"`
}

func (c *Check) lost(text string) {
	if c.Lost++; len(c.Missing) < missingMax {
		c.Missing = append(c.Missing, text)
	}
}

// check looks for every acknowledged order, over the API and in the books.
func (r *run) check(ctx context.Context) (*Check, error) {
	c := &Check{Missing: []string{}, Faults: []string{}, Acknowledged: int64(len(r.acked))}
	w := &worker{run: r, conn: conn{target: r.target, clock: r.clock}, random: r.Env.Random}
	w.used = len(w.pool)
	defer context.AfterFunc(ctx, w.conn.interrupt)()
	defer w.conn.close()
	if !r.Bare {
		for merchant := range r.target.merchants {
			w.merchant = merchant
			for _, payout := range []bool{false, true} {
				if err := r.checkList(ctx, w, c, payout); err != nil {
					return c, err
				}
			}
		}
		if err := r.sample(ctx, w, c); err != nil {
			return c, err
		}
	}
	if main := r.plan.list()[0]; main.ended() == 0 {
		c.lost("nothing that was asked for went well within the measured time")
	}
	for _, text := range r.plan.missing() {
		c.lost(text)
	}
	if own := r.target.own; own != nil {
		if err := r.proveBooks(ctx, own, c); err != nil {
			return c, err
		}
	}
	c.Wrong, c.Wrongs = append([]string{}, r.wrong...), r.wrongs
	c.Sound = c.Lost == 0 && c.Wrongs == 0 && len(c.Faults) == 0
	return c, nil
}

// proveBooks verifies the database, and asks the bank what it was asked for.
func (r *run) proveBooks(ctx context.Context, own *gateway, c *Check) error {
	faults, err := own.verify(ctx)
	if err != nil {
		return fmt.Errorf("bench: verify: %w", err)
	}
	c.Verified, c.Faults = true, append(c.Faults, faults...)
	repeated, altered := own.bank.doubtful()
	if altered > 0 {
		c.Faults = append(c.Faults, fmt.Sprintf("bank: %d transfers were asked for again with another amount", altered))
	}
	if repeated > altered {
		r.notes = append(r.notes, fmt.Sprintf("%d transfers were asked for again, under their id, as their answer was not seen.", repeated-altered))
	}
	return nil
}

// checkList reads the list of a merchant's orders of one kind, from the first
// that was acknowledged on, and looks each acknowledged one up in it.
func (r *run) checkList(ctx context.Context, w *worker, c *Check, payout bool) error {
	want := map[payment.ID]int64{}
	first := time.Duration(1<<63 - 1)
	for i := range r.acked {
		o := &r.acked[i]
		if o.payout != payout || o.merchant != w.merchant {
			continue
		}
		if _, twice := want[o.id]; twice {
			r.objection("two references were acknowledged as one order: " + o.id.String())
		}
		want[o.id] = o.amount
		first = min(first, madeAt(o.id))
	}
	if len(want) == 0 {
		return nil
	}
	from := wire.TimestampOf(time.Unix(0, int64(first-clockSlack)))
	kind := kindOf(payout)
	query := "/" + kind + "?limit=" + strconv.Itoa(pageSize) + "&createdFrom=" + url.QueryEscape(string(from))
	for cursor := ""; ; {
		page, err := readPage(ctx, w, query, cursor)
		if err != nil {
			return fmt.Errorf("bench: read the list of %ss: %w", kind, err)
		}
		for _, o := range page.Data {
			if amount, ok := want[o.ID]; ok && string(o.Amount) == strconv.FormatInt(amount, 10) {
				delete(want, o.ID)
				c.Found++
			}
		}
		if page.NextCursor == nil || *page.NextCursor == "" || len(want) == 0 {
			break
		}
		cursor = *page.NextCursor
	}
	for id := range want {
		c.lost(kind + " " + id.String() + " was acknowledged, and is not listed with its amount")
	}
	return nil
}

func kindOf(payout bool) string {
	if payout {
		return "payout"
	}
	return "payin"
}

// madeAt is when a UUID of version 7 was made, since 1970.
func madeAt(id payment.ID) time.Duration {
	return time.Duration(binary.BigEndian.Uint64(id[:8])>>16) * time.Millisecond
}

// listPage is a page of orders. A pay-in's amount is a number, a payout's a
// text.
type listPage struct {
	Data []struct {
		ID     payment.ID `json:"id"`
		Amount cents      `json:"amount"`
	} `json:"data"`
	NextCursor *string `json:"nextCursor"`
}

// cents are digits, in quotes or not.
type cents string

// UnmarshalJSON implements [json.Unmarshaler].
func (c *cents) UnmarshalJSON(text []byte) error {
	*c = cents(bytes.Trim(text, `"`))
	return nil
}

func readPage(ctx context.Context, w *worker, query, cursor string) (page listPage, err error) {
	if cursor != "" {
		query += "&cursor=" + url.QueryEscape(cursor)
	}
	w.get(query)
	status, body, err := w.conn.exchange(ctx, w.request)
	if err != nil {
		return page, err
	}
	if status != 200 {
		return page, fmt.Errorf("status %d: %.300s", status, body)
	}
	return page, json.Unmarshal(body, &page)
}

// sample reads some of the acknowledged orders by their ids.
func (r *run) sample(ctx context.Context, w *worker, c *Check) error {
	for range min(sampleSize, len(r.acked)) {
		o := &r.acked[w.pick(len(r.acked))]
		w.merchant = o.merchant
		w.get("/" + kindOf(o.payout) + "/" + o.id.String())
		status, body, err := w.conn.exchange(ctx, w.request)
		if err != nil {
			return fmt.Errorf("bench: read an order: %w", err)
		}
		var got struct {
			ID     payment.ID `json:"id"`
			Amount cents      `json:"amount"`
		}
		if status != 200 || json.Unmarshal(body, &got) != nil || got.ID != o.id || string(got.Amount) != strconv.FormatInt(o.amount, 10) {
			c.lost(fmt.Sprintf("%s %s was acknowledged, and is answered with %d: %.200s", kindOf(o.payout), o.id, status, body))
		}
		c.Sampled++
	}
	return nil
}
