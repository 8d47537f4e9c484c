package checkout

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
)

// How long a merchant's brand is remembered, and of how many merchants.
const (
	brandLife  = 5 * time.Second
	brandsKept = 1_000
)

// branded is a merchant as payers see it.
type branded struct {
	store.Merchant

	brand store.Brand
	rules string // its part of the style
	hash  string // of rules, as a Content-Security-Policy names it
	logo  string // names the logo in its address; "" for none
	until time.Duration
}

// title is the name that payers see.
func (b *branded) title() string {
	if b.brand.Title != "" {
		return b.brand.Title
	}
	return b.Name
}

// brands remembers merchants for a moment.
type brands struct {
	reader Reader
	clock  env.Clock

	mu   sync.Mutex
	kept map[int64]*branded
}

func newBrands(reader Reader, clock env.Clock) *brands {
	return &brands{reader: reader, clock: clock, kept: map[int64]*branded{}}
}

// of finds a merchant by its number; else store.ErrNotFound.
func (b *brands) of(ctx context.Context, number int64) (*branded, error) {
	now := b.clock.Monotonic()
	b.mu.Lock()
	m := b.kept[number]
	b.mu.Unlock()
	if m != nil && now < m.until {
		return m, nil
	}
	m = &branded{until: now + brandLife}
	var err error
	if m.Merchant, err = b.reader.MerchantByNumber(ctx, number); err != nil {
		return nil, err
	}
	if m.brand, err = b.reader.Brand(ctx, m.ID); err != nil {
		return nil, err
	}
	m.rules = accentRules(m.brand.Color)
	m.hash = hashOf(m.rules)
	if len(m.brand.Logo) > 0 {
		digest := sha256.Sum256(m.brand.Logo)
		m.logo = base64.RawURLEncoding.EncodeToString(digest[:9])
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.kept) >= brandsKept {
		clear(b.kept)
	}
	b.kept[number] = m
	return m, nil
}

// logo serves the merchant's logo. Its address changes with it, so browsers
// may keep it.
func (p *Pages) logo(v *visit) error {
	if v.part != v.merchant.logo || v.part == "" {
		return errNotFound
	}
	header := v.header()
	header.Set("Content-Type", v.merchant.brand.LogoType)
	header.Set("Content-Length", strconv.Itoa(len(v.merchant.brand.Logo)))
	header.Set("Cache-Control", "private, max-age=31536000, immutable")
	v.status = http.StatusOK
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(v.merchant.brand.Logo) // the caller may have gone
	return nil
}
