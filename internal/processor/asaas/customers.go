package asaas

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/processor"
)

// recent are pairs of ids that this process has seen, as many as fit. The ids of customers by their
// references only save requests: Asaas has them under references that follow from their payers.
type recent struct {
	mu  sync.Mutex
	ids map[string]string
}

// recentMax bounds the memory of one account.
const recentMax = 20_000

func newRecent() *recent { return &recent{ids: map[string]string{}} }

func (c *recent) get(reference string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[reference]
}

func (c *recent) put(reference, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ids) >= recentMax {
		clear(c.ids)
	}
	c.ids[reference] = id
}

func (c *recent) drop(reference string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ids, reference)
}

// payer is the part of an order's customer that Asaas gets: what a charge requires.
type payer struct {
	Name     string `json:"name"`
	Document string `json:"document"`
}

// newCustomer is the request of a customer. Asaas must send it nothing: its messages to
// payers are on by default, and are charged for.
type newCustomer struct {
	Name                 string `json:"name"`
	Document             string `json:"cpfCnpj"`
	ExternalReference    string `json:"externalReference"`
	NotificationDisabled bool   `json:"notificationDisabled"`
}

// customer is a customer as Asaas shows it.
type customer struct {
	ID                string `json:"id"`
	Document          string `json:"cpfCnpj"`
	ExternalReference string `json:"externalReference"`
	Deleted           bool   `json:"deleted"`
}

// list is a page of any list.
type list[Row any] struct {
	HasMore    *bool `json:"hasMore"`
	TotalCount *int  `json:"totalCount"`
	Data       []Row `json:"data"`
}

// errNoPayer means that an order has no payer with a name and a document.
var errNoPayer = errors.New("asaas: the order has no payer with a name and a document")

// found is a customer, or how the search for it ended.
type found struct {
	id        string
	reference string
	known     bool     // from memory: Asaas may have deleted it
	response  response // without an id
}

// customerOf finds the customer of an order by our reference, or makes it. Customers that other
// programs made are left alone: a name of theirs would stand in our charges. A process that stops
// in between finds it again.
func (p *Processor) customerOf(ctx context.Context, personal []byte, guard func() error) found {
	var who payer
	err := json.Unmarshal(personal, &who)
	if who.Name = strings.TrimSpace(who.Name); err != nil || who.Name == "" || who.Document == "" {
		return found{response: response{failed: processor.NotSent, err: errNoPayer}}
	}
	reference := p.reference(who)
	if id := p.customers.get(reference); id != "" {
		return found{id: id, reference: reference, known: true}
	}
	r := p.client.get(ctx, "/customers?"+url.Values{"externalReference": {reference}, "limit": {"10"}}.Encode())
	page := parse[list[customer]](&r)
	if r.lookup() != processor.Found {
		r.failed = processor.NotSent // nothing was requested yet
		if r.err == nil {
			r.err = r.cause()
		}
		return found{response: r}
	}
	for _, c := range page.Data { // an unknown filter would list those of others
		if isToken(c.ID) && !c.Deleted && c.ExternalReference == reference && digits(c.Document) == who.Document {
			return p.keep(reference, c.ID)
		}
	}
	r = p.client.do(ctx, http.MethodPost, "/customers", newCustomer{who.Name, who.Document, reference, true}, guard)
	made := parse[customer](&r)
	if r.outcome() != processor.Done {
		return found{response: r}
	}
	if !isToken(made.ID) || digits(made.Document) != who.Document {
		return found{response: response{err: errOtherID}}
	}
	return p.keep(reference, made.ID)
}

func (p *Processor) keep(reference, id string) found {
	p.customers.put(reference, id)
	return found{id: id, reference: reference}
}

// digits is a document without the punctuation in which it may be shown.
func digits(document string) string {
	return strings.NewReplacer(".", "", "-", "", "/", "").Replace(document)
}
