package merchant

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Limits of a merchant's details.
const (
	nameMax  = 255 // bytes
	cityMax  = 255 // bytes
	hostsMax = 50
	hostMax  = 253 // characters
)

// NoHosts is the value that empties a list of hosts, so it is no host's name.
const NoHosts = "none"

// hostForm is the form of a host name, in lower case, as URLs have it.
var hostForm = regexp.MustCompile(`^[\pL\pN_]([\pL\pN\pM_.-]*[\pL\pN\pM_])?$`)

// errPlatform refuses to treat the platform's row as a merchant.
var errPlatform = problem.New(problem.NotFound, "The platform is not a merchant.")

// Update are the changes of a merchant; nil fields stay as they are.
type Update struct {
	Name         *string
	City         *string
	ReturnHosts  *[]string
	WebhookHosts *[]string
	Brand        *BrandUpdate
}

// BrandUpdate are the changes of a brand; nil fields stay as they are, and empty ones are removed.
type BrandUpdate struct {
	Title, Document, Color *string
	Logo                   *[]byte
}

// Update changes a merchant and its brand in one commit, or nothing. All nodes use the new
// values within 2 s. Errors: problem kinds not_found, also for the platform, and validation_failed if the name is taken
// or a value is invalid.
func (s *Service) Update(ctx context.Context, id payment.ID, u Update) (store.Merchant, error) {
	if id.IsZero() {
		return store.Merchant{}, errPlatform
	}
	err := s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) error {
		_, err := tx.ChangeMerchant(ctx, id, func(m *store.Merchant) error {
			assign(&m.Name, u.Name)
			assign(&m.City, u.City)
			assign(&m.ReturnHosts, u.ReturnHosts)
			assign(&m.WebhookHosts, u.WebhookHosts)
			return tidyDetails(m)
		})
		if err != nil || u.Brand == nil {
			return err
		}
		b, err := tx.Brand(ctx, id)
		if err != nil {
			return err
		}
		assign(&b.Title, u.Brand.Title)
		assign(&b.Document, u.Brand.Document)
		assign(&b.Color, u.Brand.Color)
		assign(&b.Logo, u.Brand.Logo)
		if err := tidyBrand(&b); err != nil {
			return err
		}
		return tx.SaveBrand(ctx, b)
	})
	if err != nil {
		return store.Merchant{}, nameProblem(err)
	}
	m, err := s.Store.Merchant(ctx, id)
	return m, store.Problem(err)
}

func assign[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

// nameProblem is the problem of a name that is taken.
func nameProblem(err error) error {
	if errors.Is(err, store.ErrConflict) {
		return problem.New(problem.ValidationFailed, "A merchant with this name already exists.").With(err)
	}
	return store.Problem(err)
}

// tidyDetails trims and validates name, city and hosts. Errors: problem kind
// validation_failed.
func tidyDetails(m *store.Merchant) error {
	m.Name, m.City = strings.TrimSpace(m.Name), strings.TrimSpace(m.City)
	if m.Name == "" || len(m.Name) > nameMax || !isPrintable(m.Name) {
		return problem.New(problem.ValidationFailed, "A merchant's name must have 1 to 255 bytes of printable characters.")
	}
	if strings.EqualFold(m.Name, store.PlatformName) {
		return problem.New(problem.ValidationFailed, "No merchant may have the name "+store.PlatformName+": it stands for the platform in commands.")
	}
	if m.City == "" || len(m.City) > cityMax || !isPrintable(m.City) {
		return problem.New(problem.ValidationFailed, "A merchant's city must have 1 to 255 bytes of printable characters.")
	}
	for _, list := range []*[]string{&m.ReturnHosts, &m.WebhookHosts} {
		tidy, err := tidyHosts(*list)
		if err != nil {
			return err
		}
		*list = tidy
	}
	return nil
}

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) })
}

// tidyHosts returns hosts in lower case, each once.
func tidyHosts(hosts []string) ([]string, error) {
	var tidy []string
	for _, host := range hosts {
		host = strings.ToLower(strings.Trim(strings.TrimSpace(host), "[]"))
		if host == NoHosts {
			return nil, problem.New(problem.ValidationFailed, "No host may have the name "+NoHosts+": it stands for no hosts in porteira merchant update.")
		}
		_, err := netip.ParseAddr(host)
		if len(host) > hostMax || err != nil && (!hostForm.MatchString(host) || strings.Contains(host, "..")) {
			return nil, problem.New(problem.ValidationFailed, fmt.Sprintf("%q is not a host: write its name without scheme, port or path, such as shop.example.", host))
		}
		if !slices.Contains(tidy, host) {
			tidy = append(tidy, host)
		}
	}
	if len(tidy) > hostsMax {
		return nil, problem.New(problem.ValidationFailed, fmt.Sprintf("A merchant may have at most %d hosts of a kind.", hostsMax))
	}
	return tidy, nil
}
