package browser_test

import "testing"

// testHomePage presses the button of a sandbox's first page, and pays.
func testHomePage(t *testing.T, s *shop) {
	for _, l := range []look{desktop, phone, phone.inDark()} {
		b := newTab(t, l)
		b.open(s.Base + "/")
		b.accessible("home page")
		b.shot("home")
		b.click("main button")
		b.until("document.querySelector('[data-copy]') !== null")
		b.click("form[action$='/sandbox/pay'] button")
		b.until("document.body.innerText.includes('12,90') && document.querySelector('[data-copy]') === null")
	}
}
