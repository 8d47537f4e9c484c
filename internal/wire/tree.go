package wire

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/problem"
)

// Limits of a body.
const (
	depthMax = 8    // levels of nesting
	nodesMax = 8192 // values
)

const (
	kindNull   jsontext.Kind = 'n'
	kindFalse  jsontext.Kind = 'f'
	kindTrue   jsontext.Kind = 't'
	kindString jsontext.Kind = '"'
	kindNumber jsontext.Kind = '0'
	kindObject jsontext.Kind = '{'
	kindArray  jsontext.Kind = '['
)

// node is one value of a body. Nodes refer to each other by index.
type node struct {
	kind    jsontext.Kind
	parent  int32
	child   int32  // first member or entry; 0 for none
	next    int32  // next sibling; 0 for none
	rawName string // of a member, with quotes and escapes
	name    string // of a member
	raw     string // the value's text, as it was sent
}

// root is the index of a body's object.
const root = 0

// tree is a parsed body. Trees are reused, which saves allocations.
type tree struct {
	source  bytes.Buffer
	text    string // the body; the texts of nodes are parts of it
	nodes   []node
	current int32   // the container that is being parsed
	sorted  []int32 // buffer for sorting members
	scratch []byte  // buffer for canonical forms
	decoder *jsontext.Decoder
}

var trees = sync.Pool{New: func() any {
	t := &tree{}
	t.decoder = jsontext.NewDecoder(&t.source)
	return t
}}

// nodesKept bounds the memory that a tree keeps for its next use.
const nodesKept = 1024

// scratchKept is the largest scratch that a tree keeps, in bytes: a defense of a dispute has
// files.
const scratchKept = 128 << 10

// release returns the tree to its pool.
func (t *tree) release() {
	if cap(t.nodes) > nodesKept || cap(t.scratch) > scratchKept {
		t.nodes, t.sorted, t.scratch = nil, nil, nil
	}
	clear(t.nodes)
	t.text, t.source = "", bytes.Buffer{}
	trees.Put(t)
}

// parse parses one JSON object strictly: RFC 8259 without duplicate names, in
// valid UTF-8 (a byte order mark is skipped), nested at most depthMax deep, of at most nodesMax values, with nothing
// after it. The error has kind malformed_json or duplicate_field.
func (t *tree) parse(body []byte) *problem.Error {
	body = bytes.TrimPrefix(body, byteOrderMark)
	t.source = *bytes.NewBuffer(body)
	t.text = string(body)
	t.nodes, t.current = t.nodes[:0], root
	t.decoder.Reset(&t.source)
	if err := t.value(node{}); err != nil {
		return t.explain(err)
	}
	if _, err := t.decoder.ReadToken(); err != io.EOF { //nolint:errorlint // documented to be EOF itself
		return malformed("Unexpected data after the JSON value", t.decoder.InputOffset())
	}
	if t.nodes[root].kind != kindObject {
		return problem.New(problem.MalformedJSON, "The body must be a JSON object.")
	}
	return nil
}

var (
	errDepth = errors.New("wire: nested too deep")
	errNodes = errors.New("wire: too many values")
)

// value parses a value with everything in it, and appends it as n.
func (t *tree) value(n node) error {
	if len(t.nodes) >= nodesMax {
		return errNodes
	}
	n.kind = t.decoder.PeekKind()
	at := int32(len(t.nodes))
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
	t.current = at
	if err := t.children(at); err != nil {
		return err
	}
	t.current = n.parent
	_, err := t.decoder.ReadToken()
	t.nodes[at].raw = t.text[start:t.decoder.InputOffset()]
	return err
}

// children parses the members or entries of the container at.
func (t *tree) children(at int32) error {
	for last := at; ; {
		if kind := t.decoder.PeekKind(); kind == '}' || kind == ']' {
			return nil
		}
		child := node{parent: at}
		if t.nodes[at].kind == kindObject {
			raw, err := t.decoder.ReadValue()
			if err != nil {
				return err
			}
			child.rawName = t.part(raw)
			child.name = unquote(child.rawName)
		}
		index := int32(len(t.nodes))
		if err := t.value(child); err != nil {
			return err
		}
		if last == at {
			t.nodes[at].child = index
		} else {
			t.nodes[last].next = index
		}
		last = index
	}
}

// part returns the value that was just read as a part of the body's text.
func (t *tree) part(raw jsontext.Value) string {
	end := int(t.decoder.InputOffset())
	return t.text[end-len(raw) : end]
}

// unquote decodes a JSON string that the decoder has accepted. It copies only a
// string with escapes.
func unquote(raw string) string {
	for i := range len(raw) {
		if raw[i] == '\\' {
			decoded, err := jsontext.AppendUnquote(nil, raw)
			if err != nil {
				return "" // the decoder has accepted it
			}
			return string(decoded)
		}
	}
	return raw[1 : len(raw)-1]
}

// explain says where a body is invalid, without repeating it.
func (t *tree) explain(err error) *problem.Error {
	offset := t.decoder.InputOffset()
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		offset = syntax.ByteOffset
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && syntax != nil:
		return problem.New(problem.DuplicateField, "The body contains a duplicate field.").WithFields(problem.FieldError{
			Field: joinName(t.path(t.current), syntax.JSONPointer.LastToken()),
			Code:  problem.CodeNotAllowed, Detail: "must appear only once",
		})
	case errors.Is(err, errDepth):
		return malformed("The JSON is nested more than "+strconv.Itoa(depthMax)+" levels deep", offset)
	case errors.Is(err, errNodes):
		return malformed("The JSON has more than "+strconv.Itoa(nodesMax)+" values", offset)
	case len(t.text) == 0:
		return problem.New(problem.MalformedJSON, "The body is empty.")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return malformed("Unexpected end of the JSON", offset)
	case !utf8.ValidString(t.text):
		return malformed("The body is not valid UTF-8", offset)
	default:
		return malformed("Invalid JSON", offset)
	}
}

func malformed(what string, offset int64) *problem.Error {
	return problem.New(problem.MalformedJSON, what+" at byte "+strconv.FormatInt(offset, 10)+".")
}

// path is the path of a node as clients see it; "" for the root. It also works
// for a node that is being parsed, which no sibling links to yet.
func (t *tree) path(at int32) string {
	if at == root {
		return ""
	}
	n := &t.nodes[at]
	parent := t.path(n.parent)
	if t.nodes[n.parent].kind == kindObject {
		return joinName(parent, n.name)
	}
	index := 0
	for i := t.nodes[n.parent].child; i != 0 && i != at; i = t.nodes[i].next {
		index++
	}
	return joinIndex(parent, index)
}
