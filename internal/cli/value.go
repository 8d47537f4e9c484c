package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// centsValue is an amount as an argument: a whole number of cents.
type centsValue int64

// UnmarshalText implements [encoding.TextUnmarshaler].
func (v *centsValue) UnmarshalText(text []byte) error {
	return wholeNumber((*int64)(v), text, "cents: R$ 0.10 is 10")
}

// basisPoints is a share as an argument: a whole number of hundredths of a percent.
type basisPoints int64

// UnmarshalText implements [encoding.TextUnmarshaler].
func (v *basisPoints) UnmarshalText(text []byte) error {
	return wholeNumber((*int64)(v), text, "basis points: 0.99 % is 99")
}

// sinceValue is a time as an argument: how long ago, such as 2h or 3d, or a date or a time.
type sinceValue struct {
	ago time.Duration
	at  time.Time
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (v *sinceValue) UnmarshalText(text []byte) (err error) {
	given := string(text)
	if days, ok := strings.CutSuffix(given, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 100_000 {
			v.ago = time.Duration(n) * 24 * time.Hour
			return nil
		}
	}
	if v.ago, err = time.ParseDuration(given); err == nil && v.ago > 0 {
		return nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if v.at, err = time.Parse(form, given); err == nil {
			return nil
		}
	}
	return errors.New("write how long ago, such as 90m, 2h or 3d, or a time, such as 2026-03-01 or 2026-03-01T12:00:00Z")
}

// from is the time; zero if none was given.
func (v *sinceValue) from(now time.Time) time.Time {
	if v.ago > 0 {
		return now.Add(-v.ago)
	}
	return v.at
}

// checkStatus returns a status in the form of the list, and refuses one that is not in the list: a list
// of nothing would say that nothing has it. An absent one is "".
func checkStatus[S ~string](given S, list []S) (string, error) {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = string(list[i])
		if strings.EqualFold(texts[i], string(given)) {
			return texts[i], nil
		}
	}
	if given == "" {
		return "", nil
	}
	return "", configError{fmt.Errorf("--status must be one of %s, not %q", strings.Join(texts, ", "), given)}
}

func wholeNumber(v *int64, text []byte, of string) (err error) {
	if *v, err = strconv.ParseInt(string(text), 10, 64); err != nil || *v < 0 {
		return errors.New("write a whole number of " + of)
	}
	return nil
}

// helpOf names the command whose help explains an error of the parser.
func helpOf(err error) string {
	var failed *kong.ParseError
	if errors.As(err, &failed) && failed.Context != nil {
		if selected := failed.Context.Selected(); selected != nil {
			return "porteira " + selected.Path() + " --help explains it"
		}
	}
	return "porteira --help lists the commands"
}

// usage is the text of an error of the parser. It takes a value such as -5 for a flag, and its
// explanation does not help.
func usage(err error) string {
	text := err.Error()
	if flag, rest, ok := strings.Cut(text, ": expected "); ok && strings.Contains(rest, "(short flag)") {
		return flag + ": a value must not begin with -"
	}
	if flag, _, ok := strings.Cut(text, ": expected "); ok && strings.Contains(text, `"EOL"`) {
		return flag + ": write a value behind it"
	}
	return text
}
