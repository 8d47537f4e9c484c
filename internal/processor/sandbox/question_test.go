package sandbox

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

const questionBody = `{"transfer":{"id":"t1","externalId":"abc","amount":100,"pixKey":"maria@example.com"}}`

// signedQuestion is a body as the bank sends it at a time.
func signedQuestion(body string, at time.Time) processor.RawNotice {
	header := http.Header{}
	bankapi.SignNotice(header, testSecret, at, []byte(body))
	return processor.RawNotice{Header: header, Body: []byte(body), At: start}
}

// A question that lacks anything, or has an impossible value, is refused, as is any question
// of a contract that does not ask.
func TestQuestions(t *testing.T) {
	t.Parallel()
	asks := &Processor{secrets: []string{testSecret}, asks: true}
	want := processor.Question{Transfer: "t1", ExternalID: "abc", Amount: 100, Key: "maria@example.com"}
	if q, err := asks.Question(signedQuestion(questionBody, start)); err != nil || q != want {
		t.Errorf("question %+v, %v", q, err)
	}
	silent := &Processor{secrets: []string{testSecret}}
	if q, err := silent.Question(signedQuestion(questionBody, start)); !errors.Is(err, ErrNotice) {
		t.Errorf("a contract that does not ask: %+v, %v", q, err)
	}
	for _, body := range []string{
		"", "{}", "null", `{"transfer":null}`, questionBody[:len(questionBody)-2],
		`{"transfer":{"externalId":"abc","amount":100,"pixKey":"k"}}`,
		`{"transfer":{"id":"t 1","externalId":"abc","amount":100,"pixKey":"k"}}`,
		`{"transfer":{"id":"t1","amount":100,"pixKey":"k"}}`,
		`{"transfer":{"id":"t1","externalId":"a-c","amount":100,"pixKey":"k"}}`,
		`{"transfer":{"id":"t1","externalId":"abc","pixKey":"k"}}`,
		`{"transfer":{"id":"t1","externalId":"abc","amount":-1,"pixKey":"k"}}`,
		`{"transfer":{"id":"t1","externalId":"abc","amount":1.5,"pixKey":"k"}}`,
		`{"transfer":{"id":"t1","externalId":"abc","amount":100}}`,
		`{"transfer":{"id":"t1","externalId":"abc","amount":100,"pixKey":"\u0000"}}`,
		`{"transfer":{"id":"t1","externalId":"abc","amount":100,"pixKey":"k"},"transfer":{"id":"t2","externalId":"abc","amount":100,"pixKey":"k"}}`,
	} {
		if q, err := asks.Question(signedQuestion(body, start)); !errors.Is(err, ErrNotice) || q != (processor.Question{}) {
			t.Errorf("%s is read as %+v, %v", body, q, err)
		}
	}
}

// A reply is what the bank reads.
func TestReplies(t *testing.T) {
	t.Parallel()
	for _, approve := range []bool{true, false} {
		status, contentType, body := (&Processor{}).Reply(approve, "another transfer has it")
		var answer bankapi.Consent
		if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK || contentType != bankapi.JSONType {
			t.Fatalf("%d %s %s: %v", status, contentType, body, err)
		}
		if (answer.Status == bankapi.ConsentApproved) != approve || (answer.Status == bankapi.ConsentRefused) == approve || (answer.Reason == "") != approve {
			t.Errorf("approve %v: %+v", approve, answer)
		}
	}
	if status, _, body := (&Processor{}).Reply(false, "\xff"); status == http.StatusOK || len(body) > 0 {
		t.Errorf("a reason that cannot be written: %d %s", status, body)
	}
}

// FuzzQuestion reads any question: only one that was signed for these bytes and this time
// passes, and all its values can be compared and stored.
func FuzzQuestion(f *testing.F) {
	genuine := signedQuestion(questionBody, start)
	timestamp, signature := genuine.Header.Get(bankapi.HeaderTimestamp), genuine.Header.Get(bankapi.HeaderSignature)
	f.Add(timestamp, signature, questionBody, int64(0))
	f.Add("", "", "{}", int64(301))
	f.Add("01795372200", "00", `{"id":"n1","subject":"transfer","externalId":"abc"}`, int64(-300))
	f.Add("x", "", `{"transfer":{"id":"\u0000","externalId":"a","amount":-1,"pixKey":""}}`, int64(300))
	p := &Processor{secrets: []string{testSecret}, asks: true}
	f.Fuzz(func(t *testing.T, stamp, sign, body string, shift int64) {
		header := http.Header{bankapi.HeaderTimestamp: {stamp}, bankapi.HeaderSignature: {sign}}
		_, err := p.Question(processor.RawNotice{Header: header, Body: []byte(body), At: start})
		if err == nil && (stamp != timestamp || sign != signature || body != questionBody) {
			t.Fatalf("accepted %q %q %q", stamp, sign, body)
		}
		shift %= 1000
		_, unreadable := readQuestion([]byte(body))
		q, err := p.Question(signedQuestion(body, start.Add(time.Duration(shift)*time.Second)))
		if fresh := shift >= -300 && shift <= 300; (err == nil) != (fresh && unreadable == nil) {
			t.Fatalf("signed %d s from now: %v; read: %v", shift, err, unreadable)
		}
		if err != nil {
			if q != (processor.Question{}) {
				t.Fatalf("refused, with %+v", q)
			}
			return
		}
		if !isPlain(q.Transfer) || !bankapi.IsExternalID(q.ExternalID) || q.Amount < 1 || q.Amount > money.Max || q.Key == "" || len(q.Key) > 77 {
			t.Fatalf("%q asks about %+v", body, q)
		}
	})
}
