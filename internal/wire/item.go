package wire

import (
	"strconv"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/problem"
)

const (
	itemsMax    = 500
	quantityMax = 1_000_000
)

// ItemRequest is one line of a purchase, in a request.
type ItemRequest struct {
	Title     Field[string]
	Quantity  Field[int64]
	UnitPrice Field[int64] // cents
	Tangible  Field[bool]
}

// readItems reads the entries. It stops after itemsMax+1 of them.
func readItems(items value) []ItemRequest {
	var list []ItemRequest
	for v := range items.children() {
		var item ItemRequest
		if v.node().kind == kindObject {
			item = readItem(v)
		} else { // null, too: an entry cannot be absent
			v.failType("an object")
		}
		if list = append(list, item); len(list) > itemsMax {
			break
		}
	}
	return list
}

func readItem(item value) (r ItemRequest) {
	for v := range item.children() {
		switch v.name() {
		case "title":
			r.Title = v.text()
		case "quantity":
			r.Quantity = v.integer()
		case "unitPrice":
			r.UnitPrice = v.cents()
		case "tangible":
			r.Tangible = v.boolean()
		default:
			v.failUnknown()
		}
	}
	return r
}

func checkItems(items []ItemRequest, errs *Errors) {
	const parent = "items"
	if len(items) > itemsMax {
		errs.Add(At("", parent), problem.CodeTooLong, "must have at most "+strconv.Itoa(itemsMax)+" entries")
		return
	}
	for i := range items {
		item := &items[i]
		errs.requireShown(atEntry(parent, i, "title"), item.Title, textMax)
		if p := atEntry(parent, i, "quantity"); errs.require(p, item.Quantity.Set) {
			errs.number(p, item.Quantity.V, 1, quantityMax)
		}
		if p := atEntry(parent, i, "unitPrice"); errs.require(p, item.UnitPrice.Set) {
			errs.number(p, item.UnitPrice.V, 0, int64(money.Max))
		}
		errs.require(atEntry(parent, i, "tangible"), item.Tangible.Set)
	}
}
