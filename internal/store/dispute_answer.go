package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// answerRow is an answer with its other stored values.
type answerRow struct {
	payment.DisputeAnswer

	fingerprint []byte
	summary     []byte // sealed: a defense without the content of its files
	content     []byte // sealed: the contents of the files
}

var answerTable = newTable("dispute_answers", []string{"dispute_id", "number"},
	idColumn("merchant_id", func(a *answerRow) *payment.ID { return &a.Merchant }),
	idColumn("dispute_id", func(a *answerRow) *payment.ID { return &a.Dispute }),
	intColumn("number", func(a *answerRow) *int64 { return &a.Number }),
	idColumn("payin_id", func(a *answerRow) *payment.ID { return &a.Payin }),
	textColumn("processor", func(a *answerRow) *string { return &a.Processor }),
	textColumn("external_id", func(a *answerRow) *string { return &a.ExternalID }),
	textColumn("action", func(a *answerRow) *payment.AnswerAction { return &a.Action }),
	bytesColumn("fingerprint", func(a *answerRow) *[]byte { return &a.fingerprint }),
	bytesColumn("summary", func(a *answerRow) *[]byte { return &a.summary }),
	bytesColumn("content", func(a *answerRow) *[]byte { return &a.content }).as(hidden),
	textColumn("step", func(a *answerRow) *payment.PayoutStep { return &a.Step }).as(mutable),
	textColumn("outcome", func(a *answerRow) *string { return &a.Outcome }).as(mutable),
	textColumn("evidence", func(a *answerRow) *string { return &a.Evidence }).as(mutable),
	flagColumn("may_exist", func(a *answerRow) *bool { return &a.MayExist }).as(mutable),
	intColumn("sends", func(a *answerRow) *int { return &a.Sends }).as(mutable),
	intColumn("lookups", func(a *answerRow) *int { return &a.Lookups }).as(mutable),
	timeColumn("next_at", func(a *answerRow) *time.Time { return &a.NextAt }).as(mutable),
	optionalIDColumn("claimed_by", func(a *answerRow) *payment.ID { return &a.ClaimedBy }).as(mutable),
	timeColumn("first_sent_at", func(a *answerRow) *time.Time { return &a.FirstSentAt }).as(mutable),
	timeColumn("sent_at", func(a *answerRow) *time.Time { return &a.SentAt }).as(mutable),
	timeColumn("created_at", func(a *answerRow) *time.Time { return &a.CreatedAt }),
	timeColumn("updated_at", func(a *answerRow) *time.Time { return &a.UpdatedAt }).as(mutable),
)

var (
	answerUpdate     = answerTable.updateBy("", "merchant_id", "dispute_id", "number")
	answersByPayin   = answerTable.selectBy("t.merchant_id, t.dispute_id, t.number", "merchant_id", "payin_id")
	answersOfDispute = answerTable.selectBy("t.merchant_id, t.dispute_id, t.number", "merchant_id", "dispute_id").ReadOnly()
)

func scanAnswer(r db.Scanner) (answerRow, error) {
	var a answerRow
	return a, answerTable.scan(r, &a)
}

type answerKey struct {
	Ref

	number int64
}

func keyOfAnswer(a *payment.DisputeAnswer) answerKey {
	return answerKey{Ref{a.Merchant, a.Dispute}, a.Number}
}

func answerData(merchant, dispute payment.ID, column string) db.AssociatedData {
	return db.AssociatedData{Table: "dispute_answers", Merchant: merchant, ID: dispute, Column: column}
}

// defenseDocument is a defense without the content of its files, as it is stored.
type defenseDocument struct {
	Text  string         `json:"text,omitempty"`
	Files []fileDocument `json:"files,omitempty"`
}

type fileDocument struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Size int    `json:"size"`
}

// NewDefense is an answer with a defense to be stored: its texts and files are sealed before
// any lock. contents are those of its files.
type NewDefense struct {
	Defense payment.Defense

	Fingerprint      []byte
	summary, content []byte
}

// NewDefense seals a defense of a dispute.
func (s *Store) NewDefense(merchant, dispute payment.ID, d payment.Defense, contents [][]byte, fingerprint []byte) (*NewDefense, error) {
	document := defenseDocument{Text: d.Text}
	for _, f := range d.Files {
		document.Files = append(document.Files, fileDocument(f))
	}
	plain, err := json.Marshal(&document)
	if err != nil {
		return nil, fmt.Errorf("defense: %w", err)
	}
	return &NewDefense{
		Defense: d, Fingerprint: fingerprint, summary: s.Keys().Seal(answerData(merchant, dispute, "summary"), plain),
		content: s.Keys().Seal(answerData(merchant, dispute, "content"), slices.Concat(contents...)),
	}, nil
}

// openDefense reads the defense of an answer; else ErrNotFound.
func openDefense(keys *db.Keyring, a *answerRow) (*payment.Defense, error) {
	if len(a.summary) == 0 {
		return nil, ErrNotFound
	}
	plain, err := keys.Open(answerData(a.Merchant, a.Dispute, "summary"), a.summary)
	if err != nil {
		return nil, err
	}
	var document defenseDocument
	if err := json.Unmarshal(plain, &document); err != nil {
		return nil, err
	}
	d := &payment.Defense{Text: document.Text}
	for _, f := range document.Files {
		d.Files = append(d.Files, payment.DefenseFile(f))
	}
	return d, nil
}

// DueAnswers are answers that are due at an account.
type DueAnswers struct {
	Account string
	Limit   int
}

// DueAnswers reads due answers, oldest first, that no other process is claiming.
func (n *Needs) DueAnswers(d DueAnswers) { n.answers = append(n.answers, d) }

type loadedAnswers struct {
	rows     map[answerKey]answerRow
	defenses map[Ref]*payment.Defense // of disputes
	due      map[DueAnswers][]answerKey
}

func (l *loadedAnswers) begin() {
	if l.rows == nil {
		l.rows, l.defenses, l.due = map[answerKey]answerRow{}, map[Ref]*payment.Defense{}, map[DueAnswers][]answerKey{}
	}
}

// add adds a row. A defense that cannot be opened is left out: its dispute goes on.
func (l *loadedAnswers) add(keys *db.Keyring, a answerRow) {
	l.begin()
	l.rows[keyOfAnswer(&a.DisputeAnswer)] = a
	if keys == nil {
		return
	}
	if d, err := openDefense(keys, &a); err == nil {
		l.defenses[Ref{a.Merchant, a.Dispute}] = d
	}
}

func (l *Loaded) loadAnswers(ctx context.Context, tx *db.Tx, n *Needs) error {
	payins := l.disputedPayins(n)
	if len(payins)+len(n.answers) == 0 {
		return nil
	}
	l.answers.begin()
	for _, d := range n.answers {
		rows, err := tx.Query(ctx, "SELECT "+answerTable.selected+` FROM dispute_answers t WHERE t.processor = $1 AND t.next_at > 0 AND t.next_at <= $2
			ORDER BY t.next_at LIMIT $3`+tx.SkipLocked(), d.Account, micros(tx.Now), d.Limit)
		list, err := db.Collect(rows, err, scanAnswer)
		if err != nil {
			return err
		}
		for i := range list {
			l.answers.add(tx.Keys(), list[i])
			l.answers.due[d] = append(l.answers.due[d], keyOfAnswer(&list[i].DisputeAnswer))
		}
	}
	list, err := db.Select(ctx, tx, answersByPayin, keysOf(payins), scanAnswer)
	for i := range list {
		l.answers.add(tx.Keys(), list[i])
	}
	return err
}

// Answers are the answers to a dispute of a pay-in whose disputes were loaded, with the
// fingerprints of their requests, by number.
func (l *Loaded) Answers(merchant, dispute payment.ID) (list []payment.DisputeAnswer, fingerprints [][]byte) {
	for number := int64(1); ; number++ {
		a, ok := l.answers.rows[answerKey{Ref{merchant, dispute}, number}]
		if !ok {
			return list, fingerprints
		}
		list, fingerprints = append(list, a.DisputeAnswer), append(fingerprints, a.fingerprint)
	}
}

// Defense is the defense of a loaded dispute; nil if it has none, or if it cannot be opened.
func (l *Loaded) Defense(merchant, dispute payment.ID) *payment.Defense {
	return l.answers.defenses[Ref{merchant, dispute}]
}

// DueAnswers are the loaded due answers that no decision of this commit has claimed, oldest
// first.
func (l *Loaded) DueAnswers(d DueAnswers) (list []payment.DisputeAnswer) {
	for _, key := range l.answers.due[d] {
		if a := l.answers.rows[key]; l.due(a.ClaimedBy, a.NextAt) {
			list = append(list, a.DisputeAnswer)
		}
	}
	return list
}

// AddAnswer adds the answer to a loaded dispute; defense is nil if it has none.
func (c *Changes) AddAnswer(a payment.DisputeAnswer, defense *NewDefense) {
	a.CreatedAt, a.UpdatedAt = c.l.now, c.l.now
	row := answerRow{DisputeAnswer: a}
	c.l.answers.begin()
	if defense != nil {
		row.fingerprint, row.summary, row.content = defense.Fingerprint, defense.summary, defense.content
		c.l.answers.defenses[Ref{a.Merchant, a.Dispute}] = &defense.Defense
	}
	c.l.answers.add(nil, row)
	c.newAnswers = append(c.newAnswers, row)
	c.count++
}

// SetAnswer changes a loaded answer.
func (c *Changes) SetAnswer(a payment.DisputeAnswer) payment.DisputeAnswer {
	a.UpdatedAt = c.l.now
	row := c.l.answers.rows[keyOfAnswer(&a)]
	row.DisputeAnswer = a
	c.l.answers.add(nil, row)
	c.answers = append(c.answers, row)
	c.count++
	return a
}

func (c *Changes) saveAnswers(ctx context.Context, tx *db.Tx) error {
	key := func(a *answerRow) answerKey { return keyOfAnswer(&a.DisputeAnswer) }
	return saveRows(ctx, tx, "answers to disputes", answerUpdate, c.answers, key, answerTable, c.newAnswers)
}

// AccountsWithAnswers lists the accounts that have answers to disputes due.
func (s *Store) AccountsWithAnswers(ctx context.Context, now time.Time) ([]string, error) {
	return s.accountsDue(ctx, "due answers", "dispute_answers", "processor", "", now)
}

// DefenseFiles reads the contents of the files of an answer, in their order; else ErrNotFound.
func (s *Store) DefenseFiles(ctx context.Context, a *payment.DisputeAnswer) (defense *payment.Defense, contents [][]byte, err error) {
	var row answerRow
	row.Merchant, row.Dispute = a.Merchant, a.Dispute
	err = s.db.QueryRow(ctx, "SELECT summary, content FROM dispute_answers WHERE merchant_id = $1 AND dispute_id = $2 AND number = $3",
		a.Merchant[:], a.Dispute[:], a.Number).Scan(&row.summary, &row.content)
	if err != nil {
		return nil, nil, s.db.ReadError("defense", err)
	}
	defense, err = openDefense(s.Keys(), &row)
	if err != nil {
		return nil, nil, err
	}
	all, err := s.Keys().Open(answerData(a.Merchant, a.Dispute, "content"), row.content)
	if err != nil {
		return defense, nil, err
	}
	for _, f := range defense.Files {
		if f.Size > len(all) {
			return defense, nil, fmt.Errorf("%w: the files of a defense", db.ErrSealed)
		}
		contents, all = append(contents, all[:f.Size:f.Size]), all[f.Size:]
	}
	return defense, contents, nil
}

// DisputeAnswers lists the answers to a dispute, by number.
func (s *Store) DisputeAnswers(ctx context.Context, merchant, dispute payment.ID) ([]payment.DisputeAnswer, error) {
	rows, err := s.db.Query(ctx, "SELECT "+answerTable.selected+` FROM dispute_answers t
		WHERE t.merchant_id = $1 AND t.dispute_id = $2 ORDER BY t.number`, merchant[:], dispute[:])
	list, err := db.Collect(rows, err, func(r db.Scanner) (payment.DisputeAnswer, error) {
		a, err := scanAnswer(r)
		return a.DisputeAnswer, err
	})
	return list, s.db.ReadError("answers to a dispute", err)
}
