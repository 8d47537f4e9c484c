package wire

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/payment"
)

func TestDecodeDefense(t *testing.T) {
	t.Parallel()
	file := func(kind, content string) string {
		return `{"name":"a","type":"` + kind + `","content":"` + base64.StdEncoding.EncodeToString([]byte(content)) + `"}`
	}
	of := func(files ...string) string { return `{"text":"a","files":[` + strings.Join(files, ",") + `]}` }
	const png, jpeg, pdf = "\x89PNG\r\n\x1a\nx", "\xff\xd8\xffx", "%PDF-1.7"
	for name, tt := range map[string]struct{ body, invalid string }{
		"text":                    {`{"text":"Entregue.\n\tNota 7.\r\n"}`, ""},
		"longest text":            {`{"text":"` + strings.Repeat("é", 4000) + `"}`, ""},
		"too long":                {`{"text":"` + strings.Repeat("é", 4001) + `"}`, "text too_long"},
		"no text":                 {of(), ""},
		"nothing":                 {`{}`, "text required"},
		"empty text":              {`{"text":""}`, "text required"},
		"control characters":      {`{"text":"a\u0000"}`, "text invalid_format"},
		"a card number":           {`{"text":"4111 1111 1111 1111"}`, "text not_allowed"},
		"each type":               {of(file("application/pdf", pdf), file("image/png", png), file("image/jpeg", jpeg)), ""},
		"another content":         {of(file("application/pdf", png)), "files[0].content invalid_format"},
		"a page":                  {of(file("text/html", "<html>")), "files[0].type not_allowed"},
		"a script called a png":   {of(file("image/png", "<script>")), "files[0].content invalid_format"},
		"empty":                   {of(file("image/png", "")), "files[0].content required"},
		"not base64":              {of(`{"name":"a","type":"image/png","content":"iVBOR w0KGgo="}`), "files[0].content invalid_format"},
		"without padding":         {of(`{"name":"a","type":"image/png","content":"iVBORw0KGgo"}`), "files[0].content invalid_format"},
		"line breaks":             {of(`{"name":"a","type":"image/png","content":"iVBORw0K\nGgo="}`), "files[0].content invalid_format"},
		"a name that misleads":    {of(`{"name":"a\u202efdp.exe","type":"image/png","content":"iVBORw0KGgo="}`), "files[0].name invalid_format"},
		"without a name":          {of(`{"type":"image/png","content":"iVBORw0KGgo="}`), "files[0].name required"},
		"five files":              {of(strings.Split(strings.Repeat(file("image/png", png)+" ", 5), " ")[:5]...), ""},
		"six files":               {of(strings.Split(strings.Repeat(file("image/png", png)+" ", 6), " ")[:6]...), "files too_long"},
		"1 MiB":                   {of(file("application/pdf", pdf+strings.Repeat("x", 1<<20-len(pdf)))), ""},
		"more than 1 MiB":         {of(file("application/pdf", pdf+strings.Repeat("x", 1<<19)), file("application/pdf", pdf+strings.Repeat("x", 1<<19))), "files too_long"},
		"unknown members":         {`{"text":"a","files":[{"path":"/etc"}]}`, "files[0].path unknown_field"},
		"an object, not an array": {`{"text":"a","files":{}}`, "files invalid_type"},
	} {
		q, err := testDecoder.Defense([]byte(tt.body))
		if got := invalidOf(err); !strings.Contains(got, tt.invalid) || tt.invalid == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, tt.invalid)
		}
		if err != nil {
			continue
		}
		if d := q.Defense(); len(d.Files) != len(q.Contents) || len(d.Files) > 0 && d.Files[0].Size != len(q.Contents[0]) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func FuzzDecodeDefense(f *testing.F) {
	for _, body := range append(hostileBodies(`{"text":"r1","files":[{"name":"a","type":"application/pdf","content":"JVBERi0x"}]}`), `{"files":[null,1,{}]}`) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := testDecoder.Defense(body)
		if err != nil {
			if status := err.Kind.Status(); status != 400 && status != 422 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		total := 0
		d := q.Defense()
		for i, content := range q.Contents {
			total += len(content)
			if d.Files[i].Size != len(content) || len(content) == 0 {
				t.Fatalf("%q: %+v", body, d)
			}
		}
		if total > defenseBytesMax || d.Text == "" || len(d.Files) > defenseFilesMax {
			t.Fatalf("%q is accepted", body)
		}
	})
}

func TestDisputeView(t *testing.T) {
	t.Parallel()
	d := payment.Dispute{
		Merchant: merchantID, ID: orderID, Payin: merchantID, ExternalID: "not shown", Kind: payment.KindMED, Amount: 100, Taken: 100,
		Status: payment.DisputeOpen, Version: 1, CreatedAt: created, UpdatedAt: created,
	}
	got, err := Dispute(&d, nil)
	wantJSON(t, "open", got, err, `
{"id":"01000000-0000-7000-8000-000000000002","payinId":"01000000-0000-7000-8000-000000000001","kind":"MED","amount":100,"currency":"BRL",
"status":"OPEN","version":1,"createdAt":"2026-02-28T23:30:05.007Z","updatedAt":"2026-02-28T23:30:05.007Z"}`)
	d.PaymentID, d.Reason, d.Taken, d.Returned, d.Blocked, d.RespondBy, d.SubmittedAt, d.ClosedAt = "E1", "fraud", 80, 30, true, created, created, created
	got, err = Dispute(&d, &payment.Defense{Text: "a", Files: []payment.DefenseFile{{Name: "n", Type: "image/png", Size: 7}}})
	wantJSON(t, "everything", got, err, `
{"id":"01000000-0000-7000-8000-000000000002","payinId":"01000000-0000-7000-8000-000000000001","paymentId":"E1","kind":"MED","reason":"fraud","amount":100,"takenAmount":50,"currency":"BRL",
"status":"OPEN","blocked":true,"respondBy":"2026-02-28T23:30:05.007Z","defense":{"text":"a","files":[{"name":"n","type":"image/png","size":7}],"submittedAt":"2026-02-28T23:30:05.007Z"},
"version":1,"createdAt":"2026-02-28T23:30:05.007Z","updatedAt":"2026-02-28T23:30:05.007Z","closedAt":"2026-02-28T23:30:05.007Z"}`)
	got, err = Dispute(&d, nil)
	if err != nil || !strings.Contains(string(got), `"defense":{"files":[],"submittedAt"`) {
		t.Errorf("a defense that cannot be opened: %s, %v", got, err)
	}
}
