package wire

import "github.com/go-json-experiment/json"

// Page is one page of a list, of entries in JSON. next is the cursor of the
// following page; "" if there is none. A cursor needs no escaping.
func Page(entries [][]byte, next string) []byte {
	const frame = `{"data":[],"nextCursor":null}`
	size := len(frame) + len(entries) + len(next)
	for _, entry := range entries {
		size += len(entry)
	}
	body := append(make([]byte, 0, size), `{"data":[`...)
	for i, entry := range entries {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, entry...)
	}
	if next == "" {
		return append(body, `],"nextCursor":null}`...)
	}
	body = append(body, `],"nextCursor":"`...)
	body = append(body, next...)
	return append(body, `"}`...)
}

// marshalList is a list without pages.
func marshalList[T any](views []T) ([]byte, error) {
	return json.Marshal(struct {
		Data []T `json:"data"`
	}{views})
}
