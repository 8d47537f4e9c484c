package wire

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// Limits of a defense.
const (
	defenseTextMax  = 4000 // characters
	defenseFilesMax = 5
	defenseBytesMax = 1 << 20 // of all files, decoded
)

// DefenseRequest is the body of POST /disputes/{id}/defense. Its members have the right types;
// Check validates their values, and decodes the files.
type DefenseRequest struct {
	Text  Field[string]
	Files Field[[]FileRequest]

	// Contents are the decoded files, in their order.
	Contents    [][]byte
	Fingerprint Fingerprint
}

// FileRequest is a document of a defense. Content is base64.
type FileRequest struct {
	Name    Field[string]
	Type    Field[string]
	Content Field[string]
}

// Defense decodes and validates the body of POST /disputes/{id}/defense.
func (d *Decoder) Defense(body []byte) (*DefenseRequest, *problem.Error) {
	q := &DefenseRequest{}
	return q, d.decode(body, q, &q.Fingerprint)
}

func (r *DefenseRequest) read(body value) {
	for v := range body.children() {
		switch v.name() {
		case "text":
			r.Text = v.text()
		case "files":
			if v.isArray() {
				r.Files = Some(readFiles(v))
			}
		default:
			v.failUnknown()
		}
	}
}

// readFiles reads one file more than is allowed, so that Check sees it.
func readFiles(list value) []FileRequest {
	var files []FileRequest
	for v := range list.children() {
		var f FileRequest
		if v.isObject() {
			for member := range v.children() {
				switch member.name() {
				case "name":
					f.Name = member.text()
				case "type":
					f.Type = member.text()
				case "content":
					f.Content = member.text()
				default:
					member.failUnknown()
				}
			}
		}
		if len(files) <= defenseFilesMax {
			files = append(files, f)
		}
	}
	return files
}

// Check adds every invalid field of r to errs.
func (r *DefenseRequest) Check(_ Rules, errs *Errors) {
	if p := At("", "text"); errs.requireText(p, r.Text) {
		errs.prose(p, r.Text.V, defenseTextMax)
	}
	if len(r.Files.V) > defenseFilesMax {
		errs.Add(At("", "files"), problem.CodeTooLong, "must have at most "+strconv.Itoa(defenseFilesMax)+" files")
		return
	}
	total := 0
	for i := range r.Files.V {
		content := r.Files.V[i].check("files["+strconv.Itoa(i)+"]", errs)
		total += len(content)
		r.Contents = append(r.Contents, content)
	}
	if total > defenseBytesMax {
		errs.Add(At("", "files"), problem.CodeTooLong, "must be at most 1 MiB in all")
	}
}

// Defense is the defense without the contents of its files. r must be valid.
func (r *DefenseRequest) Defense() payment.Defense {
	d := payment.Defense{Text: r.Text.V}
	for i := range r.Files.V {
		f := &r.Files.V[i]
		d.Files = append(d.Files, payment.DefenseFile{Name: f.Name.V, Type: f.Type.V, Size: len(r.Contents[i])})
	}
	return d
}

// fileTypes are the types of files, each with what its contents begin with.
var fileTypes = []struct{ name, begins string }{
	{"application/pdf", "%PDF-"}, {"image/png", "\x89PNG\r\n\x1a\n"}, {"image/jpeg", "\xff\xd8\xff"},
}

// check returns the decoded content; nil if it is invalid.
func (f *FileRequest) check(parent string, errs *Errors) []byte {
	errs.requireShown(At(parent, "name"), f.Name, textMax)
	i := slices.IndexFunc(fileTypes, func(t struct{ name, begins string }) bool { return t.name == f.Type.V })
	if p := At(parent, "type"); errs.requireText(p, f.Type) && i < 0 {
		errs.Add(p, problem.CodeNotAllowed, "must be application/pdf, image/png or image/jpeg")
	}
	p := At(parent, "content")
	if !errs.require(p, f.Content.Set) {
		return nil
	}
	content, err := base64.StdEncoding.Strict().DecodeString(f.Content.V)
	switch {
	case err != nil || strings.ContainsAny(f.Content.V, "\r\n"): // Go skips line breaks
		errs.Add(p, problem.CodeInvalidFormat, "must be base64, with padding and without line breaks")
	case len(content) == 0:
		errs.Add(p, problem.CodeTooShort, "must not be empty")
	case i >= 0 && !bytes.HasPrefix(content, []byte(fileTypes[i].begins)):
		errs.Add(p, problem.CodeInvalidFormat, "is not the content of a file of this type")
	default:
		return content
	}
	return nil
}

// prose is text that may have line breaks and tabs.
func (e *Errors) prose(p Path, value string, max int) {
	switch {
	case value == "":
		e.Add(p, problem.CodeTooShort, "must not be empty")
	case len(value) > max && utf8.RuneCountInString(value) > max:
		e.Add(p, problem.CodeTooLong, "must have at most "+strconv.Itoa(max)+" characters")
	case slices.ContainsFunc([]rune(value), func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }):
		e.Add(p, problem.CodeInvalidFormat, "must not contain control characters, except line breaks and tabs")
	case ContainsCardNumber(value):
		e.Add(p, problem.CodeNotAllowed, CardDetail)
	}
}

type disputeView struct {
	ID          payment.ID            `json:"id"`
	PayinID     payment.ID            `json:"payinId"`
	PaymentID   string                `json:"paymentId,omitempty"`
	Kind        payment.DisputeKind   `json:"kind"`
	Reason      string                `json:"reason,omitempty"`
	Amount      money.Cents           `json:"amount"`
	TakenAmount *money.Cents          `json:"takenAmount,omitempty"`
	Currency    string                `json:"currency"`
	Status      payment.DisputeStatus `json:"status"`
	Blocked     bool                  `json:"blocked,omitzero"`
	RespondBy   Timestamp             `json:"respondBy,omitempty"`
	Defense     *defenseView          `json:"defense,omitempty"`
	Version     int64                 `json:"version"`
	CreatedAt   Timestamp             `json:"createdAt"`
	UpdatedAt   Timestamp             `json:"updatedAt"`
	ClosedAt    Timestamp             `json:"closedAt,omitempty"`
}

type defenseView struct {
	Text        string            `json:"text,omitempty"`
	Files       []defenseFileView `json:"files"`
	SubmittedAt Timestamp         `json:"submittedAt"`
}

type defenseFileView struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Size int    `json:"size"`
}

// Dispute is a dispute as the API and its events show it. takenAmount is shown only if it is
// not the amount. defense is nil if there is none, or if it cannot be read.
func Dispute(d *payment.Dispute, defense *payment.Defense) ([]byte, error) {
	v := disputeView{
		ID: d.ID, PayinID: d.Payin, PaymentID: d.PaymentID, Kind: d.Kind, Reason: d.Reason, Amount: d.Amount, Currency: payment.Currency,
		Status: d.Status, Blocked: d.Blocked, RespondBy: TimestampOf(d.RespondBy), Version: d.Version,
		CreatedAt: TimestampOf(d.CreatedAt), UpdatedAt: TimestampOf(d.UpdatedAt), ClosedAt: TimestampOf(d.ClosedAt),
	}
	if taken := d.Taken - d.Returned; taken != d.Amount {
		v.TakenAmount = &taken
	}
	if !d.SubmittedAt.IsZero() {
		v.Defense = &defenseView{SubmittedAt: TimestampOf(d.SubmittedAt), Files: []defenseFileView{}}
		if defense != nil {
			v.Defense.Text = defense.Text
			for _, f := range defense.Files {
				v.Defense.Files = append(v.Defense.Files, defenseFileView(f))
			}
		}
	}
	return json.Marshal(&v)
}
