package wire

import (
	"strconv"

	"github.com/porteira/porteira/internal/problem"
)

// errorsMax is how many invalid fields are listed. It bounds what an invalid request
// costs: a body of 64 KiB can have 30,000 of them.
const errorsMax = 100

// Errors collects the invalid fields of one request, at most errorsMax.
type Errors struct {
	list      []problem.FieldError
	seen      map[string]struct{}
	truncated bool // there are more than are listed
}

// Add adds an invalid field. It ignores a field that was added already, or is
// inside one that was: one cause is one error.
func (e *Errors) Add(p Path, code, detail string) {
	if !e.truncated { // else the path is not needed
		e.add(p.String(), code, detail)
	}
}

func (e *Errors) add(field, code, detail string) {
	for i := 1; i <= len(field); i++ {
		if i < len(field) && field[i] != '.' && field[i] != '[' {
			continue
		}
		if _, known := e.seen[field[:i]]; known {
			return
		}
	}
	if len(e.list) >= errorsMax {
		e.truncated = true
		return
	}
	if e.seen == nil {
		e.seen = make(map[string]struct{})
	}
	e.seen[field] = struct{}{}
	e.list = append(e.list, problem.FieldError{Field: field, Code: code, Detail: detail})
}

// List returns the first invalid fields in the order in which they were added, at most
// 100; nil if there are none.
func (e *Errors) List() []problem.FieldError { return e.list }

// problem returns the invalid fields as an error of the kind; nil if there are
// none.
func (e *Errors) problem(kind problem.Kind) *problem.Error {
	n := len(e.list)
	if n == 0 {
		return nil
	}
	detail := strconv.Itoa(n) + " invalid fields."
	switch {
	case n == 1:
		detail = "1 invalid field."
	case e.truncated:
		detail = "More than " + strconv.Itoa(errorsMax) + " invalid fields. Only the first " + strconv.Itoa(errorsMax) + " are listed."
	}
	invalid := problem.New(kind, detail).WithFields(e.list...)
	invalid.Truncated = e.truncated
	return invalid
}

// Path is the position of a field in a request. It is formatted only for an
// invalid field, so that a valid request costs nothing.
type Path struct {
	parent string // customer.address; "" for the request itself
	index  int    // of the entry in parent, if that is an array, from 1
	name   string
}

// At is the path of a member of parent; parent "" is the request itself.
func At(parent, name string) Path { return Path{parent: parent, name: name} }

// atEntry is the path of a member of entry i (from 0) of the array parent.
func atEntry(parent string, i int, name string) Path { return Path{parent, i + 1, name} }

// String is the path as clients see it: customer.address.zipCode,
// items[2].title.
func (p Path) String() string {
	if p.index > 0 {
		return joinName(joinIndex(p.parent, p.index-1), p.name)
	}
	return joinName(p.parent, p.name)
}

func joinIndex(parent string, i int) string { return parent + "[" + strconv.Itoa(i) + "]" }

// nameMax is how much of a client's name for a field is repeated, in characters.
const nameMax = 40

// joinName appends a member's name to the path of its parent. A name that is not
// an identifier is quoted and cut; one that contains a card number is not
// repeated.
func joinName(parent, name string) string {
	switch {
	case ContainsCardNumber(name):
		return parent + "[...]"
	case !isIdentifier(name):
		return parent + "[" + strconv.QuoteToGraphic(cut(name, nameMax)) + "]"
	case parent == "":
		return name
	default:
		return parent + "." + name
	}
}

func isIdentifier(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') && (i == 0 || c != '-') {
			return false
		}
	}
	return name != "" && len(name) <= nameMax
}

// cut returns the first n characters of s.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "..."
		}
		n--
	}
	return s
}
