package brcode

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fold writes a text in printable ASCII, for names and cities: letters lose
// their accents, typographic quotes and dashes become plain, blanks of any sort
// become one space, and those at the ends go, as does what has no likeness in
// ASCII. Folding again changes nothing. An empty result says that the text needs
// another spelling.
func Fold(s string) string {
	if folded(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	blank := false
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			blank = true
			continue
		}
		text := foldRune(r)
		if text == "" {
			continue
		}
		if blank && b.Len() > 0 {
			b.WriteByte(' ')
		}
		blank = false
		b.WriteString(text)
	}
	return b.String()
}

// Cut returns the beginning of s that is at most limit characters of ASCII
// long, without a space at its end: Cut(Fold(name), MaxMerchantName). A letter
// beyond ASCII is kept whole or not at all.
func Cut(s string, limit int) string {
	if limit < 0 {
		limit = 0
	}
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	return strings.TrimRight(s, " ")
}

// folded tells whether Fold has nothing to do.
func folded(s string) bool {
	if badCharacter(s) >= 0 {
		return false
	}
	for i := range len(s) {
		if s[i] == ' ' && (i == 0 || i == len(s)-1 || s[i+1] == ' ') {
			return false
		}
	}
	return true
}

// asciiText holds the characters of ASCII in order, to slice one out without
// allocating.
const asciiText = " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"

// foldRune returns the likeness of r in ASCII, or nothing. It knows the letters
// of the languages of Europe that are written in Latin script.
func foldRune(r rune) string {
	if r >= ' ' && r <= '~' {
		return asciiText[r-' ' : r-' '+1]
	}
	if text := foldCapital(r); text != "" {
		return text
	}
	if text := foldCapital(unicode.ToUpper(r)); text != "" {
		return strings.ToLower(text)
	}
	switch r {
	case 'ß':
		return "ss"
	case 'ª':
		return "a"
	case 'º', '°':
		return "o"
	case '‘', '’', '‚', '´', 'ʼ':
		return "'"
	case '“', '”', '„', '«', '»':
		return `"`
	case '‐', '‑', '‒', '–', '—', '−':
		return "-"
	case '…':
		return "..."
	default:
		return ""
	}
}

func foldCapital(r rune) string {
	switch r {
	case 'À', 'Á', 'Â', 'Ã', 'Ä', 'Å', 'Ā', 'Ă', 'Ą':
		return "A"
	case 'Æ':
		return "AE"
	case 'Ç', 'Ć', 'Ĉ', 'Ċ', 'Č':
		return "C"
	case 'Ð', 'Ď', 'Đ':
		return "D"
	case 'È', 'É', 'Ê', 'Ë', 'Ẽ', 'Ē', 'Ĕ', 'Ė', 'Ę', 'Ě':
		return "E"
	case 'Ĝ', 'Ğ', 'Ġ', 'Ģ':
		return "G"
	case 'Ì', 'Í', 'Î', 'Ï', 'Ĩ', 'Ī', 'Į', 'İ':
		return "I"
	case 'Ł', 'Ľ', 'Ĺ', 'Ļ':
		return "L"
	case 'Ñ', 'Ń', 'Ņ', 'Ň':
		return "N"
	case 'Ò', 'Ó', 'Ô', 'Õ', 'Ö', 'Ø', 'Ō', 'Ŏ', 'Ő':
		return "O"
	case 'Œ':
		return "OE"
	case 'Ŕ', 'Ř':
		return "R"
	case 'Ś', 'Ŝ', 'Ş', 'Š', 'Ș':
		return "S"
	case 'Ţ', 'Ť', 'Ț':
		return "T"
	case 'Þ':
		return "TH"
	case 'Ù', 'Ú', 'Û', 'Ü', 'Ũ', 'Ū', 'Ŭ', 'Ů', 'Ű', 'Ų':
		return "U"
	case 'Ŵ':
		return "W"
	case 'Ý', 'Ŷ', 'Ÿ':
		return "Y"
	case 'Ź', 'Ż', 'Ž':
		return "Z"
	default:
		return ""
	}
}
