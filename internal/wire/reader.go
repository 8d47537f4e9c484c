package wire

import (
	"iter"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/problem"
)

// Field is a member of a request, which may be absent. null is the same as
// absent.
type Field[T any] struct {
	V   T
	Set bool
}

// Some is a field that was sent.
func Some[T any](v T) Field[T] { return Field[T]{v, true} }

// reader reads a tree into a request.
type reader struct {
	tree    *tree
	errs    Errors
	unknown bool // the body has a member that the request does not have
}

// value is one value of a body. Its methods read it as the type that the request
// wants; a value of another type is an error of its field, and null is absent.
type value struct {
	r  *reader
	at int32
}

func (v value) node() *node { return &v.r.tree.nodes[v.at] }

// name is the name of a member.
func (v value) name() string { return v.node().name }

// children visits the members of an object or the entries of an array.
func (v value) children() iter.Seq[value] {
	return func(yield func(value) bool) {
		nodes := v.r.tree.nodes
		for i := nodes[v.at].child; i != 0; i = nodes[i].next {
			if !yield(value{v.r, i}) {
				return
			}
		}
	}
}

func (v value) fail(code, detail string) {
	if !v.r.errs.truncated { // else the path is not needed
		v.r.errs.add(v.r.tree.path(v.at), code, detail)
	}
}

func (v value) failUnknown() {
	v.r.unknown = true
	v.fail(problem.CodeUnknownField, "is not a field of this request")
}

func (v value) failType(want string) { v.fail(problem.CodeInvalidType, "must be "+want) }

// text reads a string. An empty one is absent, as null is.
func (v value) text() Field[string] {
	text := v.textOrEmpty()
	text.Set = text.V != ""
	return text
}

// textOrEmpty is text for a field in which an empty string has a meaning.
func (v value) textOrEmpty() Field[string] {
	switch n := v.node(); n.kind {
	case kindString:
		return Some(unquote(n.raw))
	case kindNull:
	case kindNumber:
		v.failType("a string: put it in quotes")
	default:
		v.failType("a string")
	}
	return Field[string]{}
}

// cents reads an amount.
func (v value) cents() Field[int64] { return v.integerOf(" of cents: 1290 is R$ 12,90") }

// integer reads a JSON integer. A fraction, an exponent and -0 are rejected, as
// floating point would blur or lose them.
func (v value) integer() Field[int64] { return v.integerOf(" without fraction or exponent") }

func (v value) integerOf(unit string) Field[int64] {
	n := v.node()
	switch {
	case n.kind == kindNull:
		return Field[int64]{}
	case n.kind == kindString:
		v.failType("a number, not a string: an integer" + unit)
		return Field[int64]{}
	case n.kind != kindNumber, strings.ContainsAny(n.raw, ".eE"), n.raw == "-0":
		v.failType("an integer" + unit)
		return Field[int64]{}
	}
	i, err := strconv.ParseInt(n.raw, 10, 64)
	if err != nil {
		v.fail(problem.CodeOutOfRange, "must fit in 64 bits")
		return Field[int64]{}
	}
	return Some(i)
}

func (v value) boolean() Field[bool] {
	switch v.node().kind {
	case kindTrue:
		return Some(true)
	case kindFalse:
		return Some(false)
	case kindNull:
	case kindString:
		v.failType("true or false, without quotes")
	default:
		v.failType("true or false")
	}
	return Field[bool]{}
}

// isObject reports whether the value is an object, to be read with children. An empty array is
// absent: PHP writes an empty object so.
func (v value) isObject() bool {
	if n := v.node(); n.kind == kindArray && n.child == 0 {
		return false
	}
	return v.isContainer(kindObject, "an object")
}

// isArray reports whether the value is an array, to be read with children.
func (v value) isArray() bool { return v.isContainer(kindArray, "an array") }

func (v value) isContainer(kind jsontext.Kind, want string) bool {
	got := v.node().kind
	if got != kind && got != kindNull {
		v.failType(want)
	}
	return got == kind
}

// texts reads an object whose members are all strings. It stops after max+1 of them.
func (v value) texts(max int) Field[map[string]string] {
	if !v.isObject() {
		return Field[map[string]string]{}
	}
	pairs := make(map[string]string)
	for member := range v.children() {
		if text := member.text(); text.Set {
			pairs[member.name()] = text.V
		}
		if len(pairs) > max {
			break
		}
	}
	return Some(pairs)
}

// compact is the value as it was sent, without white space.
func (v value) compact() []byte { return v.r.tree.compact(v.at) }
