package bench

import "context"

// Shares of a hundred requests of the mode mixed, which is a day of shops: they
// ask about orders more often than they make them, most pay-ins are paid, and
// some money goes out. The rest is reading.
const (
	mixedPayins  = 25
	mixedPayouts = 5
	mixedNotices = 20
)

// mixed is the plan of the mode of that name.
type mixed struct {
	*circle

	reading *reading
	payins  *creating
	payouts *creating
	total   *series
}

func (r *run) newMixed() (*mixed, error) {
	c, err := r.newCircle()
	if err != nil {
		return nil, err
	}
	m := &mixed{circle: c, reading: r.newReading(), payins: r.newCreating("/payin", c.hook(), true), payouts: r.newCreating("/payout", "", false)}
	m.total = m.reading.total
	for _, t := range []*task{&m.payins.task, &m.payouts.task, &m.notice} {
		t.total = m.total
	}
	made := m.payins.task.judge
	m.payins.task.judge = func(w *worker, body []byte) error {
		if err := made(w, body); err != nil {
			return err
		}
		c.add(w.acked[len(w.acked)-1])
		return nil
	}
	return m, nil
}

func (m *mixed) prepare(ctx context.Context) error {
	if err := m.reading.prepare(ctx); err != nil {
		return err
	}
	m.watch(ctx)
	return nil
}

func (m *mixed) next(ctx context.Context, w *worker) *task {
	at := w.pick(100)
	switch {
	case at < mixedNotices:
		if m.choose(w) {
			m.write(w)
			return &m.notice
		}
		return m.payins.next(ctx, w) // nothing is there to be paid yet
	case at < mixedNotices+mixedPayins:
		return m.payins.next(ctx, w)
	case at < mixedNotices+mixedPayins+mixedPayouts:
		return m.payouts.next(ctx, w)
	default:
		return m.reading.next(ctx, w)
	}
}

func (m *mixed) list() []*series {
	list := []*series{m.total, m.payins.task.series, m.payouts.task.series, m.notice.series, m.paid, m.news}
	return append(list, m.reading.list()[1:]...)
}
