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

// How long a merchant's brand is cached, and for how many merchants.
const (
	brandTTL      = 5 * time.Second
	brandCacheMax = 1_000
)

// brandedMerchant is a merchant with its brand.
type brandedMerchant struct {
	store.Merchant

	brand      store.Brand
	accentCSS  string // CSS that sets the accent colour
	accentHash string // of accentCSS, as a Content-Security-Policy source
	logo       string // names the logo in its URL; "" if there is none
	expires    time.Duration
}

// title is the name that payers see.
func (b *brandedMerchant) title() string {
	if b.brand.Title != "" {
		return b.brand.Title
	}
	return b.Name
}

// brandCache caches merchants for brandTTL.
type brandCache struct {
	reader Reader
	clock  env.Clock

	mu      sync.Mutex
	entries map[int64]*brandedMerchant
}

func newBrands(reader Reader, clock env.Clock) *brandCache {
	return &brandCache{reader: reader, clock: clock, entries: map[int64]*brandedMerchant{}}
}

// get finds a merchant by its number. Errors: store.ErrNotFound.
func (b *brandCache) get(ctx context.Context, number int64) (*brandedMerchant, error) {
	now := b.clock.Monotonic()
	b.mu.Lock()
	m := b.entries[number]
	b.mu.Unlock()
	if m != nil && now < m.expires {
		return m, nil
	}
	m = &brandedMerchant{expires: now + brandTTL}
	var err error
	if m.Merchant, err = b.reader.MerchantByNumber(ctx, number); err != nil {
		return nil, err
	}
	if m.brand, err = b.reader.Brand(ctx, m.ID); err != nil {
		return nil, err
	}
	m.accentCSS = accentCSS(m.brand.Color)
	m.accentHash = cspHash(m.accentCSS)
	if len(m.brand.Logo) > 0 {
		digest := sha256.Sum256(m.brand.Logo)
		m.logo = base64.RawURLEncoding.EncodeToString(digest[:9])
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.entries) >= brandCacheMax {
		clear(b.entries)
	}
	b.entries[number] = m
	return m, nil
}

// logo serves the merchant's logo. Its URL changes with its content, so
// browsers may cache it.
func (p *Pages) logo(req *request) error {
	if req.param != req.merchant.logo || req.param == "" {
		return errNotFound
	}
	header := req.header()
	header.Set("Content-Type", req.merchant.brand.LogoType)
	header.Set("Content-Length", strconv.Itoa(len(req.merchant.brand.Logo)))
	header.Set("Cache-Control", "private, max-age=31536000, immutable")
	req.status = http.StatusOK
	req.w.WriteHeader(http.StatusOK)
	_, _ = req.w.Write(req.merchant.brand.Logo) // the client may have disconnected
	return nil
}
