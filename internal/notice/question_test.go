package notice_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
)

// asker is a bank that asks for our consent: a question is a transfer's id.
type asker struct{ bank }

func (asker) Question(n processor.RawNotice) (processor.Question, error) {
	if n.Header.Get("Signature") != "word" || n.At.IsZero() {
		return processor.Question{}, errors.New("the signature is not the word")
	}
	return processor.Question{Transfer: string(n.Body)}, nil
}

func (asker) Reply(approve bool, why string) (status int, contentType string, body []byte) {
	if approve {
		return http.StatusOK, "text/yes", []byte("yes")
	}
	return http.StatusAccepted, "text/no", []byte(why)
}

// decider consents to one transfer.
type decider struct{ err error }

func (j decider) AnswerQuestion(_ context.Context, account string, q processor.Question) (string, error) {
	if account == "asker" && q.Transfer == "first" {
		return "", j.err
	}
	return "because", j.err
}

// A question at the account's path is answered in the processor's words. One whose answer is
// not durable, or that is not authentic, gets no answer that approves; and it is no notice.
func TestQuestions(t *testing.T) {
	t.Parallel()
	signed := []string{"Signature", "word", "Notice-Id", "n1"}
	for name, row := range map[string]struct {
		path, body string
		headers    []string
		err        error
		status     int
		answer     string // its beginning
	}{
		"consent":         {"/inbound/asker/asker/consent", "first", signed, nil, 200, "yes"},
		"no consent":      {"/inbound/asker/asker/consent", "second", signed, nil, 202, "because"},
		"not authentic":   {"/inbound/asker/asker/consent", "first", nil, nil, 401, "{"},
		"another token":   {"/inbound/asker/other/consent", "first", signed, nil, 404, "{"},
		"it does not ask": {"/inbound/bank/bank/consent", "first", signed, nil, 404, "{"},
		"unknown account": {"/inbound/nobody/nobody/consent", "first", signed, nil, 404, "{"},
		"no database":     {"/inbound/asker/asker/consent", "first", signed, problem.New(problem.Unavailable, "no database"), 503, "{"},
		"a bug":           {"/inbound/asker/asker/consent", "first", signed, errors.New("bug"), 500, "{"},
		"too large":       {"/inbound/asker/asker/consent", strings.Repeat("x", 256<<10+1), signed, nil, 413, "{"},
	} {
		j := &journal{}
		w := post(newQuestionHandler(j, decider{row.err}), row.path, row.body, row.headers...)
		if w.Code != row.status || !strings.HasPrefix(w.Body.String(), row.answer) || len(j.lines) > 0 {
			t.Errorf("%s: answered %d %q with %d recorded, want %d %q", name, w.Code, w.Body, len(j.lines), row.status, row.answer)
		}
	}
	j := &journal{}
	if w := post(newQuestionHandler(j, decider{}), "/inbound/asker/asker/other", "first", signed...); w.Code != 200 || len(j.lines) != 1 {
		t.Errorf("a notice at another path: answered %d with %d recorded", w.Code, len(j.lines))
	}
}

func newQuestionHandler(j *journal, q notice.Questions) http.Handler {
	w, _ := env.Virtual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 1)
	h := notice.NewHandler(notice.HandlerOptions{
		Recorder: j, Questions: q, Clock: w.Clock, Processors: processor.Registry{"bank": bank{}, "asker": asker{}},
	})
	mux := http.NewServeMux()
	mux.Handle("POST /inbound/{account}/{token}", h)
	mux.Handle("POST /inbound/{account}/{token}/{rest...}", h)
	return mux
}
