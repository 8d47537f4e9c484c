package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/query"
	"github.com/porteira/porteira/internal/store"
)

func TestDoctorDisk(t *testing.T) {
	t.Parallel()
	measured := func(free uint64, err error) func(string) (uint64, error) {
		return func(string) (uint64, error) { return free, err }
	}
	for _, row := range []struct {
		measure                 func(string) (uint64, error)
		detail, problem, action string
	}{
		{measured(0, errors.New("read-only file system")), "", "it cannot be written: read-only file system", "porteira migrate creates a missing folder. Otherwise correct its owner or its disk, or choose another folder with --data."},
		{measured(1<<30-1, nil), "", "0.9 GiB free", "Make space: if the disk is full, orders are answered with 503 and no payout is sent (docs/disk.md)."},
		{measured(5<<30-1, nil), "4.9 GiB free", "", "Make space soon."},
		{measured(5<<30, nil), "5.0 GiB free", "", ""},
		{measured(spaceUnknown, nil), "the free space is not known on this system", "", ""},
	} {
		want := processor.Finding{Check: "disk of data", Detail: row.detail, Problem: row.problem, Action: row.action}
		if got := checkFolder("data", row.measure); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if free, err := measureFolder(t.TempDir()); err != nil || free == 0 {
		t.Errorf("a folder for tests has %d bytes free, %v", free, err)
	}
}

func TestDoctorGateways(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	node := func(id byte, heartbeat int64, ahead time.Duration) store.Node {
		return store.Node{ID: payment.ID{id}, Heartbeat: heartbeat, Clock: now.Add(ahead)}
	}
	list := func(nodes ...store.Node) []store.Node { return nodes }
	for _, row := range []struct {
		name            string
		before, after   []store.Node
		detail, problem string
		clock           string
	}{
		{"none", nil, nil, "none runs", "", ""},
		{"one", list(node(1, 7, 0)), list(node(1, 8, -time.Second)), "1 gateway runs", "", ""},
		{"one that has just started", nil, list(node(2, 1, 0)), "1 gateway runs", "", ""},
		{"two, of which one died", list(node(1, 7, 0), node(2, 3, 0)), list(node(1, 8, 0), node(2, 3, 0)), "1 gateway runs", "", ""},
		{"a dead one", list(node(1, 7, 0)), list(node(1, 7, -time.Hour)), "0 gateways run", "none runs, and 1 has ended without releasing its work", ""},
		{"a clock ahead", list(node(1, 7, 0)), list(node(1, 8, time.Minute)), "1 gateway runs", "", "1m0s"},
		{"a clock behind", list(node(1, 7, 0)), list(node(1, 8, -time.Minute)), "1 gateway runs", "", "1m0s"},
	} {
		got := checkGateways(row.before, row.after, now)
		if got[0].Detail != row.detail || got[0].Problem != row.problem {
			t.Errorf("%s: %+v", row.name, got[0])
		}
		clock := ""
		if len(got) > 1 {
			clock = got[1].Problem
		}
		if want := "the clock of gateway 01000000-0000-0000-0000-000000000000 and that of this machine differ by " + row.clock; clock != "" != (row.clock != "") || clock != "" && clock != want {
			t.Errorf("%s: %q, want %q", row.name, clock, want)
		}
	}
}

func TestDoctorClock(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		server, heartbeat time.Duration
		problem           string
	}{
		{5 * time.Second, 5 * time.Second, ""},
		{-time.Second, -time.Hour, ""},
		{6 * time.Second, 0, "that of the database's server and that of this machine differ by 6s"},
		{-6 * time.Second, 0, "that of the database's server and that of this machine differ by 6s"},
		{0, time.Hour, "the last heartbeat of a gateway is 1h0m0s ahead of this machine's clock, which is late or was set back"},
	} {
		if got := checkClock(row.server, row.heartbeat); got.Problem != row.problem || (got.Action == "") != (row.problem == "") {
			t.Errorf("%v, %v: %+v", row.server, row.heartbeat, got)
		}
	}
}

func TestDoctorCertificate(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, row := range []struct {
		left            time.Duration
		detail, problem string
		action          bool
	}{
		{90 * day, "it expires in 90 days", "", false},
		{30 * day, "it expires in 30 days", "", true},
		{7 * day, "", "it expires in 7 days", true},
		{day / 2, "", "it expires in 0 days", true},
		{-3 * day, "", "it expired 3 days ago", true},
	} {
		if got := checkCertificate("efi", row.left); got.Detail != row.detail || got.Problem != row.problem || (got.Action != "") != row.action {
			t.Errorf("%v: %+v", row.left, got)
		}
	}
}

// A list that could not be read once is noted, one that could not for half an hour is a problem.
func TestDoctorLists(t *testing.T) {
	t.Parallel()
	feeds := func(failures int) []store.Feed {
		return []store.Feed{
			{FeedKey: store.FeedKey{Account: "efi", Feed: "payments"}, Failures: failures},
			{FeedKey: store.FeedKey{Account: "other", Feed: "payments"}, Failures: 99},
		}
	}
	if got := checkFeeds("efi", feeds(9), "text"); len(got) != 1 || got[0].Detail != "text" || got[0].Problem != "" || got[0].Action == "" {
		t.Errorf("nine failures: %+v", got)
	}
	if got := checkFeeds("efi", feeds(10), "text"); len(got) != 1 || got[0].Problem != "text" {
		t.Errorf("ten failures: %+v", got)
	}
	if got := checkFeeds("efi", feeds(0), ""); len(got) != 0 {
		t.Errorf("no failures: %+v", got)
	}
}

// If gateways run, overdue work has another cause.
func TestDoctorOverdue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	w := &query.Work{Kind: store.WorkCharges, Due: []store.Oldest{{Account: "inter", Since: now.Add(-time.Hour)}, {Account: "efi", Since: now.Add(-2 * time.Hour)}}}
	const want = "Gateways run, but are late: see their log, and porteira_worker_consecutive_failures in their metrics. Or the processor does not answer: porteira account test checks it."
	if got := overdue(w, now, true); got.Problem != "charges: due for 2h, at efi, inter" || got.Action != want {
		t.Errorf("%+v", got)
	}
	if got := overdue(w, now, false); got.Action != "Start a gateway." {
		t.Errorf("%+v", got)
	}
}

// What is unknown is noted at first, and wrong after an hour.
func TestDoctorUnknown(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for _, row := range []struct {
		age             time.Duration
		count           int64
		detail, problem string
	}{
		{0, 0, "none is unknown", ""},
		{time.Minute, 1, "unknown: 1 payout, the oldest for 1m", ""},
		{2 * time.Hour, 2, "", "unknown: 2 payouts, the oldest for 2h"},
	} {
		got := checkUnknowns([]store.Unknown{{Subject: "payout", Count: row.count, Since: now.Add(-row.age)}, {Subject: "refund"}}, now)
		if len(got) != 1 || got[0].Detail != row.detail || got[0].Problem != row.problem || (got[0].Action == "") != (row.count == 0) {
			t.Errorf("%v: %+v", row.age, got)
		}
	}
}

// Money in transit is no problem, a difference that every reading of two hours had is one.
func TestDoctorGap(t *testing.T) {
	t.Parallel()
	readings := func(n int, gap money.Cents, last money.Cents) *query.Reading {
		r := &query.Reading{Account: "efi", There: 900, Here: 1000}
		for range n - 1 {
			r.Gaps = append(r.Gaps, gap)
		}
		r.Gaps = append(r.Gaps, last)
		return r
	}
	for _, row := range []struct {
		r    *query.Reading
		want string
	}{
		{&query.Reading{}, ""},
		{readings(11, -100, -100), ""},
		{readings(12, -100, 0), ""},
		{readings(12, -100, -30), "differed by less than -R$ 0.30"},
		{readings(12, 5, 5), "differed by less than R$ 0.05"},
	} {
		got := checkGap(row.r)
		if (got == nil) != (row.want == "") || got != nil && !strings.HasSuffix(got.Problem, row.want) {
			t.Errorf("%+v: %+v", row.r.Gaps, got)
		}
	}
}

// The last verification and the last backup are noted when they are old; defects are wrong.
func TestDoctorRecords(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for _, row := range []struct {
		got             processor.Finding
		action, problem bool
	}{
		{checkVerified(query.Verified{}, now), true, false},
		{checkVerified(query.Verified{At: now.Add(-time.Hour)}, now), false, false},
		{checkVerified(query.Verified{At: now.Add(-8 * 24 * time.Hour)}, now), true, false},
		{checkVerified(query.Verified{At: now, Defects: 1}, now), true, true},
		{checkBackup(query.BackedUp{}, now), true, false},
		{checkBackup(query.BackedUp{At: now.Add(-time.Hour)}, now), false, false},
		{checkBackup(query.BackedUp{At: now.Add(-72 * time.Hour)}, now), true, false},
	} {
		if (row.got.Action != "") != row.action || (row.got.Problem != "") != row.problem {
			t.Errorf("%+v", row.got)
		}
	}
}
