package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// pricesMax is the largest number of prices of a merchant of the run.
const pricesMax = 20

// prices are the first n prices of a merchant: one of each method, and then ranges of instalments.
func prices(n int) []payment.Price {
	terms := payment.Terms{BasisPoints: 99, Fixed: 10, Minimum: 20, Maximum: 500}
	list := []payment.Price{
		{Method: payment.PIX, Range: payment.Range{From: 1, To: 1, Terms: terms}},
		{Method: payment.PayoutPrice, Range: payment.Range{From: 1, To: 1, Terms: terms}},
		{Method: payment.Boleto, Range: payment.Range{From: 1, To: 1, Terms: terms}},
	}
	for width := 1; len(list) < pricesMax; width++ {
		for from := 1; from+width-1 <= payment.InstallmentsMax && len(list) < pricesMax; from += width {
			list = append(list, payment.Price{Method: payment.CreditCard, Range: payment.Range{From: from, To: from + width - 1, Terms: terms}})
		}
	}
	return list[:n]
}

// allLimits sets every limit, beyond what a run uses.
func allLimits(l *limits.Limits) {
	least, most, many := money.Cents(1), money.Max, int64(limits.CountMax)
	bounds := limits.Range{Minimum: &least, Maximum: &most}
	l.Payin = map[payment.Method]limits.Range{}
	for _, method := range payment.Methods {
		l.Payin[method] = bounds
	}
	total, hours, requests := funds, int64(limits.NewKeyHoursMax), int64(limits.RequestsMax)
	l.Payout = limits.Payout{
		Range: bounds, PerDay: &total, PerNight: &total, PerKeyPerDay: &total, CountPerKeyPerDay: &many,
		NewKeyMaximum: &total, NewKeyHours: &hours, ApprovalAbove: &most, Approvals: new(int64(1)),
	}
	l.Requests = limits.Requests{Rate: &requests, Burst: &requests, InFlight: &requests}
}

// endpoints is a receiver of all events of the run's merchants.
type endpoints struct {
	run       *run
	receiver  *server
	delivered *series                // from the event to each of its deliveries
	window    atomic.Pointer[window] // nil before the load
}

func (r *run) newEndpoints() (*endpoints, error) {
	e := &endpoints{run: r, delivered: newSeries("event to endpoint")}
	var err error
	if e.receiver, err = listen(context.Background(), "127.0.0.1:0", e.handle); err != nil {
		return nil, fmt.Errorf("bench: open a receiver: %w", err)
	}
	return e, nil
}

// prepare creates an endpoint of each merchant.
func (e *endpoints) prepare(ctx context.Context) error {
	w := &worker{run: e.run, conn: conn{target: e.run.target, clock: e.run.clock}}
	defer context.AfterFunc(ctx, w.conn.interrupt)()
	defer w.conn.close()
	for w.merchant = range e.run.target.merchants {
		w.body = []byte(`{"url":"` + e.receiver.url() + `/events","events":["*"]}`)
		w.post("/webhook-endpoints")
		status, body, err := w.conn.exchange(ctx, w.request)
		if err == nil && status != http.StatusCreated {
			err = fmt.Errorf("status %d: %.200s", status, body)
		}
		if err != nil {
			return fmt.Errorf("bench: create an endpoint: %w", err)
		}
	}
	return nil
}

var (
	createdOpen       = []byte(`"createdAt":"`)
	errNoCreationTime = errors.New("webhook: the event has no time")
)

// handle receives an event.
func (e *endpoints) handle(_, _, body, out []byte) []byte {
	wall, now := e.run.clock.Now(), e.run.clock.Monotonic()
	_, rest, _ := bytes.Cut(body, createdOpen)
	text, _, _ := bytes.Cut(rest, []byte{'"'})
	if at, err := time.Parse(time.RFC3339, string(text)); err != nil {
		e.run.addWrong(errNoCreationTime.Error())
	} else if measured := e.window.Load(); measured != nil {
		created := now - wall.Sub(at)
		e.delivered.success(measured, created, now, now-created)
	}
	return appendAnswer(out, "200 OK", nil)
}
