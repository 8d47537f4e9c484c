package asaasface

import (
	"html/template"
	"net/http"
	"slices"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// page is the payer's page of a charge, where a real processor asks for the card.
var page = template.Must(template.New("page").Parse(`<!doctype html><html lang="pt-BR"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Cobrança de teste</title><body style="font:1rem/1.5 sans-serif;max-width:32rem;margin:2rem auto;padding:0 1rem">
<h1>Cobrança de teste</h1><p>{{.Amount}}{{if .Parts}} em {{.Parts}} vezes{{end}} · {{.Status}}</p>{{if .Open}}
<form method="post"><p><button name="result" value="approved">Pagar</button>
{{if .Card}}<button name="result" value="do_not_honor">Cartão recusado</button>
<button name="result" value="analysis_approved">Análise, aprovada</button> <button name="result" value="analysis_refused">Análise, recusada</button>{{end}}</p></form>
{{end}}<p>Nenhum dinheiro real é movido.</p></body></html>
`))

func (f *Face) showPage(w http.ResponseWriter, r *http.Request) {
	n, ok := f.book.payment(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	v, err := f.show(&n)
	if err != nil {
		http.Error(w, "erro", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'")
	open := (v.Status == statusPending || v.Status == statusOverdue) && !v.Deleted
	shown := struct {
		Amount, Status string
		Parts          int
		Open, Card     bool
	}{money.Cents(v.Value).BRL(), v.Status, 0, open, n.Method == methodCard}
	if n.Parts > 1 { // they are paid together
		c, err := f.handlers.Charge(n.Charge)
		if err != nil {
			http.Error(w, "erro", http.StatusInternalServerError)
			return
		}
		shown.Amount, shown.Parts = c.Amount.BRL(), n.Parts
	}
	_ = page.Execute(w, shown)
}

// results are what a payer of the page may choose.
var results = []bankapi.CardResult{
	bankapi.CardApproved, bankapi.CardResult(bankapi.CodeDoNotHonor), bankapi.CardAnalysisApproved, bankapi.CardAnalysisRefused,
}

func (f *Face) payOnPage(w http.ResponseWriter, r *http.Request) {
	n, ok := f.book.payment(r.PathValue("id"))
	result := bankapi.CardResult(r.PostFormValue("result"))
	if !ok || !slices.Contains(results, result) {
		http.NotFound(w, r)
		return
	}
	var err error
	if n.Method == methodCard && !n.Deleted {
		err = f.payByCard(&n, result)
	} else {
		err = f.pay(&n)
	}
	if err != nil {
		http.Error(w, "Esta cobrança não pode ser paga.", http.StatusConflict)
		return
	}
	http.Redirect(w, r, r.URL.Path, http.StatusSeeOther)
}

// payByCard makes the next attempt to pay all instalments of a charge.
func (f *Face) payByCard(n *paymentNote, result bankapi.CardResult) error {
	c, err := f.handlers.Charge(n.Charge)
	if err != nil {
		return err
	}
	attempt := bankapi.CardAttempt{
		Terms:  bankapi.ChargeTerms{Method: bankapi.MethodCreditCard, Amount: c.Amount, ExpiresAt: c.ExpiresAt},
		Result: result, Card: bankapi.Card{Brand: "visa", Last4: "1111", Installments: n.Parts},
	}
	_, err = f.handlers.PutCard(n.Charge, c.Attempt+1, attempt)
	return err
}
