package notice

import (
	"context"
	"net/http"

	"github.com/porteira/porteira/internal/processor"
)

// consentPath is the path that a processor that asks for our consent appends to the account's.
const consentPath = "consent"

// Questions answers processors that ask before they execute a transfer.
// [outgoing.Executor] implements it.
type Questions interface {
	// AnswerQuestion returns why we do not consent, "" if we do. After an error the processor gets
	// no answer.
	AnswerQuestion(ctx context.Context, account string, q processor.Question) (why string, err error)
}

// answer answers an authentic question, after the commit of a consent.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("account")
	authorizer, ok := h.processors.Find(name).(processor.Authorizer)
	if !ok || !h.processors.Authentic(name, r.PathValue("token")) {
		return errNoAccount
	}
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	q, err := authorizer.Question(processor.RawNotice{Header: r.Header, Body: body, At: h.clock.Now()})
	if err != nil {
		return unverified(err)
	}
	release, err := h.slot()
	if err != nil {
		return err
	}
	defer release()
	why := q.Refusal
	if why != "" {
		h.log.WarnContext(r.Context(), "question of a processor refused", "processor", name, "reason", why)
	} else if why, err = h.questions.AnswerQuestion(r.Context(), name, q); err != nil {
		return err
	}
	status, contentType, reply := authorizer.Reply(why == "", why)
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(reply)
	return nil
}
