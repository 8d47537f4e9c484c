package httpapi

import (
	"strconv"
	"strings"

	"github.com/porteira/porteira/internal/payment"
)

// reader takes typed members out of a tree and collects what is faulty.
type reader struct {
	tree    *tree
	errs    *payment.Errors
	unknown bool // a member was met that the request does not have
}

// each calls member for every member of an object, null ones too.
func (r *reader) each(at int32, member func(i int32, name string)) {
	for i := r.tree.nodes[at].children; i != 0; i = r.tree.nodes[i].next {
		member(i, r.tree.nodes[i].name)
	}
}

func (r *reader) unknownField(p payment.Path) {
	r.unknown = true
	r.errs.Add(p, payment.CodeUnknownField, "is not a field of this request")
}

// present says whether the value of a member counts: null is the same as absent.
func (r *reader) present(i int32) bool { return r.tree.nodes[i].kind != kindNull }

func (r *reader) wrongType(p payment.Path, want string) {
	r.errs.Add(p, payment.CodeInvalidType, "must be "+want)
}

func (r *reader) text(i int32, p payment.Path) payment.Field[string] {
	switch n := &r.tree.nodes[i]; n.kind {
	case kindString:
		return payment.Some(unquote(n.raw))
	case kindNull:
	default:
		r.wrongType(p, "a string")
	}
	return payment.Field[string]{}
}

// integer reads a JSON integer: no fraction, no exponent, and no -0, which
// floating point would tell from 0.
func (r *reader) integer(i int32, p payment.Path) payment.Field[int64] {
	n := &r.tree.nodes[i]
	switch {
	case n.kind == kindNull:
		return payment.Field[int64]{}
	case n.kind != kindNumber, strings.ContainsAny(n.raw, ".eE"), n.raw == "-0":
		r.wrongType(p, "an integer, without fraction or exponent")
		return payment.Field[int64]{}
	}
	v, err := strconv.ParseInt(n.raw, 10, 64)
	if err != nil {
		r.errs.Add(p, payment.CodeOutOfRange, "is far too large")
		return payment.Field[int64]{}
	}
	return payment.Some(v)
}

func (r *reader) boolean(i int32, p payment.Path) payment.Field[bool] {
	switch r.tree.nodes[i].kind {
	case kindTrue:
		return payment.Some(true)
	case kindFalse:
		return payment.Some(false)
	case kindNull:
	default:
		r.wrongType(p, "true or false")
	}
	return payment.Field[bool]{}
}

// object says whether a value is an object to go into.
func (r *reader) object(i int32, p payment.Path) bool {
	if r.present(i) && r.tree.nodes[i].kind != kindObject {
		r.wrongType(p, "an object")
	}
	return r.tree.nodes[i].kind == kindObject
}

// array says whether a value is an array to go into.
func (r *reader) array(i int32, p payment.Path) bool {
	if r.present(i) && r.tree.nodes[i].kind != kindArray {
		r.wrongType(p, "an array")
	}
	return r.tree.nodes[i].kind == kindArray
}

// texts reads an object whose members are all strings.
func (r *reader) texts(i int32, p payment.Path) payment.Field[map[string]string] {
	if !r.object(i, p) {
		return payment.Field[map[string]string]{}
	}
	pairs := make(map[string]string)
	parent := p.String()
	r.each(i, func(m int32, name string) {
		if v := r.text(m, payment.At(parent, name)); v.Set {
			pairs[name] = v.V
		}
	})
	return payment.Some(pairs)
}

// fingerprint hashes every member of the body under the gateway's key, as it
// was sent. The merchant goes into each hash, so that the values of two
// merchants cannot be compared.
func (r *reader) fingerprint(merchant payment.ID, mac func([]byte) [32]byte) payment.Fingerprint {
	t := r.tree
	var room [16]payment.FieldMAC
	macs := room[:0]
	r.each(0, func(i int32, name string) {
		if !r.present(i) {
			return
		}
		t.scratch = append(t.scratch[:0], merchant[:]...)
		t.scratch = appendSized(t.scratch, name)
		t.scratch = t.appendCanonical(t.scratch, i)
		sum := mac(t.scratch)
		macs = append(macs, payment.FieldMAC{Name: name, MAC: [16]byte(sum[:16])})
	})
	clear(t.scratch)
	return payment.NewFingerprint(macs)
}
