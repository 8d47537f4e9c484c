package app_test

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
)

// The sums of a period's statement, as a spreadsheet computes them from the CSV, are the
// differences between the balances at its ends.
func TestStatementAddsUp(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		month := func(i int) string { // leaves a paid order with a surplus, and a returned payout
			reference := fmt.Sprint("month ", i)
			id := g.Must(201, "POST", "/payin", with(pixOf, "{ref}", reference)).Get("id")
			g.Must(204, "POST", "/sandbox/payin/"+id+"/pay", "")
			g.Must(204, "POST", "/sandbox/payin/"+id+"/pay", `{"amount":7}`) // unapplied
			out := g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", reference)).Get("id")
			g.Must(204, "POST", "/sandbox/payout/"+out+"/complete", "")
			g.Must(204, "POST", "/sandbox/payout/"+out+"/return", "")
			g.Must(204, "POST", "/sandbox/clock", `{"advance":2592000}`)
			return g.Must(201, "POST", "/payin", with(pixOf, "{ref}", reference+" ends")).Get("createdAt")
		}
		ends := []string{month(0), month(1), month(2)}
		for i := range 2 {
			from, to := ends[i], ends[i+1]
			sums := map[string]int64{}
			q := url.Values{"from": {from}, "to": {to}}
			sheet := g.In(t).Must(200, "GET", "/statement?"+q.Encode(), "", "Accept: text/csv")
			lines, err := csv.NewReader(strings.NewReader(sheet.Body)).ReadAll()
			if err != nil || len(lines) != 7 {
				t.Fatalf("%v: %s", err, sheet.Body)
			}
			for n, line := range lines[1:] {
				amount, err := strconv.ParseInt(line[4], 10, 64)
				if err != nil || n > 0 && line[0] != next(lines[n][0]) {
					t.Errorf("line %q after %q", line, lines[n])
				}
				sums[line[3]] += amount
			}
			before := g.Must(200, "GET", "/balance?at="+url.QueryEscape(from), "")
			after := g.Must(200, "GET", "/balance?at="+url.QueryEscape(to), "")
			for _, account := range []string{"available", "pending", "held", "disputed", "unapplied", "owed"} {
				sign := int64(1)
				if account == "owed" {
					sign = -1
				}
				if got := number(t, before, account) + sign*sums[account]; got != number(t, after, account) {
					t.Errorf("%s was %s and moved by %d, it is %s", account, before.Get(account), sums[account], after.Get(account))
				}
			}
			if sums["available"] != 1000 || sums["unapplied"] != 7 {
				t.Errorf("the month moved %v", sums)
			}
			rows, cursor := 0, ""
			for page := []string{""}; len(page) > 0; rows += len(page) {
				got := g.Must(200, "GET", "/statement?limit=3&"+q.Encode()+cursor, "")
				page, cursor = got.List("number"), "&cursor="+url.QueryEscape(got.Get("nextCursor"))
			}
			if rows != len(lines)-1 {
				t.Errorf("%d rows by pages, %d lines", rows, len(lines)-1)
			}
		}
		g.Verify(t)
	})
}

func number(t *testing.T, a apptest.Answer, name string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(a.Get(name), 10, 64)
	if err != nil {
		t.Fatalf("%s: %s", name, a.Body)
	}
	return n
}

func next(number string) string {
	n, _ := strconv.Atoi(number)
	return strconv.Itoa(n + 1)
}
