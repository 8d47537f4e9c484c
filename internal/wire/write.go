package wire

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/jsonwrite"
	"github.com/porteira/porteira/internal/payment"
)

type failureView struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func writeFailure(o *jsonwrite.Object, f *payment.Failure) {
	if f == nil {
		return
	}
	o.Begin("failure")
	o.Text("code", f.Code)
	o.Text("message", f.Message)
	o.End()
}

// writeTime writes a time, unless it is zero.
func writeTime(o *jsonwrite.Object, name string, t time.Time) {
	o.TextIfAny(name, string(TimestampOf(t)))
}

// writeJSON writes what few orders have.
func writeJSON(o *jsonwrite.Object, name string, value any) error {
	text, err := json.Marshal(value, json.Deterministic(true))
	if err == nil {
		o.Raw(name, text)
	}
	return err
}
