package apipixface

import (
	"net/http"
	"strings"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// The routes of Efí beyond the standard.

type transferIn struct {
	Value string `json:"valor"`
	Payer struct {
		Key  string `json:"chave"`
		Info string `json:"infoPagador"`
	} `json:"pagador"`
	Receiver struct {
		Key  string `json:"chave"`
		CPF  string `json:"cpf"`
		CNPJ string `json:"cnpj"`
	} `json:"favorecido"`
}

// transferAccepted is the answer to a request.
type transferAccepted struct {
	ID         string  `json:"idEnvio"`
	EndToEndID string  `json:"e2eId"`
	Value      string  `json:"valor"`
	Time       timeOut `json:"horario"`
	Status     string  `json:"status"`
}

// transferOut is the answer to a query.
type transferOut struct {
	EndToEndID string       `json:"endToEndId"`
	ID         string       `json:"idEnvio"`
	Value      string       `json:"valor"`
	Key        string       `json:"chave"`
	Status     string       `json:"status"`
	Time       timeOut      `json:"horario"`
	Receiver   *receiverOut `json:"favorecido,omitempty"`
	Returns    []returnOut  `json:"devolucoes,omitempty"`
}

type receiverOut struct {
	Key string `json:"chave"`
}

// transfersOut is the list of transfers.
type transfersOut struct {
	Parameters parameters    `json:"parametros"`
	Transfers  []transferOut `json:"pix"`
}

// keyType is the type of a Pix key by its form.
func keyType(key string) string {
	switch {
	case strings.Contains(key, "@"):
		return "EMAIL"
	case strings.HasPrefix(key, "+"):
		return "PHONE"
	case len(key) == 36:
		return "EVP"
	case len(key) == 14:
		return "CNPJ"
	default:
		return "CPF"
	}
}

const pixKeyMax = 77

// unnamed stands for what the request does not say about the receiver.
const unnamed = "-"

func putTransfer(f *Face, r *request) (int, any, error) {
	var in transferIn
	if err := r.decode(&in); err != nil {
		return 0, nil, err
	}
	id := r.PathValue("idEnvio")
	amount, ok := parseAmount(in.Value)
	switch _, used, err := f.bank.PeekOrder(bankapi.SubjectTransfer, id); {
	case err != nil:
		return 0, nil, err
	case used:
		return 0, nil, named(http.StatusConflict, "id_envio_duplicado")
	case !isID(id, 1) || !ok || in.Receiver.CPF != "" && in.Receiver.CNPJ != "":
		return 0, nil, named(http.StatusBadRequest, "valor_invalido")
	case in.Payer.Key != Key:
		return 0, nil, named(http.StatusBadRequest, "chave_invalida")
	case in.Receiver.Key == "" || len(in.Receiver.Key) > pixKeyMax:
		return 0, nil, named(http.StatusNotFound, "chave_favorecido_nao_encontrada")
	}
	document := in.Receiver.CPF + in.Receiver.CNPJ
	if document == "" {
		document = unnamed
	}
	a, err := f.call(r.Context(), http.MethodPost, "/transfers", bankapi.TransferRequest{
		ExternalID: id, Amount: amount, KeyType: keyType(in.Receiver.Key), Key: in.Receiver.Key, Name: unnamed, Document: document,
	})
	switch {
	case err != nil:
		return 0, nil, err
	case a.code == bankapi.CodeContentDiffers || a.code == bankapi.CodeIDInUse:
		return 0, nil, named(http.StatusConflict, "id_envio_duplicado")
	case a.code == bankapi.CodeAccountInvalid:
		return 0, nil, named(http.StatusNotFound, "chave_favorecido_nao_encontrada")
	case a.code != "":
		return 0, nil, named(http.StatusBadRequest, "valor_invalido")
	}
	var o bankapi.Order
	if err := a.read(&o); err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, transferAccepted{o.ExternalID, o.EndToEndID, formatAmount(o.Amount), timeOut{Requested: formatTime(o.CreatedAt)}, transferStatus(string(o.State))}, nil
}

func transferStatus(state string) string {
	switch state {
	case "paid", "returned":
		return "REALIZADO"
	case "failed":
		return "NAO_REALIZADO"
	default:
		return "EM_PROCESSAMENTO"
	}
}

// showTransferReturns are what the receiver's bank has sent back, as one return.
func showTransferReturns(endToEndID string, returned money.Cents, at timeOut) []returnOut {
	if returned == 0 {
		return nil
	}
	return []returnOut{{
		ID: "R" + strings.TrimPrefix(endToEndID, "E"), ReturnID: "D" + strings.TrimPrefix(endToEndID, "E"),
		Value: formatAmount(returned), Nature: "ORIGINAL", Time: at, Status: "DEVOLVIDO",
	}}
}

func showTransfer(o *bankapi.Order) transferOut {
	out := transferOut{
		EndToEndID: o.EndToEndID, ID: o.ExternalID, Value: formatAmount(o.Amount), Key: Key, Status: transferStatus(string(o.State)),
		Time: timeOut{Requested: formatTime(o.CreatedAt)},
	}
	if o.State == bankapi.OrderPaid {
		out.Time.Settled = formatTime(o.ChangedAt)
	}
	out.Returns = showTransferReturns(o.EndToEndID, o.Returned, timeOut{Requested: formatTime(o.ChangedAt)})
	return out
}

func getTransfer(f *Face, r *request) (int, any, error) {
	id := r.PathValue("idEnvio")
	if !isID(id, 1) {
		return 0, nil, missing("PixEnviadoNaoEncontrado")
	}
	a, err := f.call(r.Context(), http.MethodGet, "/transfers/"+id, nil)
	switch {
	case err != nil:
		return 0, nil, err
	case a.code != "":
		return 0, nil, missing("PixEnviadoNaoEncontrado")
	}
	var o bankapi.Order
	if err := a.read(&o); err != nil {
		return 0, nil, err
	}
	if o.EndToEndID == "" { // it was refused
		return 0, nil, missing("PixEnviadoNaoEncontrado")
	}
	return http.StatusOK, showTransfer(&o), nil
}

func listTransfers(f *Face, r *request) (int, any, error) {
	q, err := readQuery(r, "RequisicaoInvalida")
	if err != nil {
		return 0, nil, err
	}
	list, err := f.bank.PeekTransfers(q.from, q.to)
	if err != nil {
		return 0, nil, err
	}
	var all []transferOut
	for i := range list {
		t := &list[i]
		at := timeOut{Requested: formatTime(t.CreatedAt)}
		all = append(all, transferOut{
			EndToEndID: t.EndToEndID, ID: t.ExternalID, Value: formatAmount(t.Amount), Key: Key, Status: transferStatus(t.Status),
			Time: at, Receiver: &receiverOut{t.PIXKey}, Returns: showTransferReturns(t.EndToEndID, t.Returned, at),
		})
	}
	page, p := pageOf(q, all)
	return http.StatusOK, transfersOut{p, page}, nil
}

func getBalance(f *Face, r *request) (int, any, error) {
	a, err := f.call(r.Context(), http.MethodGet, "/balance", nil)
	if err != nil {
		return 0, nil, err
	}
	var b bankapi.Balance
	if err := a.read(&b); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, struct {
		Balance string `json:"saldo"`
	}{formatBalance(b.Amount)}, nil
}

// formatBalance also writes what is owed.
func formatBalance(c money.Cents) string {
	if c < 0 {
		return "-" + formatAmount(-c)
	}
	return formatAmount(c)
}
