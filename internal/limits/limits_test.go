package limits_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// at is a time in São Paulo, which is three hours behind UTC.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse("2006-01-02 15:04:05.000", text)
	if err != nil {
		t.Fatal(err)
	}
	return v.Add(3 * time.Hour)
}

func cents(c money.Cents) *money.Cents { return &c }

func TestNightOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ at, night string }{
		{"2026-11-23 00:00:00.000", "2026-11-22"},
		{"2026-11-23 05:59:59.999", "2026-11-22"},
		{"2026-11-23 06:00:00.000", ""},
		{"2026-11-23 12:00:00.000", ""},
		{"2026-11-23 19:59:59.999", ""},
		{"2026-11-23 20:00:00.000", "2026-11-23"},
		{"2026-11-23 23:59:59.999", "2026-11-23"},
		{"2027-01-01 00:00:00.000", "2026-12-31"},
		{"2028-03-01 05:59:59.999", "2028-02-29"},
	} {
		day, is := limits.NightOf(at(t, row.at))
		night := ""
		if is {
			night = time.Unix(day*24*60*60, 0).UTC().Format(time.DateOnly)
		}
		if night != row.night {
			t.Errorf("%s: the night of %q, %v; want %q", row.at, night, is, row.night)
		}
	}
}

func TestDayOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ at, day string }{
		{"2026-11-23 00:00:00.000", "2026-11-23"},
		{"2026-11-23 20:59:59.999", "2026-11-23"}, // in UTC too
		{"2026-11-23 21:00:00.000", "2026-11-23"},
		{"2026-11-23 23:59:59.999", "2026-11-23"},
		{"2028-02-29 12:00:00.000", "2028-02-29"},
	} {
		if day := time.Unix(limits.DayOf(at(t, row.at))*24*60*60, 0).UTC().Format(time.DateOnly); day != row.day {
			t.Errorf("%s: the day %s", row.at, day)
		}
	}
}

func TestRange(t *testing.T) {
	t.Parallel()
	both := limits.Range{Minimum: cents(100), Maximum: cents(200)}
	for _, row := range []struct {
		of     limits.Range
		amount money.Cents
		want   string
	}{
		{limits.Range{}, money.Max, ""},
		{limits.Range{}, 1, ""},
		{both, 99, limits.Minimum}, {both, 100, ""}, {both, 200, ""}, {both, 201, limits.Maximum},
		{limits.Range{Maximum: cents(0)}, 1, limits.Maximum},
	} {
		if got := row.of.Exceeded(row.amount); got != row.want {
			t.Errorf("%d: %q, want %q", row.amount, got, row.want)
		}
	}
}

func TestPayout(t *testing.T) {
	t.Parallel()
	day, night := at(t, "2026-11-23 12:00:00.000"), at(t, "2026-11-23 20:00:00.000")
	count := func(amount money.Cents, payouts int64) limits.Count {
		return limits.Count{Amount: amount, Payouts: payouts}
	}
	newKey := limits.Payout{NewKeyMaximum: cents(100)}
	twoHours := limits.Payout{NewKeyMaximum: cents(100), NewKeyHours: new(int64(2))}
	for _, row := range []struct {
		name   string
		limits limits.Payout
		amount money.Cents
		at     time.Time
		used   limits.Usage
		want   string
	}{
		{name: "no limits", amount: money.Max, at: night, used: limits.Usage{Day: count(money.Max, 9)}},
		{"the range comes first", limits.Payout{Range: limits.Range{Maximum: cents(5)}, PerDay: cents(5)}, 6, day, limits.Usage{}, limits.Maximum},
		{"up to the day's limit", limits.Payout{PerDay: cents(100)}, 40, day, limits.Usage{Day: count(60, 1)}, ""},
		{"one cent above", limits.Payout{PerDay: cents(100)}, 41, day, limits.Usage{Day: count(60, 1)}, limits.PerDay},
		{"above since before the limit was lowered", limits.Payout{PerDay: cents(50)}, 1, day, limits.Usage{Day: count(60, 1)}, limits.PerDay},
		{"none a day", limits.Payout{PerDay: cents(0)}, 1, day, limits.Usage{}, limits.PerDay},
		{"the night's limit by day", limits.Payout{PerNight: cents(0)}, 1, day, limits.Usage{Night: count(60, 1)}, ""},
		{"up to the night's limit", limits.Payout{PerNight: cents(100)}, 40, night, limits.Usage{Night: count(60, 1)}, ""},
		{"above the night's limit", limits.Payout{PerNight: cents(100)}, 41, night, limits.Usage{Night: count(60, 1)}, limits.PerNight},
		{"up to the key's limit", limits.Payout{PerKeyPerDay: cents(100)}, 100, day, limits.Usage{Day: count(60, 1)}, ""},
		{"above the key's limit", limits.Payout{PerKeyPerDay: cents(100)}, 41, day, limits.Usage{KeyDay: count(60, 1)}, limits.PerKeyPerDay},
		{"the last of a key", limits.Payout{CountPerKeyPerDay: new(int64(2))}, 1, day, limits.Usage{KeyDay: count(1, 1)}, ""},
		{"one more than the last", limits.Payout{CountPerKeyPerDay: new(int64(2))}, 1, day, limits.Usage{KeyDay: count(2, 2)}, limits.CountPerKeyPerDay},
		{"the first to a key", newKey, 100, day, limits.Usage{}, ""},
		{"too much for the first", newKey, 101, day, limits.Usage{}, limits.NewKeyMaximum},
		{"too much in all", newKey, 41, day, limits.Usage{Key: count(60, 1), KeySince: day.Add(-24*time.Hour + 1)}, limits.NewKeyMaximum},
		{"the key is a day old", newKey, 41, day, limits.Usage{Key: count(60, 1), KeySince: day.Add(-24 * time.Hour)}, ""},
		{"all to the key came back", newKey, 101, day, limits.Usage{KeySince: day.Add(-24 * time.Hour)}, limits.NewKeyMaximum},
		{"all to the key wait for approval", newKey, 41, day, limits.Usage{Key: count(60, 0), KeySince: day.Add(-24 * time.Hour)}, limits.NewKeyMaximum},
		{"new for two hours", twoHours, 41, day, limits.Usage{Key: count(60, 1), KeySince: day.Add(-2*time.Hour + 1)}, limits.NewKeyMaximum},
		{"not new after two", twoHours, 41, day, limits.Usage{Key: count(60, 1), KeySince: day.Add(-2 * time.Hour)}, ""},
	} {
		if got := row.limits.Exceeded(row.amount, row.at, &row.used); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestCounters(t *testing.T) {
	t.Parallel()
	all := limits.Payout{PerDay: cents(1), PerNight: cents(1), CountPerKeyPerDay: new(int64(1)), NewKeyMaximum: cents(1)}
	for _, row := range []struct {
		limits limits.Payout
		at     string
		want   payment.Counters
	}{
		{limits.Payout{Range: limits.Range{Maximum: cents(1)}, ApprovalAbove: cents(1)}, "2026-11-23 21:00:00.000", payment.CounterDay | payment.CounterNight},
		{all, "2026-11-23 12:00:00.000", payment.CounterDay | payment.CounterKeyDay | payment.CounterKey},
		{all, "2026-11-23 21:00:00.000", payment.CounterDay | payment.CounterNight | payment.CounterKeyDay | payment.CounterKey},
		{limits.Payout{PerNight: cents(1)}, "2026-11-23 12:00:00.000", payment.CounterDay},
		{limits.Payout{PerKeyPerDay: cents(1)}, "2026-11-23 12:00:00.000", payment.CounterDay | payment.CounterKeyDay},
	} {
		if got := row.limits.Counters(at(t, row.at)); got != row.want {
			t.Errorf("counters %b, want %b", got, row.want)
		}
	}
}

func TestApprovalsOf(t *testing.T) {
	t.Parallel()
	one, two, every := limits.Payout{ApprovalAbove: cents(100)}, limits.Payout{ApprovalAbove: cents(100), Approvals: new(int64(2))}, limits.Payout{ApprovalAbove: cents(0)}
	for _, row := range []struct {
		limits limits.Payout
		amount money.Cents
		want   int64
	}{
		{limits.Payout{Approvals: new(int64(2))}, money.Max, 0},
		{one, 100, 0}, {one, 101, 1}, {two, 100, 0}, {two, 101, 2}, {every, 1, 1},
	} {
		if got := row.limits.ApprovalsOf(row.amount); got != row.want {
			t.Errorf("%d cents: %d approvals, want %d", row.amount, got, row.want)
		}
	}
}

func TestDefault(t *testing.T) {
	t.Parallel()
	l := limits.Default()
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"payout":{"maximum":1000000,"perDay":5000000,"perNight":100000,"newKeyMaximum":100000,"newKeyHours":24}}`
	if string(text) != want || l.Check() != nil {
		t.Errorf("%s, %v; want %s", text, l.Check(), want)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		limits limits.Limits
		want   string // in the error; "" for none
	}{
		{limits.Limits{}, ""},
		{limits.Limits{Payin: map[payment.Method]limits.Range{payment.PIX: {Minimum: cents(1), Maximum: cents(1)}}}, ""},
		{limits.Limits{Payin: map[payment.Method]limits.Range{payment.PIX: {Minimum: cents(2), Maximum: cents(1)}}}, "payin.PIX.minimum"},
		{limits.Limits{Payin: map[payment.Method]limits.Range{payment.Boleto: {Maximum: cents(-1)}}}, "payin.BOLETO.maximum"},
		{limits.Limits{Payout: limits.Payout{Range: limits.Range{Minimum: cents(-1)}}}, "payout.minimum"},
		{limits.Limits{Payout: limits.Payout{PerNight: cents(-1)}}, "payout.perNight"},
		{limits.Limits{Payout: limits.Payout{PerDay: cents(1 << 62)}}, "payout.perDay"},
		{limits.Limits{Payout: limits.Payout{Approvals: new(int64(0))}}, "payout.approvals"},
		{limits.Limits{Payout: limits.Payout{Approvals: new(int64(3))}}, "payout.approvals"},
		{limits.Limits{Payout: limits.Payout{NewKeyHours: new(int64(-1))}}, "payout.newKeyHours"},
		{limits.Limits{Payout: limits.Payout{CountPerKeyPerDay: new(int64(-1))}}, "payout.countPerKeyPerDay"},
		{limits.Limits{Requests: limits.Requests{Rate: new(int64(1)), Burst: new(int64(1)), InFlight: new(int64(limits.RequestsMax))}}, ""},
		{limits.Limits{Requests: limits.Requests{Rate: new(int64(0))}}, "requests.rate"},
		{limits.Limits{Requests: limits.Requests{Burst: new(int64(limits.RequestsMax + 1))}}, "requests.burst"},
		{limits.Limits{Requests: limits.Requests{InFlight: new(int64(-1))}}, "requests.inFlight"},
	} {
		err := row.limits.Check()
		if (err != nil) != (row.want != "") || err != nil && !strings.HasPrefix(err.Error(), row.want+" ") {
			t.Errorf("%v, want %q", err, row.want)
		}
	}
}
