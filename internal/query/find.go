package query

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/taxid"
)

// Match is something that has an id, a code or personal data that a person looks for.
type Match struct {
	What     string // payin, payout, refund, receipt, dispute, transfer, case, event, delivery, endpoint, batch, merchant, account or credential
	ID       string
	Merchant payment.ID // zero: the platform
	Status   string
	By       string // what of it was found
	Command  string // that shows it
}

const (
	// matchesMost bounds the matches of each kind of personal data of a merchant.
	matchesMost = 50
	// searchedMost is how many pay-ins and payouts of one merchant are searched for codes that no index has.
	searchedMost = 20_000
	// searchedInAll is how many of all merchants.
	searchedInAll = 200_000
)

// finder looks for a text.
type finder struct {
	ctx       context.Context
	s         *store.Store
	text      string
	merchants []store.Merchant
	accounts  []store.Account
	matches   []Match
	err       error
}

// keep keeps an error: a row that cannot be opened hides no other.
func (f *finder) keep(err error) {
	if err != nil && (f.err == nil || !strings.Contains(f.err.Error(), err.Error())) {
		f.err = errors.Join(f.err, err)
	}
}

// Find looks for a text among all ids, references, codes and, by keyed hash, personal data. thorough is
// false if only the newest pay-ins and payouts of a merchant were searched for ids of processors and codes
// of boletos. If of is not zero, the rows of that merchant alone are searched. An error is about rows that cannot be read, beside what was found.
func Find(ctx context.Context, s *store.Store, text string, of payment.ID) (list []Match, thorough bool, err error) {
	f := &finder{ctx: ctx, s: s, text: strings.TrimSpace(text)}
	if f.merchants, err = s.Merchants(ctx); err != nil {
		return nil, true, err
	}
	if !of.IsZero() {
		f.merchants = slices.DeleteFunc(f.merchants, func(m store.Merchant) bool { return m.ID != of })
	}
	if f.accounts, err = s.Accounts(ctx); err != nil {
		return nil, true, err
	}
	for _, look := range []func() error{f.ids, f.names, f.externalIDs, f.payments, f.references, f.personal} {
		f.keep(look())
	}
	if thorough = true; len(f.matches) == 0 && f.err == nil {
		thorough, err = f.scan()
		f.keep(err)
	}
	return f.unique(), thorough, f.err
}

// unique are the matches without repeats: a text may be several ids of one order.
func (f *finder) unique() (list []Match) {
	for _, m := range f.matches {
		if !slices.ContainsFunc(list, func(v Match) bool { return v.What == m.What && v.ID == m.ID }) {
			list = append(list, m)
		}
	}
	return list
}

func (f *finder) add(m Match) { f.matches = append(f.matches, m) }

// found adds a match if a row was read.
func (f *finder) found(err error, m func() Match) error {
	if err == nil {
		f.add(m())
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		f.keep(err)
	}
	return f.ctx.Err()
}

func (f *finder) payin(p *payment.Payin, by string) Match {
	return Match{"payin", p.ID.String(), p.Merchant, string(p.Status), by, "payin show " + p.ID.String()}
}

func (f *finder) payout(p *payment.Payout, by string) Match {
	return Match{"payout", p.ID.String(), p.Merchant, string(p.Status), by, "payout show " + p.ID.String()}
}

func (f *finder) refund(p *payment.Refund, by string) Match {
	return Match{"refund", p.ID.String(), p.Merchant, string(p.Status), by, "refund show " + p.ID.String()}
}

// receipt is a payment: its pay-in shows it, or the case about it.
func (f *finder) receipt(r *payment.Receipt, by string) Match {
	m := Match{"receipt", r.ID.String(), r.Merchant, "of no order", by, "case list"}
	if !r.Payin.IsZero() {
		m.Status, m.Command = "of pay-in "+r.Payin.String(), "payin show "+r.Payin.String()
	}
	return m
}

// aboutCase is a match that its case shows.
func (f *finder) aboutCase(what string, merchant, id payment.ID, status, by string) (Match, error) {
	m := Match{what, id.String(), merchant, status, by, "case list --all"}
	cases, err := f.s.CasesOf(f.ctx, merchant, id)
	if len(cases) > 0 {
		m.Command = "case show " + cases[0].ID.String()
	}
	return m, err
}

// ids looks for the text as an id of this gateway.
func (f *finder) ids() error {
	id, err := payment.ParseID(strings.ToLower(f.text))
	if event, other := payment.ParseEventID(f.text); other == nil {
		id, err = event, nil
	}
	if err != nil {
		return nil // it is no id
	}
	if err := f.subject(id); err != nil {
		return err
	}
	c, err := f.s.FindCase(f.ctx, id)
	if err := f.found(err, func() Match {
		status := string(c.Kind) + ", open"
		if !c.ClosedAt.IsZero() {
			status = string(c.Kind) + ", " + string(c.Resolution)
		}
		return Match{"case", id.String(), c.Merchant, status, "its id", "case show " + id.String()}
	}); err != nil {
		return err
	}
	for i := range f.merchants {
		m := &f.merchants[i]
		if m.ID == id {
			f.add(Match{"merchant", id.String(), id, "", "its id", "merchant list"})
		}
		if err := f.inMerchant(m.ID, id); err != nil {
			return err
		}
	}
	return nil
}

// subject looks for an order, a payment, a dispute or a found transfer.
func (f *finder) subject(id payment.ID) error {
	owner, err := OwnerOf(f.ctx, f.s, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	v := &Subject{Merchant: owner, ID: id}
	if err := v.find(f.ctx, f.s); err != nil {
		return err
	}
	const by = "its id"
	switch {
	case v.Payin != nil:
		f.add(f.payin(v.Payin, by))
	case v.Payout != nil:
		f.add(f.payout(v.Payout, by))
	case v.Refund != nil:
		f.add(f.refund(v.Refund, by))
	case v.Receipt != nil:
		f.add(f.receipt(v.Receipt, by))
	case v.Dispute != nil:
		f.add(Match{"dispute", id.String(), owner, string(v.Dispute.Status), by, "dispute show " + id.String()})
	default:
		m, err := f.aboutCase(string(v.Kind), owner, id, "", by)
		f.add(m)
		return err
	}
	return nil
}

// inMerchant looks for an event, a delivery, an endpoint or a batch of a merchant.
func (f *finder) inMerchant(m, id payment.ID) error {
	const by = "its id"
	e, err := f.s.Event(f.ctx, m, id)
	if err := f.found(err, func() Match {
		return Match{"event", payment.PublicEventID(id), m, string(e.Type), by, "event show " + payment.PublicEventID(id)}
	}); err != nil {
		return err
	}
	d, err := f.s.DeliveryOf(f.ctx, m, id)
	if err := f.found(err, func() Match {
		return Match{"delivery", id.String(), m, string(d.State), by, "delivery show " + id.String()}
	}); err != nil {
		return err
	}
	v, err := f.s.EndpointOf(f.ctx, m, id)
	if err := f.found(err, func() Match {
		state := "enabled"
		if !v.Enabled {
			state = "disabled"
		}
		return Match{"endpoint", id.String(), m, state, by, "delivery list"}
	}); err != nil {
		return err
	}
	_, err = f.s.PayoutBatch(f.ctx, m, id)
	return f.found(err, func() Match { return Match{"batch", id.String(), m, "", by, "payout list"} })
}

// names looks for merchants, accounts and credentials.
func (f *finder) names() error {
	for i := range f.merchants {
		if m := &f.merchants[i]; strings.EqualFold(m.Name, f.text) {
			f.add(Match{"merchant", m.Name, m.ID, "", "its name", "balance show " + m.Name})
		}
	}
	for i := range f.accounts {
		if a := &f.accounts[i]; a.ID == f.text {
			f.add(Match{"account", a.ID, a.Merchant, string(a.State), "its name", "account show " + a.ID})
		}
	}
	c, err := f.s.Credential(f.ctx, f.text)
	return f.found(err, func() Match {
		return Match{"credential", c.KeyID, c.Merchant, "", "its key", "credential list " + f.nameOf(c.Merchant)}
	})
}

// nameOf is the name of a merchant.
func (f *finder) nameOf(id payment.ID) string {
	for i := range f.merchants {
		if f.merchants[i].ID == id {
			return f.merchants[i].Name
		}
	}
	return ""
}

// externalIDs looks for the id of an order at its processor, which names its merchant; the txid of a Pix
// is one.
func (f *finder) externalIDs() error {
	owner, err := f.s.MerchantOf(f.ctx, f.text)
	if err != nil || owner.IsZero() {
		return err
	}
	const by = "externalId"
	p, _, err := f.s.PayinByExternalID(f.ctx, owner, f.text)
	if err := f.found(err, func() Match { return f.payin(&p, by) }); err != nil {
		return err
	}
	q, _, err := f.s.PayoutByExternalID(f.ctx, owner, f.text)
	if err := f.found(err, func() Match { return f.payout(&q, by) }); err != nil {
		return err
	}
	r, _, err := f.s.RefundByExternalID(f.ctx, owner, f.text)
	return f.found(err, func() Match { return f.refund(&r, by) })
}

// payments looks for ids of Pix, and of payments, refunds and disputes at processors.
func (f *finder) payments() error {
	for i := range f.accounts {
		account := f.accounts[i].ID
		merchant, receipt, err := f.s.ReceiptClaim(f.ctx, account, f.text)
		if err == nil {
			var r payment.Receipt
			if r, err = f.s.Receipt(f.ctx, merchant, receipt); err == nil {
				f.add(f.receipt(&r, "the processor's id of a payment"))
			}
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		for j := range f.merchants {
			if err := f.atAccount(f.merchants[j].ID, account); err != nil {
				return err
			}
		}
	}
	for i := range f.merchants {
		if err := f.byEndToEndID(f.merchants[i].ID); err != nil {
			return err
		}
	}
	return nil
}

// atAccount looks for a refund and a dispute by their ids at a processor.
func (f *finder) atAccount(m payment.ID, account string) error {
	part, err := f.s.RefundPart(f.ctx, m, account, f.text)
	if err := f.found(err, func() Match {
		return Match{"refund", part.Refund.String(), m, string(part.State), "the externalId of a part", "refund show " + part.Refund.String()}
	}); err != nil {
		return err
	}
	d, err := f.s.DisputeByExternalID(f.ctx, m, account, f.text)
	return f.found(err, func() Match {
		return Match{"dispute", d.ID.String(), m, string(d.Status), "the processor's id", "dispute show " + d.ID.String()}
	})
}

// byEndToEndID looks for orders by their ids in Pix.
func (f *finder) byEndToEndID(m payment.ID) error {
	const by = "endToEndId"
	page := store.Filter{EndToEndID: f.text, Limit: matchesMost}
	payins, err := f.s.Payins(f.ctx, m, page)
	for i := range payins {
		f.add(f.payin(&payins[i], by))
	}
	payouts, other := f.s.Payouts(f.ctx, m, page)
	for i := range payouts {
		f.add(f.payout(&payouts[i], by))
	}
	refunds, third := f.s.Refunds(f.ctx, m, page)
	for i := range refunds {
		f.add(f.refund(&refunds[i], by))
	}
	t, fourth := f.s.FoundTransfer(f.ctx, m, f.text) // a second transfer has it as its external id
	if fourth == nil {
		match, err := f.aboutCase("transfer", m, t.ID, "found", "externalId or endToEndId")
		f.add(match)
		fourth = err
	}
	if errors.Is(fourth, store.ErrNotFound) {
		fourth = nil
	}
	return errors.Join(err, other, third, fourth)
}

// references looks for merchants' own ids.
func (f *finder) references() error {
	const by = "referenceId"
	for i := range f.merchants {
		m := &f.merchants[i]
		for _, op := range []payment.Operation{payment.OperationPayin, payment.OperationPublicPayin} {
			p, _, err := f.s.PayinByExternalID(f.ctx, m.ID, f.s.ExternalID(m, op, f.text))
			if err := f.found(err, func() Match { return f.payin(&p, by) }); err != nil {
				return err
			}
		}
		q, _, err := f.s.PayoutByExternalID(f.ctx, m.ID, f.s.ExternalID(m, payment.OperationPayout, f.text))
		if err := f.found(err, func() Match { return f.payout(&q, by) }); err != nil {
			return err
		}
		r, _, err := f.s.RefundByExternalID(f.ctx, m.ID, f.s.ExternalID(m, payment.OperationRefund, f.text))
		if err := f.found(err, func() Match { return f.refund(&r, by) }); err != nil {
			return err
		}
		b, _, err := f.s.PayoutBatchByExternalID(f.ctx, m.ID, f.s.ExternalID(m, payment.OperationPayoutBatch, f.text))
		if err := f.found(err, func() Match { return Match{"batch", b.ID.String(), m.ID, "", by, "payout list --merchant " + m.Name} }); err != nil {
			return err
		}
	}
	return nil
}

// personal looks for a document, an e-mail address or a Pix key in the index of personal data.
func (f *finder) personal() error {
	var documents, emails []string
	if document := payment.NormalDocument(f.text); !strings.ContainsAny(f.text, "@") {
		if _, err := taxid.CheckForm(document); err == nil {
			documents = append(documents, document)
		}
	} else {
		emails = append(emails, payment.NormalEmail(f.text))
	}
	keys := payment.NormalPIXKeys(f.text)
	for i := range f.merchants {
		m := f.merchants[i].ID
		for _, of := range []struct {
			field  store.SearchField
			values []string
			by     string
		}{
			{store.SearchCustomerDocument, documents, "the customer's document"},
			{store.SearchCustomerEmail, emails, "the customer's e-mail address"},
			{store.SearchBeneficiaryDocument, documents, "the beneficiary's document"},
			{store.SearchPIXKey, keys, "the Pix key"},
		} {
			if err := f.terms(m, of.field, of.values, of.by); err != nil {
				return err
			}
		}
	}
	return nil
}

// terms looks for orders of a merchant by values of a field of personal data.
func (f *finder) terms(m payment.ID, field store.SearchField, values []string, by string) error {
	if len(values) == 0 {
		return nil
	}
	var terms []store.SearchTerm
	for _, v := range values {
		terms = append(terms, f.s.SearchTerm(m, field, v))
	}
	page := store.Filter{Terms: [][]store.SearchTerm{terms}, Limit: matchesMost}
	if strings.HasPrefix(string(field), "payin.") {
		list, err := f.s.Payins(f.ctx, m, page)
		for i := range list {
			f.add(f.payin(&list[i], by))
		}
		return err
	}
	list, err := f.s.Payouts(f.ctx, m, page)
	for i := range list {
		f.add(f.payout(&list[i], by))
	}
	return err
}

// scan looks for codes that no index has among the newest orders: ids at processors, txids, and the
// numbers of boletos. all is false if a merchant has more orders.
func (f *finder) scan() (all bool, err error) {
	all = true
	most := searchedOf(len(f.merchants))
	digits := payment.NormalDocument(f.text) // without dots, dashes and blanks
	for i := range f.merchants {
		m := f.merchants[i].ID
		payins, err := searched(f.ctx, m, most, f.s.Payins, func(p *payment.Payin) payment.ID {
			if by := codeOf(p, f.text, digits); by != "" {
				f.add(f.payin(p, by))
			}
			return p.ID
		})
		if err != nil {
			return all, err
		}
		payouts, err := searched(f.ctx, m, most, f.s.Payouts, func(p *payment.Payout) payment.ID {
			if p.ProcessorID == f.text && f.text != "" {
				f.add(f.payout(p, "the processor's id"))
			}
			return p.ID
		})
		if err != nil {
			return all, err
		}
		all = all && payins && payouts
	}
	return all, nil
}

// searchedOf is how many orders of each of some merchants are searched.
func searchedOf(merchants int) int {
	return min(searchedMost, max(searchedInAll/max(merchants, 1), 1))
}

// searched calls a function with the newest orders of a merchant, at most so many, which returns their ids;
// all is false if there are more.
func searched[T any](ctx context.Context, m payment.ID, most int, read func(ctx context.Context, merchant payment.ID, f store.Filter) ([]T, error), each func(*T) payment.ID) (all bool, err error) {
	page := store.Filter{}
	for ; most > 0; most -= page.Limit {
		page.Limit = min(pageMost, most)
		list, err := read(ctx, m, page)
		for i := range list {
			page.Before = each(&list[i])
		}
		if err != nil || len(list) < page.Limit {
			return true, err
		}
	}
	return false, nil
}

// codeOf says which code of a pay-in a text is; "" if it is none.
func codeOf(p *payment.Payin, text, digits string) string {
	switch pix, slip := p.Details.PIX, p.Details.Boleto; {
	case text == "":
		return ""
	case p.ProcessorID == text:
		return "the processor's id"
	case pix != nil && (pix.TxID == text || pix.QRCode == text):
		return "the txid or code of its Pix"
	case slip != nil && (slip.DigitableLine == digits || slip.Barcode == digits):
		return "the digitable line or bar code of its boleto"
	case slip != nil && (slip.OurNumber == text || slip.OurNumber == digits):
		return "the number of its boleto (nosso número)"
	default:
		return ""
	}
}
