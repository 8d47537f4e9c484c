package apipix

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/accounthttp"
)

// Processor is an account with the profile bacen. It adds no timeouts: callers bound each call
// by its context.
type Processor struct {
	payee

	client client
	clock  env.Clock
	prefix string // of the standard's routes
	efi    bool
	sender sender
}

// Efi is an account with the profile efi.
type Efi struct{ *Processor }

var (
	_ processor.Charger        = (*Processor)(nil)
	_ processor.ChargeCanceler = (*Processor)(nil)
	_ processor.Refunder       = (*Processor)(nil)
	_ processor.Notifier       = (*Processor)(nil)
	_ processor.PeerVerifier   = (*Processor)(nil)
	_ processor.Feeder         = (*Processor)(nil)
	_ processor.Inspector      = (*Processor)(nil)
	_ processor.Installer      = (*Processor)(nil)
	_ processor.Authenticator  = (*Processor)(nil)
	_ processor.Certified      = (*Processor)(nil)

	_ processor.Transferrer   = (*Efi)(nil)
	_ processor.Feeder        = (*Efi)(nil)
	_ processor.BalanceReader = (*Efi)(nil)
	_ processor.Defender      = (*Efi)(nil)
)

// payee is whom charges pay: a Pix key, and the hosts in the bank's codes; without these any.
type payee struct {
	key       string
	codeHosts []string
}

func newProcessor(o accounthttp.Options, profile string, to payee, from sender) (processor.Processor, error) {
	c, err := accounthttp.New(o)
	if err != nil {
		return nil, err
	}
	p := &Processor{client: client{c, o.Clock}, clock: o.Clock, payee: to, sender: from}
	if profile != ProfileEfi {
		return p, nil
	}
	p.prefix, p.efi = "/v2", true
	return &Efi{p}, nil
}

// refundWindow is how long after a Pix it can be given back.
const refundWindow = 90 * 24 * time.Hour

// chargeSlots bounds the charges in flight: 500 a second, if a bank answers in 200 ms, and
// a reserve for slower answers.
const chargeSlots = 160

// Profile implements [processor.Processor]. A request that is repeated has no second effect
// at the standard's banks: a charge of the same id is revised, which the answer shows, and
// the id of a return is refused. But that id is of one payment only, so it is looked up first:
// a copy of the database may lack a return of another payment of the order.
func (p *Processor) Profile() processor.Profile {
	return processor.Profile{
		Name:            Name,
		Methods:         []payment.Method{payment.PIX},
		ChecksDocuments: true,
		CodeKey:         p.key,
		CodeHosts:       p.codeHosts,
		CancelsCharges:  []payment.Method{payment.PIX},
		RefundWindows:   map[payment.Method]time.Duration{payment.PIX: refundWindow},
		Charge:          processor.Effect{Repeat: processor.RepeatRejected, QuietPeriod: 10 * time.Second, Timeout: 8 * time.Second, Slots: chargeSlots},
		Refund:          processor.Effect{Repeat: processor.RepeatRejected, LookUpFirst: true, QuietPeriod: time.Minute, Timeout: 20 * time.Second},
		// One at a time: transfers of one account may hinder each other. Efí advises to wait for the end of
		// each, which would make a slow receiver's bank stop all payouts.
		Transfer: processor.Effect{Repeat: processor.RepeatRejected, QuietPeriod: 2 * time.Minute, Timeout: 20 * time.Second, Slots: 1, Serial: true},
	}
}

// Profile implements [processor.Processor].
func (e *Efi) Profile() processor.Profile {
	p := e.Processor.Profile()
	p.Defense = processor.Effect{Repeat: processor.RepeatRejected, QuietPeriod: 2 * time.Minute, Timeout: 20 * time.Second}
	return p
}

func (p *Processor) get(ctx context.Context, path string) response {
	return p.client.do(ctx, http.MethodGet, path, nil, nil)
}

// Refused implements [processor.Authenticator].
func (p *Processor) Refused() bool { return p.client.http.Refused() }

// Authenticate implements [processor.Authenticator]: it reads the payments of the last second.
func (p *Processor) Authenticate(ctx context.Context) error {
	now := p.clock.Now()
	r := p.get(ctx, p.listPath(listReceived, now.Add(-time.Second), now, 0, ""))
	switch {
	case r.refused:
		return fmt.Errorf("apipix: %w", processor.ErrCredentials)
	case !r.ok():
		return fmt.Errorf("read the list of payments: %w", r.cause())
	}
	return nil
}

// CertificateEnd implements [processor.Certified].
func (p *Processor) CertificateEnd() time.Time { return p.client.http.CertificateEnd() }

func escape(id string) string { return url.PathEscape(id) }
