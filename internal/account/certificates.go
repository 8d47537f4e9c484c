package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// certificateDays are how many days before the end of an account's certificate there is a
// case, each in place of the one before; 0 is the end.
var certificateDays = []int{0, 1, 7, 14, 30}

// certificateState is what was recorded of a certificate.
type certificateState struct {
	end  time.Time
	days int // one of certificateDays; -1 if its end is far
}

// stage is what is to be recorded of a certificate at now.
func stage(end, now time.Time) certificateState {
	s := certificateState{end, -1}
	if !end.IsZero() {
		left := end.Sub(now)
		if i := slices.IndexFunc(certificateDays, func(days int) bool { return left <= time.Duration(days)*24*time.Hour }); i >= 0 {
			s.days = certificateDays[i]
		}
	}
	return s
}

// CertificateEnds lists when the certificates of open accounts expire, by account.
func (r *Registry) CertificateEnds() map[string]time.Time {
	ends := map[string]time.Time{}
	for _, id := range r.IDs() {
		if v, ok := r.Find(id).(processor.Certified); ok && !v.CertificateEnd().IsZero() {
			ends[id] = v.CertificateEnd()
		}
	}
	return ends
}

// CheckCertificates is the step of the worker that opens a case 30, 14, 7 and 1 days before an
// account's certificate expires, and when it has; the case closes when the certificate is
// replaced. One run is always enough, so it returns 0.
func (r *Registry) CheckCertificates(ctx context.Context) (int, error) {
	var errs []error
	for _, id := range r.IDs() {
		v := r.get(id)
		certified, ok := v.proc.(processor.Certified)
		if !ok {
			continue
		}
		now := stage(certified.CertificateEnd(), r.Env.Clock.Now())
		if last, known := r.certificates[id]; known && last.days == now.days && last.end.Equal(now.end) {
			continue
		}
		if err := r.recordCertificate(ctx, &v.account, now); err != nil {
			errs = append(errs, fmt.Errorf("account %s: %w", id, err))
			continue
		}
		if r.certificates == nil {
			r.certificates = map[string]certificateState{}
		}
		r.certificates[id] = now
	}
	return 0, errors.Join(errs...)
}

// recordCertificate opens the case about a certificate, unless another process has, and closes
// those that it replaces.
func (r *Registry) recordCertificate(ctx context.Context, a *store.Account, s certificateState) error {
	subject := store.CaseID("certificate of %s", a.ID)
	cases, err := r.Store.CasesAbout(ctx, a.Merchant, subject, store.CaseAccountCertificate)
	if err != nil {
		return store.Problem(err)
	}
	wanted, how := payment.ID{}, store.ResolvedByCommand
	if s.days >= 0 {
		wanted, how = store.CaseID("certificate of %s until %d: %d days", a.ID, s.end.Unix(), s.days), store.ResolvedByNewCase
	}
	known := wanted.IsZero()
	var replaced []payment.ID
	for i := range cases {
		switch v := &cases[i]; {
		case v.ID == wanted:
			known = true
		case v.ClosedAt.IsZero():
			replaced = append(replaced, v.ID)
		}
	}
	if known && len(replaced) == 0 {
		return nil
	}
	err = r.Store.Transact(ctx, func(tx *store.Tx) error {
		return tx.Apply(ctx, &store.Needs{}, func(_ *store.Loaded, c *store.Changes) error {
			for _, id := range replaced {
				c.CloseCase(a.Merchant, id, how)
			}
			if !known {
				c.OpenCase(store.Case{
					Merchant: a.Merchant, ID: wanted, Kind: store.CaseAccountCertificate, Subject: subject,
					Params: store.Params{"account": a.ID, "end": s.end.UTC().Format(time.RFC3339), "days": strconv.Itoa(s.days)},
				})
			}
			return nil
		})
	})
	if err == nil && !known {
		r.log.WarnContext(ctx, "the certificate of an account expires soon, or has expired: replace it with porteira account rotate", "account", a.ID, "end", s.end)
	}
	return store.Problem(err)
}
