package checkout

import "github.com/porteira/porteira/internal/payment"

// Watcher waits at a hub, as a page does.
type Watcher struct{ *watcher }

// Watch begins to wait; false where there is no room.
func (h *Hub) Watch(merchant, order payment.ID) (Watcher, bool) {
	w := h.watch(merchant, order)
	return Watcher{w}, w != nil
}

// Leave ends the wait.
func (h *Hub) Leave(w Watcher) { h.leave(w.watcher) }

// Woken says whether it was woken since it was asked last.
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

// Sentence is a row of the table of words.
type Sentence struct{ Key, Portuguese, English string }

// Sentences are all that pages say.
func Sentences() (list []Sentence) {
	for _, w := range words {
		list = append(list, Sentence{w.key, w.portuguese, w.english})
	}
	return list
}

// Template is the source of the pages.
func Template() string { return pageText }

// Language is the tag of the language that a header asks for.
func Language(header string) string { return languageOf(header).tag }

// Accents are a colour as it is shown on either theme, and the contrast of each
// to its ground.
func Accents(text string) (light, dark string, onLight, onDark float64) {
	c, _ := parseColor(text)
	l, d := c.readable(lightGround), c.readable(darkGround)
	return l.String(), d.String(), contrast(l, lightGround), contrast(d, darkGround)
}

// Contrast is the contrast of two colours.
func Contrast(a, b string) float64 {
	one, _ := parseColor(a)
	other, _ := parseColor(b)
	return contrast(one, other)
}

// BusyMax is how many requests are taken on at once.
const BusyMax = busyMax
