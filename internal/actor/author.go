package actor

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/porteira/porteira/internal/problem"
)

// Author is who makes a change, and why.
type Author struct {
	Actor  Actor
	Reason string // "" if none was given
}

// reasonMax is the maximum length of a reason, in bytes.
const reasonMax = 2000

// NewAuthor returns an author with a clean reason. Errors: problem kind validation_failed if the reason
// is too long or has invisible characters.
func NewAuthor(a Actor, reason string) (Author, error) {
	reason = strings.TrimSpace(norm.NFC.String(reason))
	hidden := func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
	}
	fault := problem.FieldError{Field: "reason"}
	switch {
	case len(reason) > reasonMax:
		fault.Code, fault.Detail = problem.CodeTooLong, "Too long."
	case !utf8.ValidString(reason) || strings.ContainsFunc(reason, hidden):
		fault.Code, fault.Detail = problem.CodeInvalidFormat, "Control characters, invisible characters and invalid UTF-8 are not allowed."
	default:
		return Author{a, reason}, nil
	}
	return Author{}, problem.New(problem.ValidationFailed, "--reason: "+fault.Detail).WithFields(fault)
}
