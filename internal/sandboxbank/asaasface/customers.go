package asaasface

import "strings"

// newCustomer is the request of a customer.
type newCustomer struct {
	Name      string `json:"name"`
	Document  string `json:"cpfCnpj"`
	Reference string `json:"externalReference"`
	Silent    bool   `json:"notificationDisabled"`
}

// customer is a customer. The sandbox keeps no name.
type customer struct {
	Object      string  `json:"object"`
	ID          string  `json:"id"`
	DateCreated string  `json:"dateCreated"`
	Name        string  `json:"name"`
	Document    string  `json:"cpfCnpj"`
	Reference   *string `json:"externalReference"`
	Silent      bool    `json:"notificationDisabled"`
	Deleted     bool    `json:"deleted"`
}

func (f *Face) showCustomer(n *customerNote) customer {
	return customer{"customer", n.ID, dayOf(f.handlers.Now()), "SANDBOX", n.Document, orNull(n.Reference), n.Silent, false}
}

func (f *Face) postCustomer(c *call) (any, error) {
	var r newCustomer
	if err := c.decode(&r); err != nil {
		return nil, err
	}
	if r.Name == "" || len(r.Document) != 11 && len(r.Document) != 14 {
		return nil, refuse("invalid_object", "O CPF ou CNPJ informado é inválido.")
	}
	n := &customerNote{ID: "cus_" + strings.ReplaceAll(f.handlers.NewID(), "-", ""), Document: r.Document, Reference: r.Reference, Silent: r.Silent}
	if err := f.book.write(note{Customer: n}); err != nil {
		return nil, err
	}
	return f.showCustomer(n), nil
}

func (f *Face) listCustomers(c *call) (any, error) {
	q := c.URL.Query()
	rows := []customer{}
	for _, n := range f.book.customersWhere(func(n *customerNote) bool {
		return (!q.Has("externalReference") || n.Reference == q.Get("externalReference")) && (!q.Has("cpfCnpj") || n.Document == q.Get("cpfCnpj"))
	}) {
		rows = append(rows, f.showCustomer(&n))
	}
	return pageOf(c, rows)
}
