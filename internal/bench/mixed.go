package bench

import "context"

// Percentages of the mode mixed, like the load of shops: mostly reads, most pay-ins
// are paid, and there are some payouts. The rest is reads.
const (
	mixedPayins  = 25
	mixedPayouts = 5
	mixedNotices = 20
)

// mixedWorkload is the workload of the mode mixed.
type mixedWorkload struct {
	*roundTrip

	read    *readWorkload
	payins  *createWorkload
	payouts *createWorkload
	total   *series
}

func (r *run) newMixedWorkload() (*mixedWorkload, error) {
	c, err := r.newRoundTrip()
	if err != nil {
		return nil, err
	}
	m := &mixedWorkload{roundTrip: c, read: r.newReadWorkload(), payins: r.newCreateWorkload("/payin", c.webhookURL(), true), payouts: r.newCreateWorkload("/payout", "", false)}
	m.total = m.read.total
	for _, t := range []*requestKind{&m.payins.request, &m.payouts.request, &m.notice} {
		t.total = m.total
	}
	made := m.payins.request.check
	m.payins.request.check = func(w *worker, body []byte) error {
		if err := made(w, body); err != nil {
			return err
		}
		c.add(w.acked[len(w.acked)-1])
		return nil
	}
	return m, nil
}

func (m *mixedWorkload) prepare(ctx context.Context) error {
	if err := m.read.prepare(ctx); err != nil {
		return err
	}
	m.startPolling(ctx)
	return nil
}

func (m *mixedWorkload) next(ctx context.Context, w *worker) *requestKind {
	at := w.pick(100)
	switch {
	case at < mixedNotices:
		if m.pickUnpaid(w) {
			m.writeNotice(w)
			return &m.notice
		}
		return m.payins.next(ctx, w) // no pay-in to pay yet
	case at < mixedNotices+mixedPayins:
		return m.payins.next(ctx, w)
	case at < mixedNotices+mixedPayins+mixedPayouts:
		return m.payouts.next(ctx, w)
	default:
		return m.read.next(ctx, w)
	}
}

func (m *mixedWorkload) series() []*series {
	list := []*series{m.total, m.payins.request.series, m.payouts.request.series, m.notice.series, m.paid, m.delivered}
	return append(list, m.read.series()[1:]...)
}
