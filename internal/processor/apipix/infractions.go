package apipix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// infraction is a payer's notice of fraud or of a flaw by the MED, as Efí lists it. Members whose
// form is not certain are read apart: they must not make the others unreadable.
type infraction struct {
	ID         jsontext.Value `json:"idInfracao"`
	EndToEndID string         `json:"endToEndId"`
	Value      jsontext.Value `json:"valor"`
	Reason     string         `json:"razao"`
	Status     string         `json:"status"`
	Analysis   jsontext.Value `json:"dadosAnalise"`
}

// Statuses of an infraction.
const (
	infractionOpen     = "ABERTA"
	infractionDefended = "EM_DEFESA"
	infractionAccepted = "ACEITA"
	infractionRejected = "REJEITADA"
	infractionCanceled = "CANCELADA_EFI"
)

// infractionPrefix begins the ids of disputes that are infractions. The others are returns,
// which nobody asks the receiver about.
const infractionPrefix = "infracao-"

// infractionIDMax is the longest id of an infraction, in bytes.
const infractionIDMax = 64

// id is the infraction's; "" if it is none.
func (v *infraction) id() string {
	id := strings.Trim(string(v.ID), `"`)
	if !isToken(id, infractionIDMax) || id == "null" {
		return ""
	}
	return id
}

// valid reports whether an infraction has what a dispute needs.
func (v *infraction) valid() bool {
	known := []string{infractionOpen, infractionDefended, infractionAccepted, infractionRejected, infractionCanceled}
	return v.id() != "" && isWord(v.EndToEndID, endToEndMax) && slices.Contains(known, v.Status)
}

// respondBy is until when it can be defended; zero if Efí does not say so in a known form.
func (v *infraction) respondBy() time.Time {
	var analysis struct {
		Until string `json:"prazoFinalizacao"`
	}
	if len(v.Analysis) == 0 || unmarshal(v.Analysis, &analysis) != nil {
		return time.Time{}
	}
	at, ok := parseTime(analysis.Until)
	if !ok {
		return time.Time{}
	}
	return at
}

// dispute is the dispute of an infraction of a payment, and of the return that it led to, if
// there is one. The amount counts only in the standard's form; else all of the payment is
// disputed.
func (v *infraction) dispute(paid *processor.Payment, back *pixReturn, now time.Time) processor.Dispute {
	d := processor.Dispute{
		ID: infractionPrefix + v.id(), PaymentID: paid.ID, Kind: payment.KindMED, Amount: paid.Amount, State: processor.DisputeOpen, RespondBy: v.respondBy(),
	}
	if isText(v.Reason) {
		d.Reason = v.Reason
	}
	if amount, ok := parseAmount(strings.Trim(string(v.Value), `"`)); ok && amount < paid.Amount && v.Value.Kind() == '"' {
		d.Amount = amount
	}
	returned := cmp.Or(back, &pixReturn{}).Status
	if back != nil {
		d.ReturnID = back.name(paid.ID)
	}
	switch {
	case returned == statusReturned:
		d.State = processor.DisputeLost
		d.Lost, _ = parseAmount(back.Value) // which was checked; it may be more than is disputed
	case returned == statusProcessing:
	case v.Status == infractionRejected, v.Status == infractionCanceled, v.Status == infractionAccepted && returned == statusFailed:
		d.State = processor.DisputeWon
	case v.Status == infractionAccepted && now.Sub(paid.PaidAt) > refundWindow: // nothing can be returned any more
		d.State = processor.DisputeWon
	}
	return d
}

// rank orders the infractions of a payment by how likely a return of it is theirs: an accepted one
// leads to a return, and one that was rejected or canceled to none.
func (v *infraction) rank() int {
	switch v.Status {
	case infractionAccepted:
		return 0
	case infractionRejected, infractionCanceled:
		return 2
	default:
		return 1
	}
}

// infractionsFrom is the age of a payment without returns from which it is looked for in the list
// of infractions: the query that confirms a payment costs one request.
const infractionsFrom = 10 * time.Minute

// infractionAfter is how long after its deadline a decided infraction is still read: its return
// follows within days.
const infractionAfter = 30 * 24 * time.Hour

// infractionPageSize is the number of infractions of a page of changes: each needs a request.
const infractionPageSize = 20

// infractionPages bounds the pages of one search.
const infractionPages = 50

// errTruncated means that a list of infractions is incomplete, so an absent entry proves nothing.
var errTruncated = errors.New("apipix: the list of infractions could not be read to its end")

// errNotAllowed says that the application may not read infractions, or not those of that time.
var errNotAllowed = errors.New("apipix: the bank refuses to list infractions")

// infractionsOf are the infractions of a payment: at Efí, if the application may read them, and in
// a known form. What is known of the payment does not depend on them: an error says that there may
// be some, and that the returns of the payment are its only known disputes.
func (p *Processor) infractionsOf(ctx context.Context, v *pix, paid *processor.Payment) (list []infraction, err error) {
	now := p.clock.Now()
	if young := now.Sub(paid.PaidAt) < infractionsFrom; !p.efi || young && !slices.ContainsFunc(v.Returns, pixReturn.isDispute) {
		return nil, nil
	}
	err = p.eachInfraction(ctx, paid.PaidAt.Add(-time.Hour), now, func(v *infraction) bool {
		if v.EndToEndID == paid.EndToEndID {
			list = append(list, *v)
		}
		return true
	})
	switch {
	case errors.Is(err, errForm):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the infractions: %w", err)
	}
	return list, nil
}

// eachInfraction reads the infractions of a time, until found returns false. One that cannot be
// read is left out: the list of changes has a case for it. A window that the bank refuses has none, as
// without the permission; errTruncated if one was begun and cannot be read to its end.
func (p *Processor) eachInfraction(ctx context.Context, from, to time.Time, found func(v *infraction) bool) error {
	pages := 0
	for ; from.Before(to); from = from.Add(window) {
		end := from.Add(window)
		if end.After(to) {
			end = to
		}
		for number, more := int64(0), true; more; number++ {
			if pages++; pages > infractionPages {
				return errTruncated
			}
			read, err := p.readInfractions(ctx, from, end, number, pageSize)
			switch {
			case errors.Is(err, errNotAllowed) && number == 0:
			case errors.Is(err, errNotAllowed), errors.Is(err, errForm) && pages > 1:
				return errTruncated
			case err != nil:
				return err
			}
			for _, raw := range read.entries {
				var v infraction
				if unmarshal(raw, &v) == nil && v.valid() && !found(&v) {
					return nil
				}
			}
			more = read.more
		}
	}
	return nil
}

// infractionList is the list of infractions of Efí.
type infractionList struct {
	Parameters *struct {
		Paging *paging `json:"paginacao"`
	} `json:"parametros"`
	Entries []jsontext.Value `json:"infracoes"`
}

// infractionsPath is the path of a page of the list of infractions.
func infractionsPath(from, to time.Time, number int64, size int) string {
	return "/v2/gn/infracoes?inicio=" + url.QueryEscape(formatTime(from)) + "&fim=" + url.QueryEscape(formatTime(to)) +
		"&paginacao.paginaAtual=" + strconv.FormatInt(number, 10) + "&paginacao.itensPorPagina=" + strconv.Itoa(size)
}

// readInfractions reads a page of the list of infractions; errForm if it has another form. A list that
// does not say its pages is complete.
func (p *Processor) readInfractions(ctx context.Context, from, to time.Time, number int64, size int) (page readPage, err error) {
	result := p.get(ctx, infractionsPath(from, to, number, size))
	if result.err == nil && result.status >= 400 && result.status <= 499 && result.status != http.StatusTooManyRequests {
		return page, errNotAllowed
	}
	var body infractionList
	if jsontext.Value(result.body).Kind() == '[' {
		body.Entries = parse[[]jsontext.Value](&result)
	} else {
		body = parse[infractionList](&result)
	}
	switch {
	case !result.ok():
		return page, result.cause()
	case body.Parameters == nil || body.Parameters.Paging == nil:
		page.entries = body.Entries
		return page, nil
	}
	at := body.Parameters.Paging
	page.entries, page.more = body.Entries, number+1 < at.Pages
	if at.Page != number || at.Pages < 0 || page.more && len(page.entries) == 0 {
		return page, errForm
	}
	return page, nil
}

// infractionFacts reads the facts of a page of infractions. Each names a payment only, which is
// read for its order and its returns. If it has any, all of its infractions are read: which one led to
// a return depends on the others. missing is why a payment could not be read: it stops no other.
func (e *Efi) infractionFacts(ctx context.Context, entries []jsontext.Value) (facts []processor.Fact, missing error) {
	var order []string
	byPayment, rawOf := map[string][]infraction{}, map[string]jsontext.Value{}
	for _, raw := range entries {
		var v infraction
		if unmarshal(raw, &v) != nil || !v.valid() {
			facts = append(facts, unreadable(raw))
			continue
		}
		if v.longDecided(e.clock.Now()) {
			continue
		}
		if byPayment[v.EndToEndID] == nil {
			order, rawOf[v.EndToEndID] = append(order, v.EndToEndID), raw
		}
		byPayment[v.EndToEndID] = append(byPayment[v.EndToEndID], v)
	}
	for _, id := range order {
		result := e.get(ctx, e.prefix+"/pix/"+escape(id))
		paid := parse[pix](&result)
		switch {
		case result.lookup(subjectPayment) == processor.NotFound:
			continue
		case !result.ok():
			missing = fmt.Errorf("a payment with an infraction cannot be read: %w", result.cause())
			continue
		case paid.EndToEndID != id:
			missing = fmt.Errorf("a payment with an infraction cannot be read: %w", errOther)
			continue
		}
		list := byPayment[id]
		received, ok := paid.payment()
		if ok && slices.ContainsFunc(paid.Returns, pixReturn.isDispute) {
			// The query that has to confirm the change finds an error out too.
			if all, err := e.infractionsOf(ctx, &paid, &received); err == nil && len(all) > 0 {
				list = all
			}
		}
		disputes, ok := paid.disputesOf(list, e.clock.Now())
		if !ok { // it stops no other
			facts = append(facts, unreadable(rawOf[id]))
			continue
		}
		facts = append(facts, paid.changes(disputes)...)
	}
	return facts, missing
}

// longDecided reports whether an infraction was decided so long ago that it was listed as decided
// many times.
func (v *infraction) longDecided(now time.Time) bool {
	decided := v.Status != infractionOpen && v.Status != infractionDefended
	return decided && !v.respondBy().IsZero() && now.Sub(v.respondBy()) > infractionAfter
}

// compareIDs orders ids of infractions, numbers by their value: a later one must not take the return of an
// earlier one.
func compareIDs(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// disputesOf are the disputes of a payment: its infractions, each with the return that it led to
// (Efí does not say which one; while several may be meant, none is), and the returns by the MED that
// no infraction explains. ok is false if one of them is invalid.
func (v *pix) disputesOf(infractions []infraction, now time.Time) (list []processor.Dispute, ok bool) {
	paid, ok := v.payment()
	var back []pixReturn
	for i := range v.Returns {
		if !v.Returns[i].isDispute() {
			continue
		}
		if _, ok := parseAmount(v.Returns[i].Value); !ok {
			return nil, false
		}
		back = append(back, v.Returns[i])
	}
	if len(back) > 0 && !isWord(v.EndToEndID, endToEndMax) {
		return nil, false
	}
	if len(infractions) > 0 && !ok {
		return nil, false
	}
	slices.SortFunc(infractions, func(a, b infraction) int { return cmp.Or(cmp.Compare(a.rank(), b.rank()), compareIDs(a.id(), b.id())) })
	var ranks [3]int
	for i := range infractions {
		ranks[infractions[i].rank()]++
	}
	unclear := len(back) > ranks[0] && len(back) < ranks[0]+ranks[1] // which undecided one a return is of
	for i := range infractions {
		var of *pixReturn
		if i < len(back) && (!unclear || infractions[i].rank() == 0) {
			of = &back[i]
		}
		list = append(list, infractions[i].dispute(&paid, of, now))
	}
	for i := len(infractions); i < len(back); i++ {
		d, ok := back[i].dispute(v.EndToEndID)
		if !ok {
			return nil, false
		}
		list = append(list, d)
	}
	return list, true
}
