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
	// pageSize is the maximum length of a page of a list.
	pageSize = 200
	// sampleSize is the number of acknowledged orders that are read by id.
	sampleSize = 100
	// missingListed is the maximum length of Check.Missing.
	missingListed = 20
	// clockSlack is how much earlier than the time in its id an order may be created.
	clockSlack = time.Minute
)

// Check is the result of the run's check.
type Check struct {
	// Passed means that nothing is missing and no answer was wrong.
	Passed bool `json:"sound"`
	// Acknowledged is the number of orders answered with 201; Found is the number of
	// those that the gateway lists with their amount. Sampled were read by id.
	Acknowledged int64 `json:"acknowledged"`
	Found        int64 `json:"found"`
	Sampled      int64 `json:"sampled"`
	// Missing are the missing orders, at most twenty; MissingCount is their number.
	Missing      []string `json:"missing"`
	MissingCount int64    `json:"lost"`
	// Wrong are wrong answers, at most ten; WrongCount is their number.
	Wrong      []string `json:"wrong"`
	WrongCount int64    `json:"wrongs"`
	// Verified means that the ledger was verified, as by porteira verify; Defects are
	// its defects.
	Verified bool     `json:"verified"`
	Defects  []string `json:"faults"`
}

func (c *Check) addMissing(text string) {
	if c.MissingCount++; len(c.Missing) < missingListed {
		c.Missing = append(c.Missing, text)
	}
}

// check looks for every acknowledged order over the API, and verifies the ledger.
func (r *run) check(ctx context.Context) (*Check, error) {
	c := &Check{Missing: []string{}, Defects: []string{}, Acknowledged: int64(len(r.acked))}
	w := &worker{run: r, conn: conn{target: r.target, clock: r.clock}, random: r.Env.Random}
	w.poolUsed = len(w.pool)
	defer context.AfterFunc(ctx, w.conn.interrupt)()
	defer w.conn.close()
	for merchant := range r.target.merchants {
		w.merchant = merchant
		for _, payout := range []bool{false, true} {
			if err := r.checkList(ctx, w, c, payout); err != nil {
				return c, err
			}
		}
	}
	if err := r.checkSample(ctx, w, c); err != nil {
		return c, err
	}
	if main := r.workload.series()[0]; main.completedCount() == 0 {
		c.addMissing("no request succeeded within the measured time")
	}
	for _, text := range r.workload.missing() {
		c.addMissing(text)
	}
	if own := r.target.gateway; own != nil {
		if err := r.verifyLedger(ctx, own, c); err != nil {
			return c, err
		}
	}
	c.Wrong, c.WrongCount = append([]string{}, r.wrong...), r.wrongCount
	c.Passed = c.MissingCount == 0 && c.WrongCount == 0 && len(c.Defects) == 0
	return c, nil
}

// verifyLedger verifies the database and the requests that the bank got.
func (r *run) verifyLedger(ctx context.Context, own *gateway, c *Check) error {
	faults, err := own.verify(ctx)
	if err != nil {
		return fmt.Errorf("bench: verify: %w", err)
	}
	c.Verified, c.Defects = true, append(c.Defects, faults...)
	repeated, altered := own.bank.repeats()
	if altered > 0 {
		c.Defects = append(c.Defects, fmt.Sprintf("bank: %d transfers were requested again with another amount", altered))
	}
	if repeated > altered {
		r.notes = append(r.notes, fmt.Sprintf("%d transfers were requested again with the same id, because their answer was lost.", repeated-altered))
	}
	return nil
}

// checkList reads the list of a merchant's orders of one kind, from the first
// acknowledged order on, and looks up each acknowledged order.
func (r *run) checkList(ctx context.Context, w *worker, c *Check, payout bool) error {
	want := map[payment.ID]int64{}
	first := time.Duration(1<<63 - 1)
	for i := range r.acked {
		o := &r.acked[i]
		if o.payout != payout || o.merchant != w.merchant {
			continue
		}
		if _, twice := want[o.id]; twice {
			r.addWrong("two references were acknowledged as one order: " + o.id.String())
		}
		want[o.id] = o.amount
		first = min(first, createdAt(o.id))
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
		c.addMissing(kind + " " + id.String() + " was acknowledged, but is not listed with its amount")
	}
	return nil
}

func kindOf(payout bool) string {
	if payout {
		return "payout"
	}
	return "payin"
}

// createdAt is the time of a version 7 UUID, since 1970.
func createdAt(id payment.ID) time.Duration {
	return time.Duration(binary.BigEndian.Uint64(id[:8])>>16) * time.Millisecond
}

// listPage is a page of orders. The amount of a pay-in is a number, of a payout a
// string.
type listPage struct {
	Data []struct {
		ID     payment.ID `json:"id"`
		Amount cents      `json:"amount"`
	} `json:"data"`
	NextCursor *string `json:"nextCursor"`
}

// cents are digits, with or without quotes.
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

// checkSample reads some of the acknowledged orders by id.
func (r *run) checkSample(ctx context.Context, w *worker, c *Check) error {
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
			c.addMissing(fmt.Sprintf("%s %s was acknowledged, but GET answers %d: %.200s", kindOf(o.payout), o.id, status, body))
		}
		c.Sampled++
	}
	return nil
}
