package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/wire"
)

// throughGateway measures how a gateway starts on the store, what it reads and
// how much it creates.
func (g *growth) throughGateway(ctx context.Context) (err error) {
	var own *gateway
	defer func() {
		if own != nil {
			err = errors.Join(err, own.close())
		}
	}()
	err = g.figure(ctx, "start until ready", growthStarts, func() (time.Duration, error) {
		if own != nil {
			if err := own.close(); err != nil {
				return 0, err
			}
		}
		own = &gateway{env: g.Env, folder: g.Data, borrowed: true}
		if g.Database != "" {
			own.database = &database{clock: g.Env.Clock, admin: g.Database, url: g.Database}
		}
		return g.timed(func() error { return g.ready(ctx, own) })()
	})
	if err != nil {
		return err
	}
	if err := g.reads(ctx, own); err != nil {
		return err
	}
	return g.creates(ctx, own)
}

// ready starts a gateway, and returns when it says that it is ready.
func (g *growth) ready(ctx context.Context, own *gateway) error {
	if err := own.start(&Options{Mode: Read, Program: g.Program, Environ: g.Environ, Profile: g.Profile}); err != nil {
		return err
	}
	w, err := g.asking(own, reader{}, "")
	if err != nil {
		return err
	}
	defer w.conn.close()
	w.get("/readyz")
	status, body, err := w.conn.exchange(ctx, w.request)
	if err == nil && status != 200 {
		err = fmt.Errorf("status %d: %.200s", status, body)
	}
	return err
}

// asking is a connection of a merchant. Where it measures for longer, profile is
// the file for the gateway's CPU profile.
func (g *growth) asking(own *gateway, who reader, profile string) (*worker, error) {
	t := &target{engine: g.report.Engine, pid: own.cmd.Process.Pid, merchants: []merchant{who.login}, own: own}
	if err := t.parse(own.base); err != nil {
		return nil, err
	}
	r := &run{Options: Options{Mode: Payin, Concurrency: 64, Env: g.Env, Warmup: g.Duration / 5, Duration: g.Duration, Merchants: 1, Profile: profile}, clock: g.Env.Clock, target: t}
	r.Seed = uint64(g.Env.Random.Int64N(1<<53-1)) + 1
	return &worker{run: r, conn: conn{target: t, clock: g.Env.Clock}}, nil
}

// reads measures requests one after another: their latency, not how many there
// can be.
func (g *growth) reads(ctx context.Context, own *gateway) error {
	for _, v := range []struct {
		suffix string
		who    *reader
	}{{", largest merchant", &g.large}, {", small merchant", &g.small}} {
		w, err := g.asking(own, *v.who, "")
		if err != nil {
			return err
		}
		defer w.conn.close()
		i := 0
		for _, kind := range v.who.kinds() {
			err := g.figure(ctx, "GET "+kind.name+v.suffix, g.Samples, g.timed(func() error {
				i++
				w.get(kind.path(i))
				status, body, err := w.conn.exchange(ctx, w.request)
				if err == nil && status != 200 {
					err = fmt.Errorf("status %d: %.200s", status, body)
				}
				return err
			}))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// growthRead is one way to read; path is of the ith order that was drawn, from
// the first again behind the last.
type growthRead struct {
	name string
	path func(i int) string
}

// kinds are all ways to read: those of single orders where there are some.
func (r *reader) kinds() []growthRead {
	fixed := func(name string) growthRead { return growthRead{name, func(int) string { return name }} }
	payin := func(i int) *payment.Payin { return &r.payins[i%len(r.payins)] }
	payout := func(i int) *payment.Payout { return &r.payouts[i%len(r.payouts)] }
	day := func(i int) string {
		from := payin(i).CreatedAt
		return "createdFrom=" + string(wire.TimestampOf(from.Add(-24*time.Hour))) + "&createdTo=" + string(wire.TimestampOf(from))
	}
	var list []growthRead
	if len(r.payins) > 0 {
		list = append(list,
			growthRead{"/payin/{id}", func(i int) string { return "/payin/" + payin(i).ID.String() }},
			growthRead{"/payin/{id}?expand=customer", func(i int) string { return "/payin/" + payin(i).ID.String() + "?expand=customer" }},
			growthRead{"/payin?referenceId=", func(i int) string { return "/payin?referenceId=" + payin(i).ReferenceID }},
			growthRead{"/payin?createdFrom=&createdTo=", func(i int) string { return "/payin?" + day(i) }},
			growthRead{"/payin?createdFrom=&createdTo=&status=CANCELED", func(i int) string { return "/payin?status=CANCELED&" + day(i) }})
	}
	list = append(list, fixed("/payin"))
	for _, status := range payment.PayinStatuses {
		list = append(list, fixed("/payin?status="+string(status)))
	}
	for _, method := range payment.Methods {
		list = append(list, fixed("/payin?paymentMethod="+string(method)))
	}
	list = append(list, fixed("/payin?status=PAID&paymentMethod=BOLETO"))
	if len(r.payouts) > 0 {
		list = append(list,
			growthRead{"/payout/{id}", func(i int) string { return "/payout/" + payout(i).ID.String() }},
			growthRead{"/payout?referenceId=", func(i int) string { return "/payout?referenceId=" + payout(i).ReferenceID }})
	}
	list = append(list, fixed("/payout"))
	for _, status := range payment.PayoutStatuses {
		list = append(list, fixed("/payout?status="+string(status)))
	}
	return append(list, fixed("/events"), fixed("/balance"))
}

// creates measures how many pay-ins are created, by 64 connections at once.
func (g *growth) creates(ctx context.Context, own *gateway) error {
	const name = "POST /payin, 64 connections"
	g.tell(name)
	w, err := g.asking(own, g.maker, g.Profile)
	if err != nil {
		return err
	}
	r := w.run
	r.plan = r.newCreating("/payin", defaultHook, false)
	if err := r.measure(ctx); err != nil {
		return err
	}
	s := r.plan.list()[0].view(r.elapsed)
	if len(s.Errors) > 0 {
		return fmt.Errorf("bench: %s: %v: %v", name, s.Errors, s.Samples)
	}
	g.report.Figures = append(g.report.Figures, Figure{Name: name, Count: int(s.Count), PerSecond: s.PerSecond},
		Figure{Name: name + ", latency", Count: int(s.Count), P50: s.Latency.P50, P99: s.Latency.P99})
	return nil
}
