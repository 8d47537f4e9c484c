package main

import (
	"context"
	"errors"
	"time"
)

// spaceLeft bounds, in bytes, the space that is left when a disk begins to run full:
// so the first write that fails is another one each time.
const spaceLeft = 512 << 10

// full fills the disk twice: orders are refused, reads continue, a gateway
// that is started then serves reads, and once there is space it recovers by itself. At
// the end the power is cut: orders acknowledged on a full disk must be on it.
func (d *diskRun) full(ctx context.Context) error {
	for range 2 {
		if err := work(ctx, 2*time.Second); err != nil {
			return err
		}
		_, before := d.clients.progress()
		d.logFrom = d.database.logged()
		d.disk.Limit(d.disk.Used() + d.random.Int64N(spaceLeft))
		d.awaitRefusal(ctx, before)
		d.keepReading(ctx, 2*time.Second)
		if d.engine == sqlite {
			if err := d.kill(ctx); err != nil {
				return err
			}
			d.keepReading(ctx, time.Second)
		}
		d.disk.Limit(0)
		if err := d.recovers(ctx); err != nil {
			return err
		}
	}
	if d.disk.Counts().Full == 0 {
		d.reportf("never fired", "the disk was never full")
	}
	if err := work(ctx, time.Second); err != nil {
		return err
	}
	return d.powerCut(ctx)
}

// refusalMax bounds the time until a fault of the disk shows.
const refusalMax = time.Minute

// awaitRefusal waits until an order is refused.
func (d *diskRun) awaitRefusal(ctx context.Context, before int64) {
	for began := clock.Monotonic(); clock.Monotonic()-began < refusalMax && ctx.Err() == nil; {
		if _, now := d.clients.progress(); now > before {
			return
		}
		wait(ctx, readyLook)
	}
	d.reportf("never fired", "no order is refused %v after the fault of the disk", refusalMax)
}

// readOnly makes nothing writable: on SQLite the disk turns read-only, on PostgreSQL
// the server does, like one that is about to hand over.
func (d *diskRun) readOnly(ctx context.Context) error {
	for range 2 {
		if err := work(ctx, time.Second); err != nil {
			return err
		}
		_, before := d.clients.progress()
		if err := d.setReadOnly(ctx, true); err != nil {
			return err
		}
		from := clock.Monotonic()
		d.awaitRefusal(ctx, before)
		d.keepReading(ctx, 2*time.Second)
		d.notAcknowledged(from, clock.Monotonic())
		if err := d.setReadOnly(ctx, false); err != nil {
			return err
		}
		if err := d.recovers(ctx); err != nil {
			return err
		}
	}
	if d.engine == sqlite && d.disk.Counts().ReadOnly == 0 {
		d.reportf("never fired", "the disk was never read-only")
	}
	return d.powerCut(ctx)
}

func (d *diskRun) setReadOnly(ctx context.Context, on bool) error {
	if d.engine == sqlite {
		d.disk.SetReadOnly(on)
		return nil
	}
	value := "off"
	if on {
		value = "on"
	}
	return errors.Join(
		d.database.exec(ctx, "postgres", "ALTER SYSTEM SET default_transaction_read_only = "+value),
		d.database.exec(ctx, "postgres", "SELECT pg_reload_conf()"),
		d.database.exec(ctx, "postgres", "SELECT pg_sleep(0.2)"), // sessions read it before their next statement
	)
}

// slowClients are more clients than are served at once, so load must be shed.
const slowClients = 400

// slow makes each fsync slower and slower, up to 2 s.
func (d *diskRun) slow(ctx context.Context) error {
	for _, most := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second} {
		d.disk.Slow(most)
		d.keepReading(ctx, 5*time.Second)
	}
	if got := d.api.send(ctx, "GET", d.gatewayURLs[0]+"/readyz", ""); got.status != 200 {
		d.reportf("not ready", "on a slow disk GET /readyz is answered %d", got.status)
	}
	d.disk.Slow(0)
	if err := d.recovers(ctx); err != nil {
		return err
	}
	if _, refused := d.clients.progress(); refused == 0 || d.disk.Counts().Slow == 0 {
		d.reportf("never fired", "no fsync was slow, or no order was refused")
	}
	return d.powerCut(ctx)
}

// powerCuts is the number of power cuts of a run.
const powerCuts = 10

// power cuts the power at random times under load.
func (d *diskRun) power(ctx context.Context) error {
	for range powerCuts {
		if err := work(ctx, time.Duration(d.random.Int64N(int64(time.Second)))); err != nil {
			return err
		}
		if err := d.powerCut(ctx); err != nil {
			return err
		}
		if err := d.recovers(ctx); err != nil {
			return err
		}
	}
	return nil
}
