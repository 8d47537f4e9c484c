package checkout

import "github.com/porteira/porteira/internal/payment"

// Watcher waits at a hub, as a page does.
type Watcher struct{ *watcher }

// Watch registers a page; false if the hub is full.
func (h *Hub) Watch(merchant, order payment.ID) (Watcher, bool) {
	w := h.watch(merchant, order)
	return Watcher{w}, w != nil
}

// Unwatch removes a page.
func (h *Hub) Unwatch(w Watcher) { h.unwatch(w.watcher) }

// Woken reports whether the page was woken since the last call.
func (w Watcher) Woken() bool {
	select {
	case <-w.wake:
		return true
	default:
		return false
	}
}

// WatchersPerOrder is how many pages of one order may wait.
const WatchersPerOrder = watchersPerOrder

// Text is a row of the table of texts.
type Text struct{ Key, Portuguese, English string }

// Texts are all texts of the pages.
func Texts() (list []Text) {
	for _, w := range words {
		list = append(list, Text{w.key, w.portuguese, w.english})
	}
	return list
}

// Template is the source of the pages.
func Template() string { return pageText }

// Language is the tag of the language that an Accept-Language header selects.
func Language(header string) string { return languageOf(header).tag }

// Accents are a colour as shown in both themes, and its contrast to each
// background.
func Accents(text string) (light, dark string, onLight, onDark float64) {
	c, _ := parseColor(text)
	l, d := c.withContrast(lightBackground), c.withContrast(darkBackground)
	return l.String(), d.String(), contrast(l, lightBackground), contrast(d, darkBackground)
}

// Contrast is the contrast of two colours.
func Contrast(a, b string) float64 {
	one, _ := parseColor(a)
	other, _ := parseColor(b)
	return contrast(one, other)
}

// InFlightMax is the largest number of requests in flight.
const InFlightMax = inFlightMax
