package sandbox

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// openContract opens an account at a contract of a bank.
func openContract(t *testing.T, bank *sandboxbank.Bank, repeat bankapi.Repeat, name string) *Processor {
	t.Helper()
	d := Driver{Own: &Options{URL: sandboxbank.InProcessURL, Secret: testSecret, Transport: bank.Transport(), Inside: true}}
	p, err := d.Open(processor.Account{ID: name, Settings: map[string]string{SettingContract: name, SettingRepeat: string(repeat)}}, processor.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return p.(*Processor)
}

// listed is the number of transfers in the list of an account.
func listed(t *testing.T, p *Processor) int {
	t.Helper()
	page, err := p.Read(t.Context(), processor.FeedTransfers, "")
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Facts)
}

// refundTwice requests a refund of a cent twice, and returns the outcome of the second request and
// what is left of the payment of 3.00.
func refundTwice(t *testing.T, p *Processor) (again processor.Outcome, left money.Cents) {
	t.Helper()
	charge := processor.ChargeRequest{
		ExternalID: "000000000000000000000000000charge", Method: payment.PIX, Amount: 3_00, ExpiresAt: start.Add(time.Hour), MerchantName: "Loja", MerchantCity: "Recife",
	}
	if answer := p.Charge(t.Context(), charge, func() error { return nil }); answer.Outcome != processor.Done {
		t.Fatalf("charge: %+v", answer)
	}
	if err := p.Control().Charge(t.Context(), charge, "pay", bankapi.ForceCharge{}); err != nil {
		t.Fatal(err)
	}
	paid := p.QueryCharge(t.Context(), charge.ExternalID).Payments[0]
	r := processor.RefundRequest{ExternalID: "00000000000000000000000000refund", PaymentID: paid.ID, Amount: 1}
	guard := func() error { return nil }
	if first := p.Refund(t.Context(), r, guard); first.Outcome != processor.Done {
		t.Fatalf("refund: %+v", first)
	}
	again = p.Refund(t.Context(), r, guard).Outcome
	for left = 3_00; left > 0; left-- { // the bank refuses more than is left
		rest := processor.RefundRequest{ExternalID: fmt.Sprintf("%028drest", left), PaymentID: paid.ID, Amount: left}
		if p.Refund(t.Context(), rest, guard).Outcome == processor.Done {
			break
		}
	}
	return again, left
}

// Each contract of a bank has its own transfers, and does with a repeated one what its kind
// says. It is there again after a restart of the bank, without a call.
func TestContracts(t *testing.T) {
	t.Parallel()
	w, _ := env.Virtual(start, 1)
	path := filepath.Join(t.TempDir(), "bank.journal")
	open := func() *sandboxbank.Bank {
		t.Helper()
		bank, err := sandboxbank.Open(sandboxbank.Options{Path: path, Secret: testSecret, Clock: w.Clock, IDs: w.IDs})
		if err != nil {
			t.Fatal(err)
		}
		return bank
	}
	bank := open()
	r := processor.TransferRequest{
		ExternalID: "0000000000000000000000000000first", Amount: 10_00, KeyType: "EMAIL", Key: "a@example.com", Name: "Ana", Document: "52998224725",
	}
	guard := func() error { return nil }
	kinds := map[bankapi.Repeat]struct {
		profile processor.Repeat
		again   processor.Outcome
		listed  int
	}{
		bankapi.RepeatReturnsFirst: {processor.RepeatReturnsFirst, processor.Done, 1},
		bankapi.RepeatRejects:      {processor.RepeatRejected, processor.Known, 1},
		bankapi.RepeatPaysAgain:    {processor.RepeatUnsafe, processor.Done, 2},
		bankapi.RepeatAsksConsent:  {processor.RepeatUnsafe, processor.Done, 2},
	}
	for _, repeat := range bankapi.Repeats {
		want := kinds[repeat]
		p := openContract(t, bank, repeat, "of-"+string(repeat))
		first, again := p.Transfer(t.Context(), r, guard), p.Transfer(t.Context(), r, guard)
		if first.Outcome != processor.Done || again.Outcome != want.again || listed(t, p) != want.listed ||
			p.Profile().Transfer.Repeat != want.profile || p.Profile().Transfer.Consent != (repeat == bankapi.RepeatAsksConsent) {
			t.Errorf("%s: %v, %v, %d listed, profile %v", repeat, first, again, listed(t, p), p.Profile().Transfer)
		}
		if report := p.QueryTransfer(t.Context(), r.ExternalID); report.Lookup != processor.Found {
			t.Errorf("%s: look-up %+v", repeat, report)
		}
		if outcome, left := refundTwice(t, p); outcome != want.again || left != 3_00-money.Cents(want.listed) || p.Profile().Refund.Repeat != want.profile {
			t.Errorf("%s: a repeated refund is %v and leaves %d, profile %v", repeat, outcome, left, p.Profile().Refund)
		}
	}
	if _, err := openContract(t, bank, bankapi.RepeatRejects, "of-pays-again").Read(t.Context(), processor.FeedTransfers, ""); err == nil {
		t.Error("a contract changed its kind")
	}
	if err := bank.Close(); err != nil {
		t.Fatal(err)
	}
	bank = open()
	for repeat, want := range kinds {
		if n := listed(t, openContract(t, bank, repeat, "of-"+string(repeat))); n != want.listed {
			t.Errorf("%s: %d transfers after a restart", repeat, n)
		}
	}
	if err := bank.Close(); err != nil {
		t.Fatal(err)
	}
}

// Every fault of the settings is reported, with its field.
func TestContractSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		settings map[string]string
		fields   string
	}{
		{map[string]string{SettingContract: "a"}, ""},
		{map[string]string{SettingRepeat: "rejects"}, "settings.contract"},
		{map[string]string{SettingContract: "../A", SettingRepeat: "never", "other": "x"}, "settings.other settings.repeat settings.contract"},
		{map[string]string{SettingRate: "0.5"}, ""},
		{map[string]string{SettingRate: "fast"}, "settings.rate"},
		{map[string]string{SettingBaseURL: "https://bank.example/?a=b"}, "settings.base-url secrets.bank-secret"},
	} {
		_, err := Driver{Own: &Options{URL: sandboxbank.InProcessURL, Secret: testSecret, Transport: http.DefaultTransport}}.
			Open(processor.Account{ID: "a", Settings: tt.settings}, processor.Env{})
		var got []string
		if err != nil {
			for _, f := range problem.From(err).Fields {
				got = append(got, f.Field)
			}
		}
		if text := strings.Join(got, " "); text != tt.fields {
			t.Errorf("%v: faults %q, want %q", tt.settings, text, tt.fields)
		}
	}
}

// An effect beyond the account's rate is later, and never reaches the bank.
func TestRate(t *testing.T) {
	t.Parallel()
	w, clock := env.Virtual(start, 1)
	bank, err := sandboxbank.Open(sandboxbank.Options{Secret: testSecret, Clock: clock, IDs: w.IDs})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bank.Close() }()
	d := Driver{Own: &Options{URL: sandboxbank.InProcessURL, Secret: testSecret, Transport: bank.Transport(), Inside: true}}
	opened, err := d.Open(processor.Account{ID: "a", Settings: map[string]string{SettingRate: "1"}}, processor.Env{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	p := opened.(*Processor)
	transfer := func(id string) processor.TransferAnswer {
		return p.Transfer(t.Context(), processor.TransferRequest{
			ExternalID: "000000000000000000000000000" + id, Amount: 10_00, KeyType: "EMAIL", Key: "a@example.com", Name: "Ana", Document: "52998224725",
		}, func() error { return nil })
	}
	if first := transfer("first"); first.Outcome != processor.Done {
		t.Fatalf("first: %+v", first)
	}
	second := transfer("other")
	if second.Outcome != processor.Later || second.Wait <= 0 || second.Evidence == "" || second.Cause == nil {
		t.Errorf("second: %+v", second)
	}
	if charge := p.Charge(t.Context(), processor.ChargeRequest{ExternalID: "abc", Amount: 100, Method: "PIX"}, func() error { return nil }); charge.Outcome != processor.Later {
		t.Errorf("charge: %+v", charge)
	}
	clock.Advance(second.Wait)
	if again := transfer("other"); again.Outcome != processor.Done {
		t.Errorf("after the wait: %+v", again)
	}
	if err := p.Control().Disarm(t.Context()); err != nil {
		t.Errorf("the control has a budget: %v", err)
	}
	clock.Advance(10 * time.Second)
	if n := listed(t, p); n != 2 {
		t.Errorf("%d transfers", n)
	}
}

// A bank's address with a slash at its end is the same one.
func TestContractOfAnAddress(t *testing.T) {
	t.Parallel()
	at := func(address, name string) string {
		return Driver{}.Contract(processor.Account{Settings: map[string]string{SettingBaseURL: address, SettingContract: name}})
	}
	if at("http://bank", "a") != at("http://bank/", "a") || at("http://bank", "a") == at("http://bank", "b") || at("", "a") == at("http://bank", "a") {
		t.Error("two contracts of one, or one of two")
	}
}
