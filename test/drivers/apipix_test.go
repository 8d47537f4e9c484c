package drivers

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/apipix"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/apipixface"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

const (
	bankSecret = "the secret inside of the bank"
	pixSecret  = "the secret of the application"
)

// pixBank is the bank as one of the API Pix.
type pixBank struct {
	*sandboxbank.Bank

	g        *gateway
	settings map[string]string
	face     *apipixface.Face
}

// newPIXBank is a bank with the profile efi.
func newPIXBank(g *gateway) bank {
	g.t.Helper()
	return openPIXBank(g, map[string]string{apipix.SettingProfile: apipix.ProfileEfi, apipix.SettingBaseURL: "https://bank.invalid"})
}

// newBacenBank is a bank with nothing but the standard: it pays nothing out.
func newBacenBank(g *gateway) bank {
	g.t.Helper()
	return openPIXBank(g, map[string]string{
		apipix.SettingProfile: apipix.ProfileBacen, apipix.SettingBaseURL: "https://bank.invalid/v2", apipix.SettingTokenURL: "https://bank.invalid/oauth/token",
	})
}

func openPIXBank(g *gateway, settings map[string]string) bank {
	g.t.Helper()
	settings[apipix.SettingClientID], settings[apipix.SettingPIXKey] = apipixface.ClientID, apipixface.Key
	w, _ := env.Virtual(g.clock.Now(), 2)
	face, err := apipixface.New(apipixface.Options{
		BankURL: sandboxbank.InProcessURL, BankSecret: bankSecret, Secret: pixSecret, Clock: g.clock, Random: w.Random, Webhooks: inbound{g},
	})
	g.must(err)
	b, err := sandboxbank.Open(sandboxbank.Options{
		Secret: bankSecret, Clock: g.clock, IDs: w.IDs, Notify: face.Notify(nil), NotifyURL: apipixface.NotifyURL, Pause: g.clock.Pause,
	})
	g.must(err)
	g.t.Cleanup(func() { g.must(errors.Join(b.Close(), face.Close())) })
	face.Connect(b)
	return &pixBank{b, g, settings, face}
}

// certificate is that of the application, with its key. It is made once.
var certificate = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "drivers")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	w := env.System(env.OutboundOptions{})
	a, err := apipixface.OpenAuthority(dir, "", w.Clock, w.Random)
	if err != nil {
		return "", err
	}
	return string(a.Client), nil
})

func (b *pixBank) open(e processor.Env) processor.Processor {
	b.g.t.Helper()
	client, err := certificate()
	b.g.must(err)
	p, err := apipix.Driver{}.Open(processor.Account{
		ID: account, Settings: b.settings,
		Secrets: map[string]string{apipix.SecretClient: pixSecret, apipix.SecretCertificate: client},
	}, e)
	b.g.must(err)
	return p
}

func (b *pixBank) handler() http.Handler { return b.face.Handler() }

func (b *pixBank) installed() {}

func (b *pixBank) step(ctx context.Context, now time.Time) (int, error) { return b.Step(ctx, now) }

func (b *pixBank) methods() []payment.Method { return []payment.Method{payment.PIX} }

func (b *pixBank) disputes(payment.Method) bool { return true }

func (b *pixBank) installments() int { return 0 }

func (b *pixBank) paysOut() bool { return b.settings[apipix.SettingProfile] == apipix.ProfileEfi }

func (b *pixBank) questions() int { return 0 }

func (b *pixBank) force(p *payment.Payin, action string) {
	b.g.t.Helper()
	_, err := b.Handlers().ForceCharge(p.ExternalID, action, bankapi.ForceCharge{})
	b.g.must(err)
}

func (b *pixBank) pay(p *payment.Payin)     { b.g.t.Helper(); b.force(p, "pay") }
func (b *pixBank) dispute(p *payment.Payin) { b.g.t.Helper(); b.force(p, "dispute") }
func (b *pixBank) lose(p *payment.Payin)    { b.g.t.Helper(); b.force(p, "lose") }
func (b *pixBank) win(p *payment.Payin)     { b.g.t.Helper(); b.force(p, "win") }

func (b *pixBank) failTransfer(p *payment.Payout) bool {
	b.g.t.Helper()
	o, ok, err := b.PeekOrder(bankapi.SubjectTransfer, p.ExternalID)
	b.g.must(err)
	if !ok || o.State != bankapi.OrderProcessing {
		return false
	}
	_, err = b.Handlers().ForceTransfer(p.ExternalID, "fail")
	b.g.must(err)
	return true
}

func (b *pixBank) panelRefund(p *payment.Payin, amount money.Cents) {
	b.g.t.Helper()
	c, _, err := b.PeekCharge(p.ExternalID)
	b.g.must(err)
	id := strings.ReplaceAll(b.Handlers().NewID(), "-", "")
	_, err = b.Handlers().PutRefund(bankapi.RefundRequest{ExternalID: id, PaymentID: c.Payments[0].ID, Amount: amount}, "")
	b.g.must(err)
}

func (b *pixBank) defends() bool { return b.paysOut() }

func (b *pixBank) defenses(p *payment.Payin) (n int) {
	b.g.t.Helper()
	c, _, err := b.PeekCharge(p.ExternalID)
	b.g.must(err)
	for i := range c.Disputes {
		has, err := b.PeekDefense(c.Disputes[i].ID)
		b.g.must(err)
		if has {
			n++
		}
	}
	return n
}

func (b *pixBank) charges(p *payment.Payin) (registered, open int) {
	b.g.t.Helper()
	c, ok, err := b.PeekCharge(p.ExternalID)
	b.g.must(err)
	if !ok {
		return 0, 0
	}
	if c.State == bankapi.ChargeOpen && len(c.Payments) == 0 {
		open = 1
	}
	return 1, open
}

func (b *pixBank) transfers(p *payment.Payout) (list []money.Cents) {
	b.g.t.Helper()
	all, err := b.PeekTransfers(time.Time{}, b.Now())
	b.g.must(err)
	for i := range all {
		if all[i].ExternalID == p.ExternalID && all[i].Status != "failed" {
			list = append(list, all[i].Amount)
		}
	}
	return list
}

func (b *pixBank) refunds(p *payment.Payin) map[string][]money.Cents {
	b.g.t.Helper()
	all := map[string][]money.Cents{}
	payments, err := b.PeekPayments(time.Time{}, b.Now())
	b.g.must(err)
	for i := range payments {
		if payments[i].ExternalID != p.ExternalID {
			continue
		}
		for _, o := range payments[i].Refunds {
			if o.State != bankapi.OrderFailed {
				all[o.ExternalID] = append(all[o.ExternalID], o.Amount)
			}
		}
	}
	return all
}

func (b *pixBank) holds() money.Cents {
	b.g.t.Helper()
	v, err := b.Handlers().Balance()
	b.g.must(err)
	return v.Amount
}
