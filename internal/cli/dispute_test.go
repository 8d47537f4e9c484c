package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// An operator reads from one line whether the processor has the merchant's answer.
func TestDisputeAnswersAreReadable(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 2, 11, 58, 0, time.UTC)
	v := disputeView{Kind: payment.KindMED, Status: payment.DisputeSubmitted, Answers: []answerView{
		{Action: payment.AnswerDefend, Step: payment.StepQueued, At: at},
		{Action: payment.AnswerDefend, Step: payment.StepDone, Outcome: "taken", Evidence: "bank has it\nsince noon", At: at},
	}}
	var out strings.Builder
	v.write(&out)
	for _, want := range []string{"\n  2026-11-27 02:11:58Z  defend: queued\n", "\n  2026-11-27 02:11:58Z  defend: done, taken (bank has it since noon)\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

// The files of a defense replace older ones, and no file outside the folder.
func TestDefenseFiles(t *testing.T) {
	t.Parallel()
	outside, folder := filepath.Join(t.TempDir(), "outside"), t.TempDir()
	if err := errors.Join(os.WriteFile(outside, []byte("kept"), 0o600), os.Symlink(outside, filepath.Join(folder, "defense.txt"))); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		defense := payment.Defense{Text: text, Files: []payment.DefenseFile{{Type: "application/pdf"}}}
		if files, err := writeDefense(folder, &defense, [][]byte{[]byte("%PDF " + text)}); err != nil || len(files) != 2 {
			t.Fatalf("files %v, %v", files, err)
		}
		for path, want := range map[string]string{outside: "kept", filepath.Join(folder, "defense.txt"): text, filepath.Join(folder, "file-1.pdf"): "%PDF " + text} {
			if got, err := os.ReadFile(path); err != nil || string(got) != want {
				t.Errorf("%s has %q, %v, want %q", path, got, err, want)
			}
		}
	}
}
