package store

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// CaseKind is the kind of a case. The kind says why it needs manual review.
type CaseKind string

// The kinds, and the parameters that each has besides subject and amount.
const (
	CaseOverpaid         CaseKind = "overpaid"            // subject: pay-in; amount: the surplus, in unapplied; receipt: see [OfReceipt]
	CaseUnmatchedReceipt CaseKind = "unmatched_receipt"   // subject: receipt; processor, externalId: its money names no order, and is the platform's
	CasePayoutUnknown    CaseKind = "payout_unknown"      // subject: payout; reason
	CasePayoutWaiting    CaseKind = "payout_waiting"      // subject: payout; for an hour no send had an effect: the processor answers "later" or cannot be reached; or reason
	CaseRefundUnknown    CaseKind = "refund_unknown"      // subject: refund; cause, processor, externalId: of its part; reported
	CaseRefundWaiting    CaseKind = "refund_waiting"      // subject: refund; processor, externalId: for an hour no send had an effect, as above; or reason
	CaseRefundUnexpected CaseKind = "refund_unexpected"   // subject: pay-in; amount, processor, externalId: given back by the processor, beyond what was paid for the order
	CaseContradiction    CaseKind = "contradiction"       // subject: order; reason, processor, externalId, reported
	CaseNotice           CaseKind = "notice"              // reason, processor, notice or externalId
	CaseCharge           CaseKind = "charge_differs"      // subject: pay-in; processor, externalId, field, problem: the charge is not shown
	CaseChargeOpen       CaseKind = "charge_not_canceled" // subject: pay-in, which ended; processor, externalId: its charge can still be paid
	CasePayinProcessing  CaseKind = "payin_processing"    // subject: pay-in; processor, externalId: neither paid nor refused for days
	CaseDispute          CaseKind = "dispute_unexpected"  // subject: pay-in; amount: that is not set aside; status; or reason
	CaseDisputeDeadline  CaseKind = "dispute_deadline"    // subject: dispute; amount, processor, externalId, respondBy, days: it is not defended
	CaseDisputeOpen      CaseKind = "dispute_open"        // subject: dispute; amount, processor, externalId: it is not decided for months
	CaseDisputeAnswer    CaseKind = "dispute_answer"      // subject: dispute; amount, processor, externalId, action, cause: a person must give the answer to the processor
	CaseWebhook          CaseKind = "webhook_exhausted"   // subject: order; event
	CaseEndpoint         CaseKind = "webhook_endpoint"    // subject: endpoint; since: it has failed since then, and is disabled
	CaseDamaged          CaseKind = "damaged"             // subject: order; table: whose row cannot be opened or processed
	CaseAccountRefused   CaseKind = "account_refused"     // account, since: its processor refuses its credentials, and the gateway has suspended it
	CasePayoutFound      CaseKind = "payout_found"        // subject: found transfer; amount: that left; processor, externalId, and of the list endToEndId, sentAt, pixKey, receiver: masked
	CaseFeedEntry        CaseKind = "feed_entry"          // subject: of the entry alone; processor, feed, cursor, cause, externalId if it is known: an invalid entry
	CaseAccountFrozen    CaseKind = "account_frozen"      // subject: [FrozenAccount]; processor, history: whose payouts wait since a cold start, until two people have compared its transfers

	// subject: of the account alone; account, end, days: its certificate expires, or has
	CaseAccountCertificate CaseKind = "account_certificate"
)

// CaseReason is the reason why a case was opened. Each reason belongs to one kind.
type CaseReason string

// The reasons, by kind, and the parameters that each has besides those of its kind.
const (
	// Of CasePayoutUnknown. A CaseRefundUnknown names them, and other_amount, as its cause.
	ReasonNoAnswer        CaseReason = "no_answer"        // to any look-up so far
	ReasonStillProcessing CaseReason = "still_processing" // by the processor's words, hours after it accepted the transfer
	ReasonNotIdempotent   CaseReason = "not_idempotent"   // not found, and the processor might pay twice
	ReasonOtherContents   CaseReason = "other_contents"   // it was sent before with others

	ReasonTooOld  CaseReason = "too_old"   // its first send: the processor may not recognise its id any more
	ReasonIDInUse CaseReason = "id_in_use" // by the processor's words, which then does not find it

	// Of CaseOverpaid.
	ReasonDisputed  CaseReason = "disputed_after_write_off" // its amount was written off before
	ReasonGivenBack CaseReason = "refunded_after_write_off" // its amount was written off, and the processor gave it back; closed at once

	// Of CaseUnmatchedReceipt.
	ReasonSamePix CaseReason = "same_pix" // bookedAt: the account whose payment of the order has the same endToEndId

	// Of CaseRefundUnknown alone, as its cause.
	ReasonUnconfirmed  CaseReason = "unconfirmed"   // a person has to confirm it at the processor
	ReasonOtherPayment CaseReason = "other_payment" // reported: the processor's id of the payment that was given back
	ReasonOtherPart    CaseReason = "other_part"    // an earlier part of the refund had a case, so this one was not sent

	// Of CasePayoutWaiting.
	ReasonDebt       CaseReason = "debt"              // owed: the merchant's debt in cents, after a restore
	ReasonPersonOnly CaseReason = "confirmation_code" // processor: it wants each transfer confirmed by a person

	// Of CaseRefundWaiting.
	ReasonRefundDebt       CaseReason = "debt_before_refund"       // as ReasonDebt
	ReasonRefundPersonOnly CaseReason = "confirmation_code_refund" // as ReasonPersonOnly

	// Of CaseDispute.
	ReasonMoreThanReceived CaseReason = "more_than_received" // reported: the disputed amount, of which amount is not set aside

	// Of CasePayoutFound.
	ReasonPaidTwice CaseReason = "paid_twice" // payout: of which the transfer is the second; externalId: its endToEndId

	// Of CaseContradiction.
	ReasonOtherAmount       CaseReason = "other_amount"       // reported
	ReasonPaidAfterRelease  CaseReason = "paid_after_release" // status; reported, if another amount left
	ReasonReturnedTooMuch   CaseReason = "returned_too_much"  // reported
	ReasonFailedAfterPaid   CaseReason = "failed_after_paid"
	ReasonUnconfirmedChange CaseReason = "unconfirmed_change" // processor, notice, externalId

	// Of CaseNotice.
	ReasonInvalidPayment     CaseReason = "invalid_payment"     // externalId
	ReasonUnknownTransfer    CaseReason = "unknown_transfer"    // externalId
	ReasonOrderDamaged       CaseReason = "order_damaged"       // externalId: of a listed payment
	ReasonUnsupportedSubject CaseReason = "unsupported_subject" // externalId: about something that this version does not know
	ReasonUnknownRefund      CaseReason = "unknown_refund"      // externalId: requested by nobody here, at a processor without a list of refunds
	ReasonChangedOutside     CaseReason = "changed_outside"     // the row of a payout, or its approval, outside the gateway
	ReasonUnreadable         CaseReason = "unreadable"
	ReasonNotConfirmed       CaseReason = "not_confirmed" // in any attempt
)

// Params are the facts in the text of a case.
type Params map[string]string

// With is the parameters of a case that has a reason: r and others, which may be nil.
func (r CaseReason) With(others Params) Params {
	p := Params{"reason": string(r)}
	maps.Copy(p, others)
	return p
}

// Reason is why the case was opened; "" for a kind without reasons.
func (p Params) Reason() CaseReason { return CaseReason(p["reason"]) }

// Case is a record that needs manual review. It has a kind and parameters; the text is composed
// from them by the command that shows it. The merchant is zero if none could be found.
type Case struct {
	Merchant payment.ID
	ID       payment.ID
	Kind     CaseKind
	Subject  payment.ID
	Amount   cents
	Params   Params
	// StopsPayouts means that while the case is open, no payout of the merchant is accepted or
	// sent.
	StopsPayouts bool
	// StopsAccount is the account that sends no payout while the case is open; "" if the case stops
	// none.
	StopsAccount string
	Resolution   Resolution
	CreatedAt    time.Time
	ClosedAt     time.Time // zero while it is open
}

// Resolution is how a case was closed.
type Resolution string

// The resolutions.
const (
	ResolvedByProof     Resolution = "proof"      // the processor proved the outcome, or accepted the credentials
	ResolvedByCommand   Resolution = "command"    // an operator changed the account
	ResolvedByDelivery  Resolution = "delivered"  // the receiver accepted the event
	ResolvedByReceiver  Resolution = "disabled"   // the receiver disabled the order's events
	ResolvedByNewCase   Resolution = "replaced"   // replaced by a later case
	ResolvedByRequest   Resolution = "requested"  // the merchant requested the payout again
	ResolvedByRepayment Resolution = "repaid"     // the merchant owes nothing any more
	ResolvedByCancel    Resolution = "canceled"   // the merchant canceled the payout
	ResolvedWithOther   Resolution = "with_other" // by the decision on another case of its subject

	// Of operators; each has a decision.
	ResolvedApply    Resolution = "apply"     // unapplied money was applied to an order, or became available
	ResolvedReturn   Resolution = "return"    // unapplied money is given back to its payer
	ResolvedPaid     Resolution = "paid"      // the payout was paid
	ResolvedRelease  Resolution = "release"   // the payout was not paid
	ResolvedResend   Resolution = "resend"    // the payout is sent again
	ResolvedAdopt    Resolution = "adopt"     // the found transfer is the merchant's
	ResolvedWriteOff Resolution = "write-off" // at the expense, or in favor, of the platform
	ResolvedRetry    Resolution = "retry"     // the row is processed again
	ResolvedDismiss  Resolution = "dismiss"   // nothing is to be done
	ResolvedCompared Resolution = "compared"  // the processor's transfers were compared: payouts continue
)

// OperatorResolutions are the resolutions of operators.
var OperatorResolutions = []Resolution{
	ResolvedApply, ResolvedReturn, ResolvedPaid, ResolvedRelease, ResolvedResend, ResolvedAdopt, ResolvedWriteOff, ResolvedRetry, ResolvedDismiss, ResolvedCompared,
}

var caseTable = newTable("cases", []string{"id"},
	idColumn("merchant_id", func(v *Case) *payment.ID { return &v.Merchant }),
	idColumn("id", func(v *Case) *payment.ID { return &v.ID }),
	textColumn("kind", func(v *Case) *CaseKind { return &v.Kind }),
	idColumn("subject_id", func(v *Case) *payment.ID { return &v.Subject }),
	intColumn("amount", func(v *Case) *cents { return &v.Amount }),
	jsonColumn("params", func(v *Case) *Params { return &v.Params }),
	flagColumn("stops_payouts", func(v *Case) *bool { return &v.StopsPayouts }),
	textColumn("stops_account", func(v *Case) *string { return &v.StopsAccount }),
	textColumn("resolution", func(v *Case) *Resolution { return &v.Resolution }).as(mutable),
	timeColumn("created_at", func(v *Case) *time.Time { return &v.CreatedAt }),
	timeColumn("closed_at", func(v *Case) *time.Time { return &v.ClosedAt }).as(mutable),
)

var (
	caseClose      = caseTable.updateBy(" AND t.closed_at = 0", "merchant_id", "id")
	casesOfSubject = caseTable.updateBy(" AND t.closed_at = 0", "merchant_id", "subject_id", "kind")
	caseByID       = caseTable.selectBy("t.merchant_id, t.id", "merchant_id", "id")
	casesAbout     = "SELECT " + caseTable.selected + " FROM cases t WHERE t.merchant_id = $1 AND t.subject_id = $2 AND t.kind = $3"
	openCasesAbout = db.NewKeySelect(caseTable.selected, "cases", caseTable.named("merchant_id", "subject_id", "kind"), " AND t.closed_at = 0", "t.merchant_id, t.id")
	openCaseByID   = db.NewKeySelect(caseTable.selected, "cases", caseTable.named("merchant_id", "id"), " AND t.closed_at = 0", "t.merchant_id, t.id").ReadOnly()
)

func scanCase(r db.Scanner) (Case, error) {
	var v Case
	return v, caseTable.scan(r, &v)
}

// Case reads a case, open or closed, and the decisions about it.
func (n *Needs) Case(merchant, id payment.ID) {
	if ref := (Ref{merchant, id}); !slices.Contains(n.cases, ref) {
		n.cases = append(n.cases, ref)
	}
}

// caseSubject names the cases of a kind about a subject.
type caseSubject struct {
	Ref

	kind CaseKind
}

func (k caseSubject) key() []any { return append(k.Ref.key(), string(k.kind)) }

// OpenCasesAbout reads the open cases of a kind about a subject.
func (n *Needs) OpenCasesAbout(merchant, subject payment.ID, kind CaseKind) {
	if k := (caseSubject{Ref{merchant, subject}, kind}); !slices.Contains(n.casesAbout, k) {
		n.casesAbout = append(n.casesAbout, k)
	}
}

// OpenCasesAbout are the open cases of a kind about a subject that were loaded by it, oldest
// first, and those that this commit opens.
func (l *Loaded) OpenCasesAbout(merchant, subject payment.ID, kind CaseKind) []Case {
	var list []Case
	for _, v := range l.cases.rows {
		if v.Merchant == merchant && v.Subject == subject && v.Kind == kind && v.ClosedAt.IsZero() {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b Case) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), payment.CompareIDs(a.ID, b.ID)) })
	return list
}

// loadedCases are cases that were loaded, and the decisions about those that were loaded by id.
type loadedCases struct {
	rows             map[Ref]Case
	decisions        map[Ref][]Decision
	stoppedMerchants map[payment.ID]bool // whose payouts a case of this commit stops
	stoppedAccounts  map[string]bool     // likewise
}

func (l *Loaded) loadCases(ctx context.Context, tx *db.Tx, n *Needs) error {
	overpaid := l.overpaidDisputed(n)
	if len(n.cases)+len(n.casesAbout)+len(overpaid) == 0 {
		return nil
	}
	l.cases = loadedCases{rows: map[Ref]Case{}, decisions: map[Ref][]Decision{}}
	for _, ref := range overpaid { // rare; the balances, which were locked before, protect them
		rows, err := tx.Query(ctx, casesAbout, ref.Merchant[:], ref.ID[:], string(CaseOverpaid))
		list, err := db.Collect(rows, err, scanCase)
		if err != nil {
			return err
		}
		for i := range list {
			l.cases.rows[Ref{list[i].Merchant, list[i].ID}] = list[i]
		}
	}
	about, err := db.Select(ctx, tx, openCasesAbout, keysOf(n.casesAbout), scanCase)
	if err != nil {
		return err
	}
	for i := range about {
		l.cases.rows[Ref{about[i].Merchant, about[i].ID}] = about[i]
	}
	list, err := db.Select(ctx, tx, caseByID, keysOf(n.cases), scanCase)
	if err != nil {
		return err
	}
	for i := range list {
		l.cases.rows[Ref{list[i].Merchant, list[i].ID}] = list[i]
	}
	decisions, err := db.Select(ctx, tx, decisionsByCase, keysOf(n.cases), scanDecision)
	for i := range decisions {
		sum := decisions[i].hash(tx.Keys())
		decisions[i].Changed = !hmac.Equal(sum[:], decisions[i].Hash)
		ref := Ref{decisions[i].Merchant, decisions[i].Case}
		l.cases.decisions[ref] = append(l.cases.decisions[ref], decisions[i])
	}
	return err
}

// Case is a loaded case; false if there is none.
func (l *Loaded) Case(merchant, id payment.ID) (Case, bool) {
	v, ok := l.cases.rows[Ref{merchant, id}]
	return v, ok
}

type caseChanges struct {
	opened []Case
	closed []caseClosing
}

// caseClosing closes a case by its id, or those of a kind about a subject. If
// two closings name the same case, the first one wins.
type caseClosing struct {
	Case

	bySubject bool
}

func compareClosings(a, b caseClosing) int {
	return cmp.Or(payment.CompareIDs(a.Merchant, b.Merchant), payment.CompareIDs(a.ID, b.ID),
		payment.CompareIDs(a.Subject, b.Subject), strings.Compare(string(a.Kind), string(b.Kind)))
}

// CaseID derives the id of a case from its subject, so that the case is opened once. It also
// derives the id of a subject without a row.
func CaseID(format string, args ...any) payment.ID {
	sum := sha256.Sum256(fmt.Appendf(nil, format, args...))
	return payment.ID(sum[:len(payment.ID{})])
}

// FrozenAccount is the subject of cases about the wait of an account after a cold start.
func FrozenAccount(account string) payment.ID { return CaseID("wait of account %s", account) }

// OpenCase opens a case in the same commit as its cause, and returns its id. A case
// whose id was chosen before is opened once, however often the operation runs.
func (c *Changes) OpenCase(v Case) payment.ID {
	if v.ID.IsZero() {
		v.ID = c.l.newID()
	}
	v.CreatedAt = c.l.now
	if v.Params == nil {
		v.Params = Params{}
	}
	if v.StopsPayouts {
		if c.l.cases.stoppedMerchants == nil {
			c.l.cases.stoppedMerchants = map[payment.ID]bool{}
		}
		c.l.cases.stoppedMerchants[v.Merchant] = true
	}
	if v.StopsAccount != "" {
		if c.l.cases.stoppedAccounts == nil {
			c.l.cases.stoppedAccounts = map[string]bool{}
		}
		c.l.cases.stoppedAccounts[v.StopsAccount] = true
	}
	if c.l.cases.rows != nil {
		c.l.cases.rows[Ref{v.Merchant, v.ID}] = v
	}
	c.cases.opened = append(c.cases.opened, v)
	c.count++
	return v.ID
}

// CloseCase closes a case if it is open, including one that this commit opens.
func (c *Changes) CloseCase(merchant, id payment.ID, how Resolution) {
	c.closeCases(caseClosing{Case: Case{Merchant: merchant, ID: id, Resolution: how, ClosedAt: c.l.now}})
}

// CloseCases closes the open cases of a kind about a subject, including those that
// this commit opens.
func (c *Changes) CloseCases(merchant, subject payment.ID, kind CaseKind, how Resolution) {
	c.closeCases(caseClosing{Case{Merchant: merchant, Subject: subject, Kind: kind, Resolution: how, ClosedAt: c.l.now}, true})
}

// matches reports whether it closes v.
func (by *caseClosing) matches(v *Case) bool {
	if by.bySubject {
		return v.Merchant == by.Merchant && v.Subject == by.Subject && v.Kind == by.Kind
	}
	return v.Merchant == by.Merchant && v.ID == by.ID
}

// closeCases also closes cases that this commit opens, or that were loaded as open.
func (c *Changes) closeCases(by caseClosing) {
	for i := range c.cases.opened {
		if v := &c.cases.opened[i]; v.ClosedAt.IsZero() && by.matches(v) {
			v.Resolution, v.ClosedAt = by.Resolution, by.ClosedAt
		}
	}
	for ref, v := range c.l.cases.rows {
		if v.ClosedAt.IsZero() && by.matches(&v) {
			v.Resolution, v.ClosedAt = by.Resolution, by.ClosedAt
			c.l.cases.rows[ref] = v
		}
	}
	maps.DeleteFunc(c.l.deliveries.openCases, func(_ Ref, v Case) bool { return by.matches(&v) })
	c.cases.closed = append(c.cases.closed, by)
	c.count++
}

// saveCases closes cases that were open before, and adds the new ones, which are
// closed in memory.
func (c *Changes) saveCases(ctx context.Context, tx *db.Tx) error {
	// In the order of their keys, as every table is locked.
	slices.SortStableFunc(c.cases.closed, compareClosings)
	closed := slices.CompactFunc(c.cases.closed, func(a, b caseClosing) bool { return compareClosings(a, b) == 0 })
	var byID, bySubject, opened [][]any
	for i := range closed {
		v := &closed[i]
		if v.bySubject {
			bySubject = append(bySubject, casesOfSubject.row(&v.Case))
		} else {
			byID = append(byID, caseClose.row(&v.Case))
		}
	}
	for i := range c.cases.opened {
		opened = append(opened, caseTable.row(&c.cases.opened[i]))
	}
	if _, err := tx.Update(ctx, caseClose.RowUpdate, byID...); err != nil {
		return fmt.Errorf("cases: %w", err)
	}
	if _, err := tx.Update(ctx, casesOfSubject.RowUpdate, bySubject...); err != nil {
		return fmt.Errorf("cases: %w", err)
	}
	if _, err := tx.Insert(ctx, caseTable.insert, opened...); err != nil {
		return fmt.Errorf("cases: %w", err)
	}
	return nil
}

// payoutsStopped is a condition in SQL: a case that stops the payouts of a merchant is
// open.
func payoutsStopped(merchant string) string {
	return "EXISTS (SELECT 1 FROM cases s WHERE s.merchant_id = " + merchant + " AND s.closed_at = 0 AND s.stops_payouts = 1)"
}

// accountStopped is a condition in SQL: a case that stops the payouts of an account is open.
func accountStopped(account string) string {
	return "EXISTS (SELECT 1 FROM cases s WHERE s.stops_account = " + account + " AND s.closed_at = 0 AND s.stops_account <> '')"
}

// StoppedAccounts are the accounts whose payouts are stopped by cases, in the order of their ids.
func (s *Store) StoppedAccounts(ctx context.Context) ([]string, error) {
	rows, err := s.db.Query(ctx, "SELECT DISTINCT s.stops_account FROM cases s WHERE s.closed_at = 0 AND s.stops_account <> '' ORDER BY s.stops_account")
	list, err := db.Collect(rows, err, func(r db.Scanner) (account string, err error) { return account, r.Scan(&account) })
	return list, s.db.ReadError("stopped accounts", err)
}

// OpenCases lists the open cases of all merchants, oldest first.
func (s *Store) OpenCases(ctx context.Context, limit int) ([]Case, error) {
	rows, err := s.db.Query(ctx, "SELECT "+caseTable.selected+` FROM cases t
		WHERE t.closed_at = 0 ORDER BY t.created_at, t.id LIMIT $1`, limit)
	list, err := db.Collect(rows, err, scanCase)
	return list, s.db.ReadError("cases", err)
}

// StoppingCases lists the open cases that stop payouts of a merchant or of an account, or are about an
// account that the gateway has suspended, oldest first.
func (s *Store) StoppingCases(ctx context.Context) ([]Case, error) {
	rows, err := s.db.Query(ctx, "SELECT "+caseTable.selected+` FROM cases t
		WHERE t.closed_at = 0 AND `+stopping+` ORDER BY t.created_at, t.id`)
	list, err := db.Collect(rows, err, scanCase)
	return list, s.db.ReadError("stopping cases", err)
}

// FindCase reads a case by its id alone, for the operator's commands; else ErrNotFound.
func (s *Store) FindCase(ctx context.Context, id payment.ID) (Case, error) {
	v, err := scanCase(s.db.QueryRow(ctx, "SELECT "+caseTable.selected+` FROM merchants m
		JOIN cases t ON t.merchant_id = m.id AND t.id = $1`, id[:]))
	return v, s.db.ReadError("case", err)
}

// CasesAbout lists the cases of a kind about a subject, open and closed.
func (s *Store) CasesAbout(ctx context.Context, merchant, subject payment.ID, kind CaseKind) ([]Case, error) {
	rows, err := s.db.Query(ctx, casesAbout, merchant[:], subject[:], string(kind))
	list, err := db.Collect(rows, err, scanCase)
	return list, s.db.ReadError("cases", err)
}

// OpenCasesOf lists the open cases of a merchant, or of the platform, and of a kind.
func (s *Store) OpenCasesOf(ctx context.Context, merchant payment.ID, kind CaseKind) ([]Case, error) {
	rows, err := s.db.Query(ctx, "SELECT "+caseTable.selected+` FROM cases t
		WHERE t.merchant_id = $1 AND t.closed_at = 0 AND t.kind = $2`, merchant[:], string(kind))
	list, err := db.Collect(rows, err, scanCase)
	return list, s.db.ReadError("cases", err)
}

// HasOpenCase reports whether a case of a kind about a subject is open.
func (s *Store) HasOpenCase(ctx context.Context, merchant, subject payment.ID, kind CaseKind) (bool, error) {
	var n int
	err := s.db.QueryRow(ctx, "SELECT count(*) FROM cases WHERE merchant_id = $1 AND closed_at = 0 AND subject_id = $2 AND kind = $3",
		merchant[:], subject[:], string(kind)).Scan(&n)
	return n > 0, s.db.ReadError("case", err)
}
