package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// signed returns the documented headers of a notice of the sandbox's bank; late is the
// age of the notice.
func signed(body, secret string, late time.Duration) string {
	timestamp := strconv.FormatInt(time.Now().Add(-late).Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "%s.%s", timestamp, body)
	return fmt.Sprintf("%s: %s\n%s: %s", bankapi.HeaderTimestamp, timestamp, bankapi.HeaderSignature, hex.EncodeToString(mac.Sum(nil)))
}

// Forged notices are rejected and not stored. Signed notices with false contents are
// stored and move no money, because the bank is queried.
func TestNoticesProveNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		order := g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "lied about"))
		payout := g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "lied about"))
		awaitFinal(t, g.Client)
		notice := func(id, subject, external string) string {
			return fmt.Sprintf(`{"id":%q,"subject":%q,"externalId":%q,"createdAt":"2026-01-01T00:00:00Z","payment":{"id":"E1","externalId":%q,"amount":1000,"paidAt":"2026-01-01T00:00:00Z"}}`, id, subject, external, external)
		}
		lie := notice("n1", "charge", order.Get("externalId"))
		before := g.Rows(t)
		stranger := g.Anonymous()
		for name, head := range map[string]string{
			"no signature":       "",
			"another secret":     signed(lie, "the-secret-of-another-bank", 0),
			"another body":       signed(lie+" ", apptest.BankSecret, 0),
			"an old one":         signed(lie, apptest.BankSecret, 10*time.Minute),
			"one from tomorrow":  signed(lie, apptest.BankSecret, -24*time.Hour),
			"signature only":     strings.Split(signed(lie, apptest.BankSecret, 0), "\n")[1],
			"time only":          strings.Split(signed(lie, apptest.BankSecret, 0), "\n")[0],
			"two signatures":     signed(lie, apptest.BankSecret, 0) + "\n" + signed(lie, apptest.BankSecret, 0),
			"capital hex digits": strings.ToUpper(signed(lie, apptest.BankSecret, 0)),
		} {
			if got := stranger.Ask("POST", g.NoticePath(), lie, strings.Split(head, "\n")...); got.Status != 401 || got.Get("code") != "unauthorized" {
				t.Errorf("%s: %d %s", name, got.Status, got.Body)
			}
		}
		if rows := g.Rows(t).Since(before); rows != "" {
			t.Errorf("forged notices left %s", rows)
		}
		arm(g, "transfer", "not_sent", 1000)
		waiting := g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "not even sent"))
		before = g.Rows(t)
		for i, body := range []string{
			lie, lie, // the same one twice is one
			notice("n2", "transfer", waiting.Get("externalId")),
			notice("n3", "transfer", payout.Get("externalId")),
			notice("n4", "charge", "0000000000000000000000000000nobody"),
			notice("n5", "charge", payout.Get("externalId")), // of another kind
			notice("n6", "refund", order.Get("externalId")),
		} {
			if got := stranger.Ask("POST", g.NoticePath(), body, strings.Split(signed(body, apptest.BankSecret, 0), "\n")...); got.Status != 200 {
				t.Errorf("notice %d: %d %s", i, got.Status, got.Body)
			}
		}
		g.Must(204, "POST", "/sandbox/clock", `{"advance":1800}`) // rescheduled work is due
		apptest.Until(t, func() string {
			if n := strings.Count(g.Log.Lines("WARN"), "notice not applied yet"); n < 4 {
				return fmt.Sprintf("only %d notices were not applied", n)
			}
			return ""
		})
		after := g.Rows(t)
		before["event payout.processing"] = after["event payout.processing"] // of the payout that waits
		if rows := after.Since(before); rows != "notices 6" {
			t.Errorf("lies left %s, want 6 notices and nothing else", rows)
		}
		if got := g.Must(200, "GET", "/payin/"+order.Get("id"), "").Get("status"); got != "PENDING" {
			t.Errorf("the order that was lied about is %s", got)
		}
		if got := g.Must(200, "GET", "/balance", ""); got.Get("available") != "99999000" || got.Get("unapplied") != "0" {
			t.Errorf("the balance after lies: %s", got.Body)
		}
		g.Verify(t)
	})
}
