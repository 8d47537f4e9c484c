package apipixface

import (
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"
	"time"

	"crypto/sha256"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// The receiver's name in the codes of charges.
const (
	holderName = "PORTEIRA SANDBOX"
	holderCity = "BRASILIA"
)

type calendarIn struct {
	Expires int64 `json:"expiracao"`
}

type valueOut struct {
	Original string `json:"original"`
}

type chargeIn struct {
	Calendar    calendarIn `json:"calendario"`
	Value       valueOut   `json:"valor"`
	Key         string     `json:"chave"`
	Description string     `json:"solicitacaoPagador"`
}

type calendarOut struct {
	Created string `json:"criacao"`
	Expires int64  `json:"expiracao"`
}

type locationOut struct {
	ID       int64  `json:"id"`
	Location string `json:"location"`
	Kind     string `json:"tipoCob"`
	Created  string `json:"criacao"`
	TxID     string `json:"txid"`
}

type chargeOut struct {
	Calendar    calendarOut  `json:"calendario"`
	TxID        string       `json:"txid"`
	Revision    int          `json:"revisao"`
	Loc         locationOut  `json:"loc"`
	Location    string       `json:"location"`
	Status      string       `json:"status"`
	Value       valueOut     `json:"valor"`
	Key         string       `json:"chave"`
	Description string       `json:"solicitacaoPagador,omitempty"`
	Code        string       `json:"pixCopiaECola"`
	Payments    []paymentOut `json:"pix,omitempty"`
}

const timeForm = "2006-01-02T15:04:05.000Z"

func formatTime(t time.Time) string { return t.UTC().Format(timeForm) }

func formatAmount(c money.Cents) string {
	text := strconv.FormatInt(int64(c), 10)
	text = strings.Repeat("0", max(0, 3-len(text))) + text
	return text[:len(text)-2] + "." + text[len(text)-2:]
}

func parseAmount(s string) (money.Cents, bool) {
	whole, cents, ok := strings.Cut(s, ".")
	if !ok || len(cents) != 2 || whole == "" || len(whole) > 10 || strings.Trim(whole+cents, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+cents, 10, 64)
	return money.Cents(n), err == nil && n > 0
}

// isID reports whether an id has from least to 35 letters and digits.
func isID(s string, least int) bool { return len(s) >= least && bankapi.IsExternalID(s) }

const (
	txIDMin        = 26
	descriptionMax = 140
	lifeMax        = 1<<31 - 1
)

// putCharge makes a charge. A repeated txid is refused, as Efí does.
func putCharge(f *Face, r *request) (int, any, error) {
	txid := r.PathValue("txid")
	var in chargeIn
	if err := r.decode(&in); err != nil {
		return 0, nil, err
	}
	amount, ok := parseAmount(in.Value.Original)
	switch {
	case !isID(txid, txIDMin):
		return 0, nil, invalid("CobOperacaoInvalida", "cob.txid")
	case !ok:
		return 0, nil, invalid("CobOperacaoInvalida", "cob.valor.original")
	case in.Calendar.Expires < 1 || in.Calendar.Expires > lifeMax:
		return 0, nil, invalid("CobOperacaoInvalida", "cob.calendario.expiracao")
	case in.Key != Key:
		return 0, nil, invalid("CobOperacaoInvalida", "cob.chave")
	case len([]rune(in.Description)) > descriptionMax:
		return 0, nil, invalid("CobOperacaoInvalida", "cob.solicitacaoPagador")
	}
	if c, known, err := f.bank.PeekCharge(txid); err != nil || known && !isRefused(&c) {
		if err == nil {
			err = named(http.StatusConflict, "txid_duplicado")
		}
		return 0, nil, err
	}
	n := chargeNote{TxID: txid, CreatedAt: f.bank.Now().UTC().Truncate(time.Millisecond), Expires: in.Calendar.Expires, Key: in.Key, Description: in.Description}
	if err := f.book.write(note{Charge: &n}); err != nil {
		return 0, nil, err
	}
	terms := bankapi.ChargeTerms{
		Method: bankapi.MethodPIX, Amount: amount, ExpiresAt: n.CreatedAt.Add(time.Duration(n.Expires) * time.Second),
		MerchantName: holderName, MerchantCity: holderCity,
	}
	a, err := f.call(r.Context(), http.MethodPut, "/charges/"+txid, terms)
	switch {
	case err != nil:
		return 0, nil, err
	case a.code == bankapi.CodeContentDiffers || a.code == bankapi.CodeIDInUse:
		return 0, nil, named(http.StatusConflict, "txid_duplicado")
	case a.code != "":
		return 0, nil, invalid("CobOperacaoInvalida", "cob.valor.original")
	}
	var made bankapi.Charge
	if err := a.read(&made); err != nil {
		return 0, nil, err
	}
	out, err := f.chargeOut(&made)
	return http.StatusCreated, out, err
}

// isRefused reports whether the bank has refused to register a charge: there is none.
func isRefused(c *bankapi.Charge) bool {
	return c.State == bankapi.ChargeFailed && c.Failure != nil && c.Failure.Code == string(bankapi.CodeChargeRefused)
}

// chargeOut is a charge of the bank, with what the face keeps of it.
func (f *Face) chargeOut(c *bankapi.Charge) (chargeOut, error) {
	n, ok := f.book.charge(c.ExternalID)
	if !ok { // it was made in the bank's own protocol
		n = chargeNote{TxID: c.ExternalID, CreatedAt: c.ExpiresAt.Add(-24 * time.Hour), Expires: 24 * 60 * 60, Key: Key}
	}
	terms := bankapi.ChargeTerms{Method: bankapi.MethodPIX, Amount: c.Amount, ExpiresAt: c.ExpiresAt, MerchantName: holderName, MerchantCity: holderCity}
	made, err := bankapi.Instruct(c.ExternalID, terms)
	if err != nil {
		return chargeOut{}, err
	}
	sum := sha256.Sum256([]byte(c.ExternalID))
	location := bankapi.CodeHost + "/qr/v2/" + c.ExternalID
	out := chargeOut{
		Calendar: calendarOut{formatTime(n.CreatedAt), n.Expires}, TxID: c.ExternalID, Location: location,
		Loc:    locationOut{int64(binary.BigEndian.Uint32(sum[:]) >> 1), location, "cob", formatTime(n.CreatedAt), c.ExternalID},
		Status: "ATIVA", Value: valueOut{formatAmount(c.Amount)}, Key: n.Key, Description: n.Description, Code: made.PIX.QRCode,
	}
	switch {
	case len(c.Payments) > 0:
		out.Status = "CONCLUIDA"
	case c.State == bankapi.ChargeCanceled:
		out.Status, out.Revision = "REMOVIDA_PELO_USUARIO_RECEBEDOR", 1
	case c.State == bankapi.ChargeFailed:
		out.Status, out.Revision = "REMOVIDA_PELO_PSP", 1
	}
	for i := range c.Payments {
		p, known, err := f.bank.PeekPayment(c.Payments[i].ID)
		if err != nil {
			return out, err
		}
		if known {
			out.Payments = append(out.Payments, showPayment(&p))
		}
	}
	return out, nil
}

func getCharge(f *Face, r *request) (int, any, error) {
	txid := r.PathValue("txid")
	if !isID(txid, txIDMin) {
		return 0, nil, missing("CobNaoEncontrado")
	}
	a, err := f.call(r.Context(), http.MethodGet, "/charges/"+txid, nil)
	switch {
	case err != nil:
		return 0, nil, err
	case a.code != "":
		return 0, nil, missing("CobNaoEncontrado")
	}
	var c bankapi.Charge
	if err := a.read(&c); err != nil {
		return 0, nil, err
	}
	if c.Method != bankapi.MethodPIX || isRefused(&c) {
		return 0, nil, missing("CobNaoEncontrado")
	}
	out, err := f.chargeOut(&c)
	return http.StatusOK, out, err
}

// patchCharge removes a charge, if it is active; other revisions are refused.
func patchCharge(f *Face, r *request) (int, any, error) {
	var in struct {
		Status string `json:"status"`
	}
	if err := r.decode(&in); err != nil {
		return 0, nil, err
	}
	txid := r.PathValue("txid")
	c, known, err := f.bank.PeekCharge(txid)
	switch {
	case err != nil:
		return 0, nil, err
	case !known || c.Method != bankapi.MethodPIX || isRefused(&c):
		return 0, nil, missing("CobNaoEncontrado")
	case in.Status != "REMOVIDA_PELO_USUARIO_RECEBEDOR" || c.State == bankapi.ChargeCanceled || c.State == bankapi.ChargeFailed:
		return 0, nil, invalid("CobOperacaoInvalida", "cob.status")
	}
	a, err := f.call(r.Context(), http.MethodPost, "/charges/"+txid+"/cancel", nil)
	switch {
	case err != nil:
		return 0, nil, err
	case a.code != "":
		return 0, nil, invalid("CobOperacaoInvalida", "cob.status")
	}
	if err := a.read(&c); err != nil {
		return 0, nil, err
	}
	out, err := f.chargeOut(&c)
	out.Status, out.Revision = "REMOVIDA_PELO_USUARIO_RECEBEDOR", 1 // also if it has expired
	return http.StatusOK, out, err
}

// chargesOut is CobsConsultadas.
type chargesOut struct {
	Parameters parameters     `json:"parametros"`
	Charges    []listedCharge `json:"cobs"`
}

// listedCharge is a charge in a list, where the standard's file wants an id that it defines nowhere.
type listedCharge struct {
	chargeOut

	ID string `json:"idCob"`
}

func listCharges(f *Face, r *request) (int, any, error) {
	q, err := readQuery(r, "CobConsultaInvalida")
	if err != nil {
		return 0, nil, err
	}
	var all []listedCharge
	for _, n := range f.book.chargesBetween(q.from, q.to) {
		c, known, err := f.bank.PeekCharge(n.TxID)
		if err != nil {
			return 0, nil, err
		}
		if !known || isRefused(&c) {
			continue
		}
		out, err := f.chargeOut(&c)
		if err != nil {
			return 0, nil, err
		}
		all = append(all, listedCharge{out, n.TxID})
	}
	page, p := pageOf(q, all)
	return http.StatusOK, chargesOut{p, page}, nil
}
