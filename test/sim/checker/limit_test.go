package checker

import (
	"testing"
	"time"
)

// A day and a night of São Paulo, as limits count them.
func TestWindows(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ at, day, night string }{
		{"2026-12-28T22:59:59Z", "2026-12-28", ""},
		{"2026-12-28T23:00:00Z", "2026-12-28", "2026-12-28"},
		{"2026-12-29T02:59:59Z", "2026-12-28", "2026-12-28"},
		{"2026-12-29T03:00:00Z", "2026-12-29", "2026-12-28"},
		{"2026-12-29T08:59:59Z", "2026-12-29", "2026-12-28"},
		{"2026-12-29T09:00:00Z", "2026-12-29", ""},
	} {
		at, err := time.Parse(time.RFC3339, row.at)
		if err != nil {
			t.Fatal(err)
		}
		if day, night := dayOf(at), nightOf(at); day != row.day || night != row.night {
			t.Errorf("%s: day %s, night %q, want %s and %q", row.at, day, night, row.day, row.night)
		}
	}
}

func TestExceeded(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 29, 1, 0, 0, 0, time.UTC) // a night
	used := use{day: 100, night: 80, keyDay: 50, key: 60, keyDayCount: 2, keyCount: 3, keySince: at.Add(-time.Hour)}
	for _, row := range []struct {
		name  string
		limit func(l *Limits, value int64)
		value int64 // the least that an amount of 10 does not pass
	}{
		{"maximum", func(l *Limits, v int64) { l.Maximum = v }, 10},
		{"perDay", func(l *Limits, v int64) { l.PerDay = v }, 110},
		{"perNight", func(l *Limits, v int64) { l.PerNight = v }, 90},
		{"perKeyPerDay", func(l *Limits, v int64) { l.PerKeyPerDay = v }, 60},
		{"countPerKeyPerDay", func(l *Limits, v int64) { l.CountPerKeyPerDay = v }, 3},
		{"newKeyMaximum", func(l *Limits, v int64) { l.NewKeyMaximum = v }, 70},
	} {
		l := NoLimits
		row.limit(&l, row.value)
		if names := l.exceeded(10, at, &used); len(names) > 0 {
			t.Errorf("%s of %d: passes %v", row.name, row.value, names)
		}
		row.limit(&l, row.value-1)
		if names := l.exceeded(10, at, &used); len(names) != 1 || names[0] != row.name {
			t.Errorf("%s of %d: passes %v", row.name, row.value-1, names)
		}
	}
	l := NoLimits
	l.Minimum, l.NewKeyMaximum = 11, 1
	if names := l.exceeded(10, used.keySince.Add(newKeyFor), &used); len(names) != 1 || names[0] != "minimum" {
		t.Errorf("a key that is not new passes %v", names)
	}
}

// A payout that waits for approval counts, but only its last approval makes its key known.
func TestKnownKeys(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 12, 29, 15, 0, 0, 0, time.UTC)
	after := func(hours int) int64 { return start.Add(time.Duration(hours) * time.Hour).UnixMicro() }
	payout := func(hour int, status string, approvals ...approvalRow) *order {
		o := &order{kind: Payout, approvals: approvals}
		o.amount, o.status, o.createdAt = 10, status, after(hour)
		return o
	}
	asked, given, last := approvalRow{action: "requested", needed: 2}, approvalRow{action: "approved", createdAt: after(3)}, approvalRow{action: "approved", createdAt: after(5)}
	for _, row := range []struct {
		name    string
		payouts []*order
		key     int64
		known   int64
		hour    int
	}{
		{"no approval is needed", []*order{payout(2, "COMPLETED"), payout(1, "FAILED")}, 10, 1, 2},
		{"one waits", []*order{payout(0, "PENDING", asked)}, 10, 0, 0},
		{"one waits for another approval", []*order{payout(0, "PENDING", asked, given)}, 10, 0, 0},
		{"one has its last approval", []*order{payout(0, "PENDING", asked, given, last)}, 10, 1, 5},
		{"one waits beside another one", []*order{payout(0, "PENDING", asked, given), payout(4, "PENDING")}, 20, 1, 4},
		{"one is rejected", []*order{payout(0, "CANCELED", asked, approvalRow{action: "rejected"})}, 0, 0, 0},
		{"one was paid without an approval, before a restore", []*order{payout(0, "COMPLETED", asked, approvalRow{action: "expired"})}, 10, 0, 0},
	} {
		c := &Checker{orderList: row.payouts}
		u := c.used(rowID{}, func(*order) bool { return true }, start, nil)
		if u.key != row.key || u.keyCount != row.known || row.known > 0 && u.keySince.UnixMicro() != after(row.hour) {
			t.Errorf("%s: %+v", row.name, u)
		}
	}
	u := Usage{limits: Limits{ApprovalAbove: 10}}
	u.Add(11, true, start)
	if u.use.key != 11 || u.use.keyCount != 0 {
		t.Errorf("an item that waits: %+v", u.use)
	}
	u.Add(10, true, start)
	if u.use.key != 21 || u.use.keyCount != 1 || !u.use.keySince.Equal(start) {
		t.Errorf("an item that needs no approval: %+v", u.use)
	}
}

// Changes of payouts that need approval, or that limits refuse, which no gateway makes.
func TestApprovalCorruptionsAreReported(t *testing.T) {
	t.Parallel()
	const insert = "INSERT INTO approvals (mac, merchant_id, payout_id, number, action, actor, reason, needed, created_at) "
	eachEngine(t, func(s *scene) {
		s.waitForApproval("waits")
		s.relax()
		for _, row := range []struct {
			name, words string
			sql         []string
		}{
			{"queued without approval", "step is queued", []string{"UPDATE payouts SET step = 'queued' WHERE step = 'approval'"}},
			{"approved by the credential that asked", "row 1 about its approval is approved", []string{
				insert + "SELECT '', merchant_id, payout_id, 1, 'approved', actor, '', 0, 1 FROM approvals"}},
			{"expired too soon", "row 1 about its approval is expired", []string{insert + "SELECT '', merchant_id, payout_id, 1, 'expired', '', '', 0, created_at FROM approvals"}},
			{"approved, and still waiting", "step is approval", []string{insert + "SELECT '', merchant_id, payout_id, 1, 'approved', 'credential:boss', '', 0, 1 FROM approvals"}},
			{"decided twice", "row 2 about its approval is approved", []string{
				insert + "SELECT '', merchant_id, payout_id, 1, 'rejected', 'credential:boss', '', 0, 1 FROM approvals",
				insert + "SELECT '', merchant_id, payout_id, 2, 'approved', 'credential:chief', '', 0, 1 FROM approvals WHERE number = 0"}},
		} {
			s.want(row.name, s.corrupt(row.sql, nil), LimitsHold, row.words)
		}
		s.limits.Maximum = approvalAbove
		s.restartChecker()
		s.want("above the maximum", s.found, LimitsHold, "pass [maximum]")
		s.limits.Maximum, s.limits.ApprovalAbove = -1, -1
		s.restartChecker()
		s.want("approval that nobody needs", s.found, LimitsHold, "needs approval is false")
	})
}
