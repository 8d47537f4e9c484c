package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

func defensePath(disputeID string) string {
	return "/disputes/" + url.PathEscape(disputeID) + "/defense"
}

// Defend implements [processor.Defender].
func (p *Processor) Defend(ctx context.Context, r processor.DefenseRequest, guard func() error) processor.TransferAnswer {
	request := bankapi.DefenseRequest{Accept: r.Accept, Text: r.Text}
	for _, f := range r.Files {
		request.Files = append(request.Files, bankapi.DefenseFile{Name: f.Name, Type: f.Type, Content: f.Content})
	}
	result := p.client.do(ctx, http.MethodPut, defensePath(r.DisputeID), request, guard)
	body := parse[bankapi.Defense](&result)
	answer := processor.TransferAnswer{Outcome: defenseOutcome(&result), Wait: result.wait, Cause: result.cause()}
	switch answer.Outcome {
	case processor.Done:
		if body.DisputeID != r.DisputeID || body.Accept != r.Accept {
			return processor.TransferAnswer{Cause: errOtherID}
		}
		answer.Evidence = defenseEvidence(&body)
	case processor.Refused:
		answer.Failure, answer.Evidence = failureOf(result.code), result.evidence()
	case processor.Later, processor.Known:
		answer.Evidence = result.evidence()
	}
	return answer
}

// defenseOutcome classifies an answer about a dispute: one that is decided, or that the bank does
// not have, takes none. The codes prove nothing about other calls.
func defenseOutcome(r *response) processor.Outcome {
	for _, code := range []bankapi.Code{bankapi.CodeDisputeClosed, bankapi.CodeDisputeUnknown} {
		if r.err == nil && r.status == code.Status() && r.code == code {
			return processor.Refused
		}
	}
	return r.outcome()
}

// QueryDefense implements [processor.Defender]. A defense is not found once the merchant has
// given up: that is another answer.
func (p *Processor) QueryDefense(ctx context.Context, r processor.DefenseRequest) processor.TransferReport {
	result := p.client.do(ctx, http.MethodGet, defensePath(r.DisputeID), nil, nil)
	body := parse[bankapi.Defense](&result)
	switch lookup := result.lookup(); {
	case lookup != processor.Found:
		return processor.TransferReport{Lookup: lookup, Cause: result.cause()}
	case body.DisputeID != r.DisputeID:
		return processor.TransferReport{Cause: errOtherID}
	case r.Accept && !body.Accept:
		return processor.TransferReport{Lookup: processor.NotFound}
	default:
		return processor.TransferReport{Lookup: processor.Found, Evidence: defenseEvidence(&body)}
	}
}

func defenseEvidence(d *bankapi.Defense) string {
	return fmt.Sprintf("bank has it since %s, with %d files", d.CreatedAt.Format(time.RFC3339), d.Files)
}
