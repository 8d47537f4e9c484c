package browser_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// chunks joins texts with spaces to as few as fit so many characters each; one
// that does not fit alone is left out.
func chunks(texts []string, characters int) []string {
	var out []string
	left := 0
	for _, text := range texts {
		n := utf8.RuneCountInString(text) + 1
		if n > characters {
			continue
		}
		if left < n {
			out, left = append(out, text), characters-n
			continue
		}
		out[len(out)-1] += " " + text
		left -= n
	}
	return out
}

// allowed leaves out control characters, which no field accepts.
func allowed(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool {
		return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
	})
}

// itemsShown is how many items a page shows.
const itemsShown = 20

// items are sold under these titles.
func items(titles []string) []fields {
	var list []fields
	for _, title := range titles {
		list = append(list, fields{"title": title, "quantity": 1, "unitPrice": 1, "tangible": true})
	}
	return list
}

// hostileFields is an order with a payload in every other field.
func hostileFields(text string) fields {
	short := chunks([]string{text}, 128)
	more := fields{
		"customer": fields{"name": text, "document": "52998224725", "address": fields{
			"street": text, "number": "7", "neighborhood": text, "complement": text, "city": text, "state": "PA", "zipCode": "66010000",
		}},
		"metadata": fields{"a": text},
	}
	if len(short) == 1 {
		more["description"] = text
		more["referenceId"] = short[0]
	}
	return more
}

// In a browser, orders of nothing but payloads run nothing: no dialog opens, no
// policy is violated, and there are no other elements than those of a harmless order.
func testPayloadsRunNothing(t *testing.T, s *shop) {
	all := allowed(payloads(t))
	titles, short := chunks(all, 255), chunks(all, 140)
	s = s.merchant(t, all[0]+all[1])
	for n, state := range states {
		t.Run(state.name, func(t *testing.T) {
			t.Parallel()
			b := newTab(t, desktop)
			for i, shown := range slices.Collect(slices.Chunk(titles, itemsShown)) {
				if state.status != "PENDING" && i != n%((len(titles)+itemsShown-1)/itemsShown) {
					continue // final states show less: the states share the payloads
				}
				b.open(state.order(t, s, hostile(short[(n+i)%len(short)], shown)).page)
				b.shows(state.status)
				if state.status == "PENDING" {
					b.spells(shown)
				}
				b.clean()
			}
		})
	}
}

// spells fails the test unless the page shows each text as it is.
func (b *tab) spells(texts []string) {
	b.Helper()
	list, err := json.Marshal(texts)
	b.must(err, "a list of texts")
	if missing := eval[[]string](b, string(list)+".filter(text => !document.body.textContent.includes(text))"); len(missing) > 0 {
		b.Errorf("the page does not show %q", missing)
	}
}

// clean fails the test for anything that payloads injected into the page.
func (b *tab) clean() {
	b.Helper()
	if found := eval[[]string](b, `[...document.querySelectorAll("head script, main script, iframe, object, embed, base, frame, applet, img:not([src^='/']), [style], math, video, audio, [onerror], [onload], [onclick], [onmouseover]")].map(e => e.outerHTML)`); len(found) > 0 {
		b.Errorf("in the page: %q", found)
	}
}

// Payloads in each field: the page has the same elements and attributes as that
// of a harmless order, so that nothing was injected. As the title of an item of
// its own each is on the page of every method; in other fields they take turns.
func testPayloadsInjectNothing(t *testing.T, s *shop) {
	all := allowed(payloads(t))
	short := chunks(all, 140)
	s = s.own(t)
	methods := []string{"PIX", "BOLETO", "CREDIT_CARD"}
	for turn, method := range methods {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			want := skeleton(t, s.order(t, method, hostile("harmless", slices.Repeat([]string{"harmless"}, itemsShown))).page)
			titled := 0
			for i := turn; i < len(short); i += len(methods) {
				titles := slices.Concat(all, all)[titled%len(all):][:itemsShown]
				titled += itemsShown
				if got := skeleton(t, s.order(t, method, hostile(short[i], titles)).page); got != want {
					t.Errorf("%q, %q: the page is\n%s\ninstead of\n%s", short[i], titles, got, want)
				}
			}
			if titled < len(all) {
				t.Errorf("%d of %d payloads were titles", titled, len(all))
			}
		})
	}
}

// hostile is an order with a text in every field, and items of these titles.
func hostile(text string, titles []string) fields {
	more := hostileFields(text)
	delete(more, "referenceId")
	if _, has := more["description"]; !has {
		more["description"] = "too long for one"
	}
	more["items"] = items(titles)
	return more
}

// A merchant's own name is as hostile as the texts of its orders. Merchants take a while
// to create, so only every third text is used.
func testPayloadsAsMerchantsInjectNothing(t *testing.T, s *shop) {
	s = s.own(t)
	want := skeleton(t, s.order(t, "BOLETO", nil).page)
	for i, text := range chunks(allowed(payloads(t)), 255) {
		if i%3 > 0 {
			continue
		}
		if got := skeleton(t, s.merchant(t, text).order(t, "BOLETO", nil).page); got != want {
			t.Errorf("%q: the page is\n%s\ninstead of\n%s", text, got, want)
		}
	}
}

// skeleton is a page's elements and the names of their attributes.
func skeleton(t testing.TB, address string) string {
	t.Helper()
	response, body := fetch(t, http.MethodGet, address)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", address, response.Status)
	}
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for node := range root.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		out.WriteString(node.Data)
		for _, attribute := range node.Attr {
			out.WriteString(" " + attribute.Key)
		}
		out.WriteString("\n")
	}
	return out.String()
}
