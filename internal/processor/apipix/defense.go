package apipix

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// newDefense is the receiver's answer to an infraction.
type newDefense struct {
	Analysis string `json:"analise"`
	Text     string `json:"justificativa"`
}

// Answers to an infraction.
const (
	analysisAccept = "aceito"
	analysisReject = "rejeitado"
	acceptText     = "Aceita pelo recebedor."
)

// noDefense is why an answer has to be given in Efí's panel.
func noDefense(why string) processor.TransferAnswer {
	return processor.TransferAnswer{
		Outcome: processor.Refused, Evidence: "not sent: " + why,
		Failure: &payment.Failure{Code: "defense_not_possible", Message: "The bank takes this answer in its panel only."},
	}
}

// Defend implements [processor.Defender]: POST /v2/gn/infracoes/{id}/defesa, which takes no
// files.
func (e *Efi) Defend(ctx context.Context, r processor.DefenseRequest, guard func() error) processor.TransferAnswer {
	id, ok := strings.CutPrefix(r.DisputeID, infractionPrefix)
	switch {
	case !ok || !isToken(id, infractionIDMax):
		return noDefense("the dispute is a return, not an infraction")
	case len(r.Files) > 0:
		return noDefense("the API takes no files")
	}
	request := newDefense{analysisReject, r.Text}
	if r.Accept {
		request = newDefense{analysisAccept, acceptText}
	}
	result := e.client.do(ctx, http.MethodPost, "/v2/gn/infracoes/"+escape(id)+"/defesa", request, guard)
	body := parse[infraction](&result)
	outcome, failure := result.outcome(effectDefense)
	answer := processor.TransferAnswer{Outcome: outcome, Wait: result.wait, Failure: failure, Cause: result.cause()}
	switch {
	case result.err == nil && result.status == http.StatusConflict && result.code == "InfracaoOperacaoInvalida":
		return e.answeredBefore(ctx, r, answer)
	case outcome == processor.Done && (body.id() != id || body.Status == infractionOpen):
		return processor.TransferAnswer{Cause: errOther}
	case outcome == processor.Done:
		answer.Evidence = "the bank reports " + body.Status
	case result.err == nil:
		answer.Evidence = result.evidence()
	}
	return answer
}

// answeredBefore decides about an infraction that Efí says has an answer: perhaps ours, whose own answer
// was lost.
func (e *Efi) answeredBefore(ctx context.Context, r processor.DefenseRequest, refused processor.TransferAnswer) processor.TransferAnswer {
	report := e.QueryDefense(ctx, r)
	switch report.Lookup {
	case processor.Found:
		return processor.TransferAnswer{Outcome: processor.Done, Evidence: report.Evidence}
	case processor.NotFound:
		refused.Evidence = "the bank answered 409 InfracaoOperacaoInvalida, and lists the infraction as open"
		return refused
	default:
		return processor.TransferAnswer{Outcome: processor.Known, Cause: report.Cause}
	}
}

// errInfraction says that the list has no such infraction, which may be because the application may
// not read it.
var errInfraction = errors.New("apipix: the bank does not list the infraction")

// QueryDefense implements [processor.Defender]: an infraction that is not open any more has an
// answer, or needs none.
func (e *Efi) QueryDefense(ctx context.Context, r processor.DefenseRequest) processor.TransferReport {
	id, ok := strings.CutPrefix(r.DisputeID, infractionPrefix)
	if !ok {
		return processor.TransferReport{Cause: errID}
	}
	now := e.clock.Now()
	var found *infraction
	err := e.eachInfraction(ctx, now.Add(-beginning), now, func(v *infraction) bool {
		if v.id() == id {
			found = v
		}
		return found == nil
	})
	switch {
	case err != nil:
		return processor.TransferReport{Cause: err}
	case found == nil:
		return processor.TransferReport{Cause: errInfraction}
	case found.Status == infractionOpen:
		return processor.TransferReport{Lookup: processor.NotFound}
	default:
		return processor.TransferReport{Lookup: processor.Found, Evidence: "the bank reports " + found.Status}
	}
}
