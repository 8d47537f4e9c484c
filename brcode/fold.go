package brcode

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fold writes a text in printable ASCII, for names and cities: it removes
// accents, makes typographic quotes and dashes plain, and turns any run of blanks
// into one space. Blanks at the ends and characters without an ASCII equivalent
// are removed. Folding again changes nothing. An empty result means that the text
// needs another spelling.
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

// Cut returns at most limit ASCII characters from the beginning of s, without a
// space at the end: Cut(Fold(name), MaxMerchantName). A letter beyond ASCII is
// never split.
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

// folded reports whether Fold has nothing to do.
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

// asciiText is the characters of ASCII in order: slices of it need no allocation.
const asciiText = " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"

// foldRune returns the ASCII equivalent of r, or nothing. It covers the European
// languages in Latin script.
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
