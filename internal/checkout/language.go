package checkout

import (
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// language is one of the two languages of the pages.
type language struct {
	tag   string // BCP 47
	words map[string]string
	day   string // layouts of time.Format
	stamp string
}

var (
	portuguese = &language{tag: "pt-BR", day: "02/01/2006", stamp: "02/01/2006 às 15:04", words: wordsOf(func(i int) string { return words[i].portuguese })}
	english    = &language{tag: "en", day: "02/01/2006", stamp: "02/01/2006, 15:04", words: wordsOf(func(i int) string { return words[i].english })}
)

func wordsOf(text func(i int) string) map[string]string {
	list := make(map[string]string, len(words))
	for i := range words {
		list[words[i].key] = text(i)
	}
	return list
}

// languageOf selects Portuguese, unless the browser prefers English to it (RFC
// 9110, section 12.5.4).
func languageOf(header string) *language {
	weights := map[string]float64{}
	for item := range strings.SplitSeq(header, ",") {
		tag, parameters, _ := strings.Cut(strings.TrimSpace(item), ";")
		weight := 1.0
		if text, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q="); ok {
			q, err := strconv.ParseFloat(text, 64)
			if err != nil || q < 0 || q > 1 {
				continue
			}
			weight = q
		}
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		weights[primary] = max(weights[primary], weight)
	}
	if weights["en"] > weights["pt"] {
		return english
	}
	return portuguese
}

// PrefersEnglish reports that an Accept-Language header prefers English to Portuguese.
func PrefersEnglish(header string) bool { return languageOf(header) == english }

// text is a text of the table, with values in place of {}. An unknown key is
// returned as it is; a test finds it.
func (l *language) text(key string, about ...string) string {
	text, ok := l.words[key]
	if !ok {
		return key
	}
	var b strings.Builder
	for _, a := range about { // a value may contain {}
		before, after, found := strings.Cut(text, "{}")
		if !found {
			break
		}
		b.WriteString(before + a)
		text = after
	}
	return b.String() + text
}

// formatTime is a date and time in São Paulo.
func (l *language) formatTime(t time.Time) string { return payment.InSaoPaulo(t).Format(l.stamp) }

// formatDate writes a day, YYYY-MM-DD, as in Brazil.
func (l *language) formatDate(day string) string {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	return t.Format(l.day)
}
