package httpapi

import "strings"

// forwardedFor are the "for" of each element of the header Forwarded (RFC 7239), in order;
// "" for an element without one. ok is false if a line does not follow the grammar: what it
// says is then not certain.
func forwardedFor(lines []string) (hops []string, ok bool) {
	for _, line := range lines {
		for more := true; more; {
			var hop string
			if hop, line, more, ok = forwardedElement(line); !ok {
				return nil, false
			}
			hops = append(hops, hop)
		}
	}
	return hops, true
}

// forwardedElement reads one element, name=value pairs separated by semicolons, and returns
// what follows its comma.
func forwardedElement(line string) (hop, rest string, more, ok bool) {
	found := false
	for {
		line = strings.TrimLeft(line, " \t")
		name, after := token(line)
		if name == "" || !strings.HasPrefix(after, "=") {
			return "", "", false, false
		}
		value, after, ok := tokenOrQuoted(after[1:])
		if !ok {
			return "", "", false, false
		}
		if strings.EqualFold(name, "for") {
			if found {
				return "", "", false, false
			}
			hop, found = value, true
		}
		line = strings.TrimLeft(after, " \t")
		switch {
		case line == "":
			return hop, "", false, true
		case line[0] == ',':
			return hop, line[1:], true, true
		case line[0] != ';':
			return "", "", false, false
		}
		line = line[1:]
	}
}

// token splits a leading token (RFC 9110) off.
func token(s string) (name, rest string) {
	n := 0
	for n < len(s) && isTokenByte(s[n]) {
		n++
	}
	return s[:n], s[n:]
}

func isTokenByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// tokenOrQuoted splits a leading token or quoted string off. Some proxies do not quote the
// colon of a port, nor the brackets of IPv6.
func tokenOrQuoted(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		n := 0
		for n < len(s) && (isTokenByte(s[n]) || strings.IndexByte("[]:", s[n]) >= 0) {
			n++
		}
		return s[:n], s[n:], n > 0
	}
	var text strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return text.String(), s[i+1:], true
		case c == '\\' && i+1 < len(s):
			i++
			text.WriteByte(s[i])
		default:
			text.WriteByte(c)
		}
	}
	return "", "", false
}
