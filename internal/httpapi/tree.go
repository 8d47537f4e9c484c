package httpapi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// depthMax is how deep a body may nest.
const depthMax = 8

// The kinds of JSON values that are compared with.
const (
	kindNull   jsontext.Kind = 'n'
	kindFalse  jsontext.Kind = 'f'
	kindTrue   jsontext.Kind = 't'
	kindString jsontext.Kind = '"'
	kindNumber jsontext.Kind = '0'
	kindObject jsontext.Kind = '{'
	kindArray  jsontext.Kind = '['
)

// node is one value of a body. Nodes refer to each other by their index.
type node struct {
	kind     jsontext.Kind
	rawName  string // of a member, with quotes and escapes
	name     string // of a member
	raw      string // the whole value, as it was sent
	children int32  // first member or entry; 0 for none
	next     int32  // next sibling; 0 for none
}

// tree is a body that was read in one pass. The root, an object, is node 0.
// Trees are reused, so that a request costs few allocations.
type tree struct {
	source  bytes.Buffer
	text    string // the body; the nodes' texts are parts of it
	nodes   []node
	open    []int32 // containers that are being read, outermost first
	sorted  []int32 // room for sorting members
	scratch []byte  // room for canonical forms
	decoder *jsontext.Decoder
}

var trees = sync.Pool{New: func() any {
	t := &tree{}
	t.decoder = jsontext.NewDecoder(&t.source)
	return t
}}

// nodesKept bounds what a tree carries on to the next request.
const nodesKept = 1024

// release gives the tree back; its nodes must not be used any more.
func (t *tree) release() {
	if cap(t.nodes) > nodesKept {
		t.nodes = nil
	}
	clear(t.nodes)
	t.text, t.source = "", bytes.Buffer{}
	trees.Put(t)
}

// parse reads one JSON object, strictly: RFC 8259 without duplicate names, in
// valid UTF-8, at most depthMax deep, with nothing after it. The error is of
// kind malformed_json or duplicate_field.
func (t *tree) parse(body []byte) *problem.Error {
	t.source = *bytes.NewBuffer(body)
	t.text = string(body)
	t.nodes, t.open = t.nodes[:0], t.open[:0]
	t.decoder.Reset(&t.source)
	if err := t.value(node{}); err != nil {
		return t.explain(err)
	}
	if _, err := t.decoder.ReadToken(); err != io.EOF { //nolint:errorlint // documented to be EOF itself
		return malformed("There is something after the JSON value", t.decoder.InputOffset())
	}
	if t.nodes[0].kind != kindObject {
		return problem.New(problem.MalformedJSON, "The body must be a JSON object.")
	}
	return nil
}

var errDepth = errors.New("httpapi: nested too deep")

// value reads a value and everything in it, and appends it as n.
func (t *tree) value(n node) error {
	n.kind = t.decoder.PeekKind()
	at := len(t.nodes)
	t.nodes = append(t.nodes, n)
	if n.kind != kindObject && n.kind != kindArray {
		raw, err := t.decoder.ReadValue()
		t.nodes[at].raw = t.part(raw)
		return err
	}
	if t.decoder.StackDepth() >= depthMax {
		return errDepth
	}
	if _, err := t.decoder.ReadToken(); err != nil {
		return err
	}
	start := t.decoder.InputOffset() - 1
	t.open = append(t.open, int32(at))
	last := at
	for {
		if kind := t.decoder.PeekKind(); kind == '}' || kind == ']' {
			t.open = t.open[:len(t.open)-1]
			_, err := t.decoder.ReadToken()
			t.nodes[at].raw = t.text[start:t.decoder.InputOffset()]
			return err
		}
		var child node
		if n.kind == kindObject {
			raw, err := t.decoder.ReadValue()
			if err != nil {
				return err
			}
			child.rawName = t.part(raw)
			child.name = unquote(child.rawName)
		}
		index := len(t.nodes)
		if err := t.value(child); err != nil {
			return err
		}
		if last == at {
			t.nodes[at].children = int32(index)
		} else {
			t.nodes[last].next = int32(index)
		}
		last = index
	}
}

// part is what was just read as a part of the body's text.
func (t *tree) part(raw jsontext.Value) string {
	end := int(t.decoder.InputOffset())
	return t.text[end-len(raw) : end]
}

// unquote decodes a JSON string that was checked. Nothing is copied where it
// has no escapes.
func unquote(raw string) string {
	for i := range len(raw) {
		if raw[i] == '\\' {
			decoded, err := jsontext.AppendUnquote(nil, raw)
			if err != nil {
				return "" // no checked string comes here
			}
			return string(decoded)
		}
	}
	return raw[1 : len(raw)-1]
}

// explain says where a body is not what it must be, without repeating it.
func (t *tree) explain(err error) *problem.Error {
	offset := t.decoder.InputOffset()
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		offset = syntax.ByteOffset
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && syntax != nil:
		field := payment.FieldError{
			Field: payment.At(t.openPath(), syntax.JSONPointer.LastToken()).String(),
			Code:  payment.CodeNotAllowed, Detail: "must not be there twice",
		}
		return problem.New(problem.DuplicateField, "The body names a member twice.").WithFields(field)
	case errors.Is(err, errDepth):
		return malformed("The JSON is nested deeper than "+strconv.Itoa(depthMax)+" levels", offset)
	case len(t.text) == 0:
		return problem.New(problem.MalformedJSON, "The body is empty.")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return malformed("The JSON ends too early", offset)
	case !utf8.ValidString(t.text):
		return malformed("The body is not valid UTF-8", offset)
	default:
		return malformed("The JSON is not well-formed", offset)
	}
}

func malformed(what string, offset int64) *problem.Error {
	return problem.New(problem.MalformedJSON, what+", at byte "+strconv.FormatInt(offset, 10)+".")
}

// openPath is where the container stands that was being read when an error
// came up. A child is linked once it is complete, so those that are linked
// tell the index of the one that is not.
func (t *tree) openPath() string {
	path := ""
	for i := 1; i < len(t.open); i++ {
		parent, child := &t.nodes[t.open[i-1]], &t.nodes[t.open[i]]
		if parent.kind == kindObject {
			path = payment.At(path, child.name).String()
			continue
		}
		entries := 0
		for e := parent.children; e != 0; e = t.nodes[e].next {
			entries++
		}
		path = payment.AtEntry(path, entries, "").String()
	}
	return path
}

// members appends the indexes of a container's children to dst.
func (t *tree) members(dst []int32, at int32) []int32 {
	for i := t.nodes[at].children; i != 0; i = t.nodes[i].next {
		dst = append(dst, i)
	}
	return dst
}

// compact is a value as it was sent, without white space.
func (t *tree) compact(at int32) jsontext.Value {
	return t.appendCompact(make([]byte, 0, len(t.nodes[at].raw)), at)
}

func (t *tree) appendCompact(dst []byte, at int32) []byte {
	n := &t.nodes[at]
	if n.kind != kindObject && n.kind != kindArray {
		return append(dst, n.raw...)
	}
	dst = append(dst, byte(n.kind))
	for i := n.children; i != 0; i = t.nodes[i].next {
		if i != n.children {
			dst = append(dst, ',')
		}
		if n.kind == kindObject {
			dst = append(dst, t.nodes[i].rawName...)
			dst = append(dst, ':')
		}
		dst = t.appendCompact(dst, i)
	}
	return append(dst, byte(n.kind)+2) // in ASCII, '}' and ']' follow their openers by two
}

// appendCanonical appends a form that two values share when they say the same:
// members sorted by name and those that are null left out, entries in order,
// strings as their code points, numbers as they are written. Every part tells
// its length, so no two values share a form by accident.
func (t *tree) appendCanonical(dst []byte, at int32) []byte {
	n := &t.nodes[at]
	dst = append(dst, byte(n.kind))
	switch n.kind {
	case kindString:
		return appendSized(dst, unquote(n.raw))
	case kindNumber:
		return appendSized(dst, n.raw)
	case kindArray:
		for i := n.children; i != 0; i = t.nodes[i].next {
			dst = t.appendCanonical(dst, i)
		}
		return append(dst, ']')
	case kindObject:
		first := len(t.sorted)
		t.sorted = t.members(t.sorted, at)
		t.sortByName(t.sorted[first:])
		for i := first; i < len(t.sorted); i++ {
			if child := t.sorted[i]; t.nodes[child].kind != kindNull {
				dst = appendSized(append(dst, ','), t.nodes[child].name)
				dst = t.appendCanonical(dst, child)
			}
		}
		t.sorted = t.sorted[:first]
		return append(dst, '}')
	default:
		return dst
	}
}

func appendSized(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func (t *tree) sortByName(members []int32) {
	slices.SortFunc(members, func(a, b int32) int {
		return strings.Compare(t.nodes[a].name, t.nodes[b].name)
	})
}
