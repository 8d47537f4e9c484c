package apipixface

import (
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// infractionOut is a payer's notice of fraud by the MED, as Efí lists it: a dispute of a payment.
type infractionOut struct {
	ID         string       `json:"idInfracao"`
	EndToEndID string       `json:"endToEndId"`
	Protocol   string       `json:"protocolo"`
	Value      string       `json:"valor"`
	Reason     string       `json:"razao"`
	Status     string       `json:"status"`
	Analysis   *analysisOut `json:"dadosAnalise,omitempty"`
}

type analysisOut struct {
	Until string `json:"prazoFinalizacao"`
}

// infractionsOut is the list of infractions.
type infractionsOut struct {
	Parameters  parameters      `json:"parametros"`
	Infractions []infractionOut `json:"infracoes"`
}

// infraction is a dispute as an infraction.
func (f *Face) infraction(p *bankapi.PaymentDetail, d *bankapi.Dispute) (infractionOut, error) {
	out := infractionOut{ID: d.ID, EndToEndID: p.EndToEndID, Protocol: d.ID, Value: formatAmount(d.Amount), Reason: d.Reason, Status: "ABERTA"}
	if !d.RespondBy.IsZero() {
		out.Analysis = &analysisOut{formatTime(d.RespondBy)}
	}
	if out.Reason == "" {
		out.Reason = "FRAUD"
	}
	switch d.State {
	case bankapi.DisputeLost:
		out.Status = "ACEITA"
	case bankapi.DisputeWon, bankapi.DisputeReversed:
		out.Status = "REJEITADA"
	case bankapi.DisputeOpen:
		defended, err := f.bank.PeekDefense(d.ID)
		if err != nil {
			return out, err
		}
		if defended {
			out.Status = "EM_DEFESA"
		}
	}
	return out, nil
}

// listInfractions filters by the time of the payment.
func listInfractions(f *Face, r *request) (int, any, error) {
	if f.opts.TestEnvironment {
		return 0, nil, &fault{status: http.StatusInternalServerError, name: "InfracaoErroInterno", message: "Funcionalidade desabilitada em ambiente de homologação."}
	}
	q, err := readQuery(r, "RequisicaoInvalida")
	if err != nil {
		return 0, nil, err
	}
	list, err := f.bank.PeekPayments(q.from, q.to)
	if err != nil {
		return 0, nil, err
	}
	var all []infractionOut
	for i := range list {
		for j := range list[i].Disputes {
			if list[i].EndToEndID == "" {
				continue // no Pix
			}
			out, err := f.infraction(&list[i], &list[i].Disputes[j])
			if err != nil {
				return 0, nil, err
			}
			all = append(all, out)
		}
	}
	page, p := pageOf(q, all)
	return http.StatusOK, infractionsOut{p, page}, nil
}

// infractionDays is how far back an infraction is searched for.
const infractionDays = 400

func (f *Face) findInfraction(id string) (infractionOut, error) {
	now := f.bank.Now()
	list, err := f.bank.PeekPayments(now.AddDate(0, 0, -infractionDays), now.Add(time.Minute))
	if err != nil {
		return infractionOut{}, err
	}
	for i := range list {
		for j := range list[i].Disputes {
			if list[i].Disputes[j].ID == id && list[i].EndToEndID != "" {
				return f.infraction(&list[i], &list[i].Disputes[j])
			}
		}
	}
	return infractionOut{}, missing("NaoEncontrado")
}

// postDefense answers an infraction: rejeitado defends it, aceito gives up.
func postDefense(f *Face, r *request) (int, any, error) {
	var in struct {
		Analysis string `json:"analise"`
		Text     string `json:"justificativa"`
	}
	if err := r.decode(&in); err != nil {
		return 0, nil, err
	}
	id := r.PathValue("id")
	found, err := f.findInfraction(id)
	if err != nil {
		return 0, nil, err
	}
	answer := bankapi.DefenseRequest{Accept: in.Analysis == "aceito", Text: in.Text}
	switch {
	case found.Status == "EM_DEFESA" && !answer.Accept:
		return 0, nil, named(http.StatusConflict, "defesa_duplicada")
	case found.Status != "ABERTA" && found.Status != "EM_DEFESA":
		return 0, nil, invalid("RequisicaoInvalida", "idInfracao")
	case in.Analysis != "aceito" && in.Analysis != "rejeitado":
		return 0, nil, invalid("RequisicaoInvalida", "analise")
	case in.Text == "":
		return 0, nil, invalid("RequisicaoInvalida", "justificativa")
	case answer.Accept:
		answer.Text = ""
	}
	a, err := f.call(r.Context(), http.MethodPut, "/disputes/"+id+"/defense", answer)
	switch {
	case err != nil:
		return 0, nil, err
	case a.code == bankapi.CodeContentDiffers || a.code == bankapi.CodeIDInUse:
		return 0, nil, named(http.StatusConflict, "defesa_duplicada")
	case a.code != "":
		return 0, nil, invalid("RequisicaoInvalida", "idInfracao")
	}
	var made bankapi.Defense
	if err := a.read(&made); err != nil {
		return 0, nil, err
	}
	out, err := f.findInfraction(id)
	return http.StatusOK, out, err
}
