package payout

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/porteira/porteira/internal/problem"
)

// operatorPrefix begins the actor of a decision by an operator.
const operatorPrefix = "operator:"

// personMax is the maximum length of an operator's name, in bytes.
const personMax = 100

// person is the normal form of an actor in the record of approvals. An operator's name has single
// spaces, none around it, one case, and one of several Unicode forms, so that "Ana  Maria" and "ana
// maria " are not two persons. A credential is its key id, unchanged. The error is a problem of
// kind validation_failed: no name, a name that is too long, or one with invisible characters.
func person(actor string) (string, error) {
	name, ok := strings.CutPrefix(actor, operatorPrefix)
	if !ok {
		return actor, nil
	}
	hidden := func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
	}
	isSpace := func(r rune) bool { return unicode.Is(unicode.Zs, r) }
	name = strings.Join(strings.FieldsFunc(strings.TrimSpace(norm.NFKC.String(name)), isSpace), " ")
	switch {
	case name == "":
		return "", invalidPerson(problem.CodeRequired, "is required")
	case len(name) > personMax:
		return "", invalidPerson(problem.CodeTooLong, "is too long")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, hidden):
		return "", invalidPerson(problem.CodeInvalidFormat, "must not have control characters or invalid UTF-8")
	}
	return operatorPrefix + norm.NFKC.String(strings.ToLower(strings.ToUpper(name))), nil
}

func invalidPerson(code, detail string) error {
	return problem.New(problem.ValidationFailed, "--as "+detail+".").WithFields(problem.FieldError{Field: "as", Code: code, Detail: detail})
}
