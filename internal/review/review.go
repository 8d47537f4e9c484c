// Package review resolves cases that need manual review: an operator's decision, its entry and its
// change of state in one commit.
//
// [rules] is the table of possible decisions about each kind of case. A decision that needs two
// persons is proposed by one and confirmed by another.
package review

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/write"
)

// Options configure a Service.
type Options struct {
	Store  *store.Store
	Writer *write.Writer
	Env    env.Env
	Links  transition.Links
	// Processors have the profiles of accounts, which show whether an account asks for consent.
	// nil: none does.
	Processors processor.Accounts
}

// Service resolves cases. It is safe for concurrent use.
type Service struct{ Options }

// New returns a Service.
func New(o Options) *Service { return &Service{o} }

// Withdraw is the resolution that withdraws a proposal instead of closing the case.
const Withdraw store.Resolution = "withdraw"

// Request is an operator's decision about a case.
type Request struct {
	Case       payment.ID
	How        store.Resolution // one of Options, or Withdraw
	Actor      actor.Actor      // a person who gave the name
	Reason     string
	Evidence   string
	Order      payment.ID // pay-in that unapplied money is applied to; zero for none
	Merchant   payment.ID // the merchant that gets money that names no order
	EndToEndID string     // of a payout that was paid
}

// Result is a decision as it is recorded.
type Result struct {
	Case   store.Case
	Action store.DecisionAction
	// Rest is the case about the part of the money that the order did not need; zero if there is
	// none.
	Rest payment.ID
}

// maxText is the maximum length of a text of a decision, in bytes.
const maxText = 2000

// Resolve records a decision about a case, and carries it out unless a second person
// must confirm it. Errors: problem kinds validation_failed, not_found and invalid_state.
func (s *Service) Resolve(ctx context.Context, r Request) (Result, error) {
	op, err := s.NewResolve(ctx, r)
	if err != nil {
		return Result{}, err
	}
	if err := s.Writer.Do(ctx, op); err != nil { // the commit may still be running, if ctx has ended
		return Result{}, err
	}
	return op.Result, nil
}

// NewResolve builds the operation that records a decision.
func (s *Service) NewResolve(ctx context.Context, r Request) (*Resolve, error) {
	r = r.clean()
	opened, err := s.Store.FindCase(ctx, r.Case)
	if err != nil {
		return nil, store.Problem(err)
	}
	v := &Resolve{Request: r, opened: opened, links: s.Links, id: s.Env.IDs.NewID(s.Env.Clock.Now())}
	if r.How == Withdraw {
		return v, invalid(v.texts(true))
	}
	found, ok := find(&opened, r.How)
	if !ok {
		return nil, notPossible(&opened)
	}
	v.rule = found
	if err := invalid(append(v.texts(found.Evidence), v.inputs()...)); err != nil {
		return nil, err
	}
	if found.prepare != nil {
		err = found.prepare(ctx, s, v)
	}
	return v, store.Problem(err)
}

// clean is the request with its texts in their recorded form.
func (r Request) clean() Request {
	r.Reason, r.Evidence = clean(r.Reason), clean(r.Evidence)
	return r
}

// clean returns a text without spaces around it, in Unicode NFC form.
func clean(text string) string { return strings.TrimSpace(norm.NFC.String(text)) }

// texts are the invalid texts of a decision.
func (v *Resolve) texts(evidence bool) []problem.FieldError {
	var fields []problem.FieldError
	if !v.Actor.IsNamed() {
		fields = append(fields, problem.FieldError{Field: "as", Code: problem.CodeRequired, Detail: "Required."})
	}
	for _, f := range []struct {
		name, text string
		required   bool
	}{
		{"reason", v.Reason, true},
		{"evidence", v.Evidence, evidence && v.How != Withdraw},
	} {
		switch {
		case f.text == "" && f.required:
			fields = append(fields, problem.FieldError{Field: f.name, Code: problem.CodeRequired, Detail: "Required."})
		case len(f.text) > maxText:
			fields = append(fields, problem.FieldError{Field: f.name, Code: problem.CodeTooLong, Detail: "Too long."})
		case !utf8.ValidString(f.text) || strings.ContainsFunc(f.text, isControl):
			fields = append(fields, problem.FieldError{Field: f.name, Code: problem.CodeInvalidFormat, Detail: "Control characters and invalid UTF-8 are not allowed."})
		}
	}
	return fields
}

// isControl also includes characters that cannot be seen.
func isControl(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// inputs are the inputs of the resolution that are missing or invalid, and those that it does
// not use.
func (v *Resolve) inputs() (fields []problem.FieldError) {
	switch {
	case v.rule.EndToEndID && !endToEndID.MatchString(v.EndToEndID):
		fields = append(fields, problem.FieldError{
			Field: "end-to-end-id", Code: problem.CodeInvalidFormat, Detail: "Required: E and 31 letters or digits, from the processor's statement.",
		})
	case !v.rule.EndToEndID && v.EndToEndID != "":
		fields = append(fields, notAllowed("end-to-end-id"))
	}
	switch {
	case v.rule.Merchant && v.Request.Merchant.IsZero():
		fields = append(fields, problem.FieldError{Field: "merchant", Code: problem.CodeRequired, Detail: "Required: the merchant whose money it is."})
	case !v.rule.Merchant && !v.Request.Merchant.IsZero():
		fields = append(fields, notAllowed("merchant"))
	}
	if !v.rule.Order && !v.Order.IsZero() {
		fields = append(fields, notAllowed("order"))
	}
	return fields
}

func notAllowed(field string) problem.FieldError {
	return problem.FieldError{Field: field, Code: problem.CodeNotAllowed, Detail: "This resolution does not use it."}
}

// invalid is a problem that names every invalid input; nil if there is none.
func invalid(fields []problem.FieldError) error {
	if len(fields) == 0 {
		return nil
	}
	var list []string
	for _, f := range fields {
		list = append(list, "--"+f.Field+": "+f.Detail)
	}
	return problem.New(problem.ValidationFailed, strings.Join(list, " ")).WithFields(fields...)
}
