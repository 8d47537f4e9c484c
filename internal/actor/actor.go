// Package actor names who acts: a person, a credential of a merchant's program, or the gateway
// itself.
//
// It also compares names: a decision that takes two people takes two names that no reader can mistake
// for each other.
package actor

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mtibben/confusables"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/porteira/porteira/internal/problem"
)

// Actor is who acts, as records keep it: a kind, a colon and a name.
type Actor string

// System is the gateway itself.
const System Actor = "system"

// The kinds of actors that have a name.
const (
	operator   = "operator:"   // a person, by the name that the person gave
	login      = "os:"         // a person, by the operating system's user
	credential = "credential:" // a program, by its key id
)

// nameMax is the maximum length of a name, in bytes.
const nameMax = 100

// Operator is a person, by the name that the person gave. Errors: problem kind validation_failed if
// it has no letter or digit, is too long, or has invisible characters.
func Operator(name string) (Actor, error) { return person(operator, name) }

// Login is a person, by the user of the operating system who runs the command. Errors: as
// [Operator].
func Login(user string) (Actor, error) { return person(login, user) }

// Credential is the program that has a key id.
func Credential(keyID string) Actor { return Actor(credential + keyID) }

// Name is the name without its kind.
func (a Actor) Name() string {
	_, name, named := strings.Cut(string(a), ":")
	if !named {
		return string(a)
	}
	return name
}

// Shown is the actor as commands show it: a person who gave a name by that name alone.
func (a Actor) Shown() string { return strings.TrimPrefix(string(a), operator) }

// IsNamed reports whether a person gave the name.
func (a Actor) IsNamed() bool { return strings.HasPrefix(string(a), operator) }

func person(kind, name string) (Actor, error) {
	name = Clean(name)
	for _, f := range Faults(name) {
		return "", problem.New(problem.ValidationFailed, "--as: "+f.Detail).WithFields(f)
	}
	return Actor(kind + name), nil
}

// Clean is the name of a person in one of several Unicode forms, with single spaces and none around it.
func Clean(name string) string {
	isSpace := func(r rune) bool { return unicode.Is(unicode.Zs, r) }
	return strings.Join(strings.FieldsFunc(strings.TrimSpace(norm.NFKC.String(name)), isSpace), " ")
}

// Faults are the reasons for which a clean name cannot be recorded; none if it can.
func Faults(name string) []problem.FieldError {
	fault := func(code, detail string) []problem.FieldError {
		return []problem.FieldError{{Field: "as", Code: code, Detail: detail}}
	}
	// Bidirectional controls are not graphic: with one, a name would read as another.
	hidden := func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
	}
	switch {
	case name == "":
		return fault(problem.CodeRequired, "Required.")
	case len(name) > nameMax:
		return fault(problem.CodeTooLong, "Too long.")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, hidden):
		return fault(problem.CodeInvalidFormat, "Control characters, invisible characters and invalid UTF-8 are not allowed.")
	case strings.Contains(name, ":") || LookAlike(name, string(System)):
		return fault(problem.CodeNotAllowed, "No name has a colon, and none is system: the record would show another actor.")
	case !strings.ContainsFunc(name, isLetter):
		return fault(problem.CodeInvalidFormat, "A name has letters or digits.")
	default:
		return nil
	}
}

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// MayBeSame reports whether two actors may be one person: if their names look alike, whatever
// their kinds. Only key ids of two credentials are compared exactly, as nobody chooses them.
func MayBeSame(a, b Actor) bool {
	if strings.HasPrefix(string(a), credential) && strings.HasPrefix(string(b), credential) {
		return a == b
	}
	return LookAlike(a.Name(), b.Name())
}

// LookAlike reports whether two names look alike: by their skeletons of Unicode TR39, without
// regard to case, accents, spaces and punctuation.
func LookAlike(a, b string) bool {
	return skeleton(fold(a)) == skeleton(fold(b)) || folded(a) == folded(b)
}

// folded removes case after the skeleton, as capitals of two alphabets may look alike where small letters do
// not. A capital I looks like a small l, so i and l are one letter then.
func folded(name string) string {
	return strings.ReplaceAll(skeleton(fold(skeleton(name))), "i", "l")
}

func fold(text string) string { return cases.Fold().String(norm.NFKC.String(text)) }

func skeleton(text string) string {
	return strings.Map(func(r rune) rune {
		if isLetter(r) {
			return r
		}
		return -1
	}, confusables.Skeleton(text))
}
