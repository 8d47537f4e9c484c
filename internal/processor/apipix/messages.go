package apipix

import "github.com/go-json-experiment/json/jsontext"

// The messages of the API Pix, as far as this driver reads or writes them. Unknown members
// are ignored: the standard adds some in each version.

// newCharge is CobSolicitada. Nothing about the payer is sent.
type newCharge struct {
	Calendar    newCalendar `json:"calendario"`
	Value       newValue    `json:"valor"`
	Key         string      `json:"chave"`
	Description string      `json:"solicitacaoPagador,omitempty"`
}

type newCalendar struct {
	Expires int64 `json:"expiracao"` // seconds
}

type newValue struct {
	Original string `json:"original"`
}

// charge is CobGerada and CobCompleta.
type charge struct {
	TxID     string `json:"txid"`
	Revision *int64 `json:"revisao"`
	Calendar struct {
		Created string `json:"criacao"`
		Expires int64  `json:"expiracao"` // seconds
	} `json:"calendario"`
	Value struct {
		Original string `json:"original"`
	} `json:"valor"`
	Key      string `json:"chave"`
	Status   string `json:"status"`
	Code     string `json:"pixCopiaECola"`
	Location string `json:"location"`
	Loc      struct {
		Location string `json:"location"`
	} `json:"loc"`
	Payments []pix `json:"pix"`
}

// revisedCharge is the part of CobRevisada that removes a charge.
type revisedCharge struct {
	Status string `json:"status"`
}

// Statuses of a charge.
const (
	chargeActive    = "ATIVA"
	chargePaid      = "CONCLUIDA"
	chargeRemoved   = "REMOVIDA_PELO_USUARIO_RECEBEDOR"
	chargeRemovedBy = "REMOVIDA_PELO_PSP"
)

// pix is Pix: a payment that was received. In a notice of Efí it may also be a transfer.
type pix struct {
	EndToEndID string     `json:"endToEndId"`
	TxID       string     `json:"txid"`
	Value      string     `json:"valor"`
	Time       string     `json:"horario"`
	Returns    returnList `json:"devolucoes"`
	// Of a transfer, in a notice of Efí.
	Kind   string `json:"tipo"`
	Status string `json:"status"`
	Extras struct {
		TransferID string `json:"idEnvio"`
		Error      struct {
			Code   string `json:"codigo"`
			Reason string `json:"motivo"`
		} `json:"erro"`
	} `json:"gnExtras"`
}

// kindTransfer is the kind of a transfer's notice at Efí.
const kindTransfer = "SOLICITACAO"

// returnList is a list of returns. The standard's own example of a notice has one return
// without a list around it.
type returnList []pixReturn

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (l *returnList) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == '{' {
		var one pixReturn
		err := jsonDecode(d, &one)
		*l = returnList{one}
		return err
	}
	var list []pixReturn
	err := jsonDecode(d, &list)
	*l = list
	return err
}

// pixReturn is Devolucao: money of a payment that is given back.
type pixReturn struct {
	ID       string `json:"id"`
	ReturnID string `json:"rtrId"`
	Value    string `json:"valor"`
	Nature   string `json:"natureza"` // "" is natureOriginal
	Status   string `json:"status"`
	Reason   any    `json:"motivo"` // of the status: a text, if a bank names one
}

// Natures of a return. Those that the receiver requests are here, by this gateway or at the
// bank's panel; the others are of the MED, the special mechanism of returns.
const (
	natureOriginal   = "ORIGINAL"
	natureWithdrawal = "RETIRADA"
	natureFlaw       = "MED_OPERACIONAL"
	natureFraud      = "MED_FRAUDE"
	natureRecurring  = "MED_PIX_AUTOMATICO"
)

// newReturn is DevolucaoSolicitada.
type newReturn struct {
	Value string `json:"valor"`
}

// Statuses of returns and of transfers.
const (
	statusProcessing = "EM_PROCESSAMENTO"
	statusReturned   = "DEVOLVIDO"
	statusPaid       = "REALIZADO"
	statusFailed     = "NAO_REALIZADO"
)

// paging is Paginacao.
type paging struct {
	Page  int64 `json:"paginaAtual"`
	Pages int64 `json:"quantidadeDePaginas"`
}

// list is PixConsultados, and the list of transfers of Efí. Its entries are read one by one:
// an invalid one does not hide the others.
type list struct {
	Parameters *struct {
		Paging *paging `json:"paginacao"`
	} `json:"parametros"`
	Entries []jsontext.Value `json:"pix"`
}

// newTransfer is the body that requests a transfer at Efí.
type newTransfer struct {
	Value    string      `json:"valor"`
	Payer    transferKey `json:"pagador"`
	Receiver receiver    `json:"favorecido"`
}

type transferKey struct {
	Key string `json:"chave"`
}

// receiver is who gets a transfer. With a document Efí refuses a key of another holder.
type receiver struct {
	Key  string `json:"chave"`
	CPF  string `json:"cpf,omitempty"`
	CNPJ string `json:"cnpj,omitempty"`
}

// transfer is a transfer at Efí: the answer to the request, and to a query, which names its
// EndToEndID otherwise.
type transfer struct {
	ID         string     `json:"idEnvio"`
	E2E        string     `json:"e2eId"`
	EndToEndID string     `json:"endToEndId"`
	Value      string     `json:"valor"`
	Status     string     `json:"status"`
	Returns    returnList `json:"devolucoes"`
	Time       struct {
		Requested string `json:"solicitacao"`
	} `json:"horario"`

	// For a person: it proves nothing, so it may have any form.
	Receiver jsontext.Value `json:"favorecido"`
}

// listedReceiver is the receiver of a transfer in a list.
type listedReceiver struct {
	Key      string `json:"chave"`
	Identity struct {
		Name string `json:"nome"`
	} `json:"identificacao"`
}

// webhook is WebhookSolicitado and WebhookCompleto.
type webhook struct {
	URL string `json:"webhookUrl"`
}

// balance is the answer of Efí about the balance.
type balance struct {
	Amount string `json:"saldo"`
}

// problemBody is an error answer: of the standard (RFC 7807), of Efí, or of OAuth.
type problemBody struct {
	Type       string `json:"type"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	Name       string `json:"nome"`
	Message    string `json:"mensagem"`
	OAuth      string `json:"error"`
	Violations []struct {
		Property string `json:"propriedade"`
	} `json:"violacoes"`
}
