package asaas

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// row is a row of a list. One that cannot be read stops no other.
type row[V any] struct {
	v     V
	valid bool
	text  jsontext.Value
	// reference is the externalReference; unknown if that cannot be read either.
	reference string
	unknown   bool
}

// readPage reads a page of a list row by row; total is the number of rows of the list, or -1.
func readPage[V any](ctx context.Context, c client, path string) (rows []row[V], more bool, total int, err error) {
	body, err := page[jsontext.Value](ctx, c, path)
	if err != nil {
		return nil, false, 0, err
	}
	for _, text := range body.Data {
		r := row[V]{text: text}
		r.valid = json.Unmarshal(text, &r.v, anyText) == nil
		var of struct {
			Reference *string `json:"externalReference"`
		}
		if json.Unmarshal(text, &of, anyText) != nil {
			r.unknown = true
		} else if of.Reference != nil {
			r.reference = *of.Reference
		}
		rows = append(rows, r)
	}
	if total = -1; body.TotalCount != nil {
		total = *body.TotalCount
	}
	return rows, *body.HasMore, total, nil
}

// mayBeOurs reports whether a row that cannot be read may be about an order of ours.
func (r *row[V]) mayBeOurs() bool { return r.unknown || isExternalID(r.reference) }
