package httpapi

import "github.com/porteira/porteira/internal/payment"

// payin reads the body of POST /payin.
func (r *reader) payin(q *payment.PayinRequest) {
	r.each(0, func(i int32, name string) {
		p := payment.At("", name)
		switch name {
		case "paymentMethod":
			q.Method = r.text(i, p)
		case "amount":
			q.Amount = r.integer(i, p)
		case "referenceId":
			q.ReferenceID = r.text(i, p)
		case "webhookUrl":
			q.WebhookURL = r.text(i, p)
		case "customer":
			if r.object(i, p) {
				q.Customer = payment.Some(r.customer(i))
				q.Personal.Customer = r.tree.compact(i)
			}
		case "items":
			if r.array(i, p) {
				q.Items = payment.Some(r.items(i))
				q.Personal.Items = r.tree.compact(i)
			}
		case "expiresIn":
			q.ExpiresIn = r.integer(i, p)
		case "dueDate":
			q.DueDate = r.text(i, p)
		case "installments":
			q.Installments = r.integer(i, p)
		case "description":
			q.Description = r.text(i, p)
		case "metadata":
			q.Metadata = r.texts(i, p)
		case "returnUrl":
			q.ReturnURL = r.text(i, p)
		default:
			r.unknownField(p)
		}
	})
}

func (r *reader) customer(at int32) (c payment.CustomerRequest) {
	const parent = "customer"
	r.each(at, func(i int32, name string) {
		p := payment.At(parent, name)
		switch name {
		case "name":
			c.Name = r.text(i, p)
		case "email":
			c.Email = r.text(i, p)
		case "document":
			c.Document = r.text(i, p)
		case "phone":
			c.Phone = r.text(i, p)
		case "address":
			if r.object(i, p) {
				c.Address = payment.Some(r.address(i))
			}
		default:
			r.unknownField(p)
		}
	})
	return c
}

func (r *reader) address(at int32) (a payment.AddressRequest) {
	const parent = "customer.address"
	r.each(at, func(i int32, name string) {
		p := payment.At(parent, name)
		switch name {
		case "street":
			a.Street = r.text(i, p)
		case "number":
			a.Number = r.text(i, p)
		case "complement":
			a.Complement = r.text(i, p)
		case "neighborhood":
			a.Neighborhood = r.text(i, p)
		case "city":
			a.City = r.text(i, p)
		case "state":
			a.State = r.text(i, p)
		case "zipCode":
			a.ZipCode = r.text(i, p)
		case "country":
			a.Country = r.text(i, p)
		default:
			r.unknownField(p)
		}
	})
	return a
}

func (r *reader) items(at int32) []payment.ItemRequest {
	const parent = "items"
	var list []payment.ItemRequest
	r.each(at, func(i int32, _ string) {
		var item payment.ItemRequest
		if r.tree.nodes[i].kind == kindObject {
			item = r.item(i, len(list))
		} else {
			r.wrongType(payment.AtEntry(parent, len(list), ""), "an object")
		}
		list = append(list, item)
	})
	return list
}

func (r *reader) item(at int32, index int) (item payment.ItemRequest) {
	const parent = "items"
	r.each(at, func(i int32, name string) {
		p := payment.AtEntry(parent, index, name)
		switch name {
		case "title":
			item.Title = r.text(i, p)
		case "quantity":
			item.Quantity = r.integer(i, p)
		case "unitPrice":
			item.UnitPrice = r.integer(i, p)
		case "tangible":
			item.Tangible = r.boolean(i, p)
		default:
			r.unknownField(p)
		}
	})
	return item
}
