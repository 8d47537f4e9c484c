package apipixface

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

type paymentOut struct {
	EndToEndID string      `json:"endToEndId"`
	TxID       string      `json:"txid,omitempty"`
	Value      string      `json:"valor"`
	Key        string      `json:"chave"`
	Time       string      `json:"horario"`
	Returns    []returnOut `json:"devolucoes,omitempty"`
}

type returnOut struct {
	ID       string  `json:"id"`
	ReturnID string  `json:"rtrId"`
	Value    string  `json:"valor"`
	Nature   string  `json:"natureza"`
	Time     timeOut `json:"horario"`
	Status   string  `json:"status"`
	Reason   string  `json:"motivo,omitempty"`
}

type timeOut struct {
	Requested string `json:"solicitacao"`
	Settled   string `json:"liquidacao,omitempty"`
}

// showPayment is a payment with its returns: those that were requested, and those of the MED,
// which a dispute stands for.
func showPayment(p *bankapi.PaymentDetail) paymentOut {
	out := paymentOut{EndToEndID: p.EndToEndID, TxID: p.ExternalID, Value: formatAmount(p.Amount), Key: Key, Time: formatTime(p.PaidAt)}
	for i := range p.Refunds {
		out.Returns = append(out.Returns, showReturn(&p.Refunds[i]))
	}
	for i := range p.Disputes {
		d := &p.Disputes[i]
		id := strings.ReplaceAll(d.ID, "-", "")
		v := returnOut{
			ID: id, ReturnID: "D" + (id + strings.Repeat("0", 32))[:31], Value: formatAmount(d.Amount), Nature: "MED_FRAUDE",
			Time: timeOut{Requested: formatTime(p.PaidAt)}, Status: "EM_PROCESSAMENTO",
		}
		switch d.State {
		case bankapi.DisputeLost:
			v.Status = "DEVOLVIDO"
		case bankapi.DisputeWon, bankapi.DisputeReversed:
			v.Status = "NAO_REALIZADO"
		}
		out.Returns = append(out.Returns, v)
	}
	return out
}

func showReturn(o *bankapi.Order) returnOut {
	v := returnOut{
		ID: o.ExternalID, ReturnID: "D" + strings.TrimPrefix(o.EndToEndID, "E"), Value: formatAmount(o.Amount), Nature: "ORIGINAL",
		Time: timeOut{Requested: formatTime(o.CreatedAt)}, Status: "EM_PROCESSAMENTO",
	}
	switch o.State {
	case bankapi.OrderPaid:
		v.Status, v.Time.Settled = "DEVOLVIDO", formatTime(o.ChangedAt)
	case bankapi.OrderFailed:
		v.Status, v.Reason = "NAO_REALIZADO", "A liquidação foi interrompida"
	}
	return v
}

// parameters is ParametrosConsultaPix, and that of charges.
type parameters struct {
	From   string    `json:"inicio"`
	To     string    `json:"fim"`
	Paging pagingOut `json:"paginacao"`
}

type pagingOut struct {
	Page  int `json:"paginaAtual"`
	Size  int `json:"itensPorPagina"`
	Pages int `json:"quantidadeDePaginas"`
	Items int `json:"quantidadeTotalDeItens"`
}

// query is what a list is filtered by.
type query struct {
	from, to   time.Time
	page, size int
}

const (
	sizeDefault = 100
	sizeMax     = 1000
)

func readQuery(r *request, kind string) (q query, err error) {
	values := r.URL.Query()
	var err1, err2, err3, err4 error
	q.from, err1 = time.Parse(time.RFC3339, values.Get("inicio"))
	q.to, err2 = time.Parse(time.RFC3339, values.Get("fim"))
	q.size = sizeDefault
	if text := values.Get("paginacao.paginaAtual"); text != "" {
		q.page, err3 = strconv.Atoi(text)
	}
	if text := values.Get("paginacao.itensPorPagina"); text != "" {
		q.size, err4 = strconv.Atoi(text)
	}
	switch {
	case err1 != nil:
		return q, invalid(kind, "inicio")
	case err2 != nil || q.to.Before(q.from):
		return q, invalid(kind, "fim")
	case err3 != nil || q.page < 0:
		return q, invalid(kind, "paginacao.paginaAtual")
	case err4 != nil || q.size < 1 || q.size > sizeMax:
		return q, invalid(kind, "paginacao.itensPorPagina")
	}
	q.to = q.to.Add(time.Millisecond - time.Nanosecond) // times are shown in milliseconds
	return q, nil
}

// pageOf is the page of a list that a query asks for.
func pageOf[T any](q query, all []T) ([]T, parameters) {
	first := min(q.page*q.size, len(all))
	page := append([]T{}, all[first:min(first+q.size, len(all))]...)
	return page, parameters{
		From: formatTime(q.from), To: formatTime(q.to),
		Paging: pagingOut{q.page, q.size, max(1, (len(all)+q.size-1)/q.size), len(all)},
	}
}

// paymentsOut is PixConsultados.
type paymentsOut struct {
	Parameters parameters   `json:"parametros"`
	Payments   []paymentOut `json:"pix"`
}

func listPayments(f *Face, r *request) (int, any, error) {
	q, err := readQuery(r, "PixConsultaInvalida")
	if err != nil {
		return 0, nil, err
	}
	if _, err := f.call(r.Context(), http.MethodGet, "/balance", nil); err != nil { // which shows whether credentials are refused
		return 0, nil, err
	}
	list, err := f.bank.PeekPayments(q.from, q.to)
	if err != nil {
		return 0, nil, err
	}
	values := r.URL.Query()
	var all []paymentOut
	for i := range list {
		if list[i].EndToEndID == "" { // no Pix
			continue
		}
		out := showPayment(&list[i])
		if txid := values.Get("txid"); txid != "" && txid != out.TxID || values.Get("devolucaoPresente") == "true" && len(out.Returns) == 0 {
			continue
		}
		all = append(all, out)
	}
	page, p := pageOf(q, all)
	return http.StatusOK, paymentsOut{p, page}, nil
}

func getPayment(f *Face, r *request) (int, any, error) {
	p, known, err := f.bank.PeekPayment(r.PathValue("e2eid"))
	if err == nil && (!known || p.EndToEndID == "") {
		err = missing("PixNaoEncontrado")
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, showPayment(&p), nil
}

// putReturn gives a payment back. A repeated id is refused, as the standard says.
func putReturn(f *Face, r *request) (int, any, error) {
	var in struct {
		Value       string `json:"valor"`
		Nature      string `json:"natureza"`
		Description string `json:"descricao"`
	}
	if err := r.decode(&in); err != nil {
		return 0, nil, err
	}
	const kind = "PixDevolucaoInvalida"
	id, paymentID := r.PathValue("id"), r.PathValue("e2eid")
	amount, ok := parseAmount(in.Value)
	_, used, err := f.bank.PeekOrder(bankapi.SubjectRefund, id)
	switch {
	case err != nil:
		return 0, nil, err
	case !isID(id, 1) || used:
		return 0, nil, invalid(kind, "devolucao.id")
	case !ok:
		return 0, nil, invalid(kind, "devolucao.valor")
	case in.Nature != "" && in.Nature != "ORIGINAL":
		return 0, nil, invalid(kind, "devolucao.natureza")
	}
	a, err := f.call(r.Context(), http.MethodPost, "/refunds", bankapi.RefundRequest{ExternalID: id, PaymentID: paymentID, Amount: amount})
	switch {
	case err != nil:
		return 0, nil, err
	case a.code == bankapi.CodePaymentUnknown:
		return 0, nil, missing("PixNaoEncontrado")
	case a.code == bankapi.CodeContentDiffers || a.code == bankapi.CodeIDInUse:
		return 0, nil, invalid(kind, "devolucao.id")
	case a.code != "":
		return 0, nil, invalid(kind, "devolucao.valor")
	}
	var o bankapi.Order
	if err := a.read(&o); err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, showReturn(&o), nil
}

func getReturn(f *Face, r *request) (int, any, error) {
	id := r.PathValue("id")
	if !isID(id, 1) {
		return 0, nil, missing("PixDevolucaoNaoEncontrada")
	}
	a, err := f.call(r.Context(), http.MethodGet, "/refunds/"+id, nil)
	switch {
	case err != nil:
		return 0, nil, err
	case a.code != "":
		return 0, nil, missing("PixDevolucaoNaoEncontrada")
	}
	var o bankapi.Order
	if err := a.read(&o); err != nil {
		return 0, nil, err
	}
	if o.EndToEndID == "" { // it was refused
		return 0, nil, missing("PixDevolucaoNaoEncontrada")
	}
	p, known, err := f.bank.PeekPayment(r.PathValue("e2eid"))
	if err != nil {
		return 0, nil, err
	}
	for i := range p.Refunds {
		if known && p.Refunds[i].ExternalID == id {
			return http.StatusOK, showReturn(&o), nil
		}
	}
	return 0, nil, missing("PixDevolucaoNaoEncontrada")
}
