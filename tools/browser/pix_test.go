package browser_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/porteira/porteira/internal/checkout/checkouttest"
)

func testPIXIsPaidWhileLooking(t *testing.T, s *shop) {
	o := s.own(t).order(t, "PIX", nil)
	code := o.created.Get("pix.qrcode")
	b := o.view(t, desktop)
	b.shows("PENDING")
	words := b.words()
	for _, text := range []string{"Padaria Pão & Mel", "R$ 1.234,56", "Bolo de aniversário", "12"} {
		if !strings.Contains(strings.ReplaceAll(words, "\u00a0", " "), text) {
			t.Errorf("no %q in %s", text, words)
		}
	}
	for _, secret := range []string{"Aparecida", "52998224725", "529.982", "maria@example.com", "Rua das Flores", o.id} {
		if html := eval[string](b, "document.documentElement.outerHTML"); strings.Contains(html, secret) {
			t.Errorf("%q is in the page", secret)
		}
	}
	finds(t, "light", b.reading(), "QR-Code", code)
	if !b.holds(countdown) {
		t.Error("nothing counts down")
	}
	b.shot("pix-desktop")
	b.marked()
	o.happens(t, "pay")
	b.shows("PAID")
	b.stays()
	b.reads(o.becomes(t, "PAID").Get("endToEndId"))
	if b.holds(qrCode) {
		t.Error("a paid order still shows how to pay")
	}
	b.shot("pix-paid")
	if text := checkouttest.Words(t, b.paper()); !strings.Contains(text, o.now(t).Get("endToEndId")) {
		t.Errorf("the printed receipt is without its endToEndId: %s", text)
	}
	checkouttest.Picture(t, b.paper(), "50") // one page
}

// Each event is sent once: if the page cannot be loaded then, it is requested again.
func testPIXEventIsNotLost(t *testing.T, s *shop) {
	o := s.own(t).order(t, "PIX", nil)
	b := o.view(t, desktop)
	b.shows("PENDING")
	b.marked()
	eval[bool](b, `(function () { var real = fetch; fetch = function () { fetch = real; return Promise.resolve(new Response('', { status: 503 })); }; return true; })()`)
	o.happens(t, "pay")
	b.shows("PAID")
	b.stays()
}

func TestPIXExpiresWhileLooking(t *testing.T) {
	t.Parallel()
	o := newShop(t).order(t, "PIX", fields{"expiresIn": 600})
	b := o.view(t, phone)
	b.shows("PENDING")
	b.marked()
	o.shop.gateway.In(t).Must(204, "POST", "/sandbox/clock", `{"advance": 601}`)
	b.shows("EXPIRED")
	b.stays()
	if b.holds(qrCode) || b.holds(copyPix) {
		t.Error("an expired order still shows how to pay")
	}
	b.shot("pix-expired")
}

func testPIXInDark(t *testing.T, s *shop) {
	o := s.own(t).order(t, "PIX", nil)
	for _, l := range []look{phone.inDark(), {width: 768, dark: true}, desktop.inDark()} {
		b := o.view(t, l)
		finds(t, "dark", b.reading(), "QR-Code", o.created.Get("pix.qrcode"))
	}
}

func testPIXOnAPhone(t *testing.T, s *shop) {
	o := s.own(t).order(t, "PIX", nil)
	b := o.view(t, phone)
	if b.top(copyPix) > b.top(qrCode) {
		t.Error("the QR code comes before the button that copies")
	}
	if bottom := eval[float64](b, `document.querySelector("button[data-copy=code]").getBoundingClientRect().bottom`); bottom > 800 {
		t.Errorf("the button that copies ends at %.0f pixels, below the first screen", bottom)
	}
	finds(t, "phone", b.reading(), "QR-Code", o.created.Get("pix.qrcode"))
	b.shot("pix-phone")
}

func testPIXIsCopied(t *testing.T, s *shop) {
	o := s.own(t).order(t, "PIX", nil)
	for name, copies := range map[string]func(b *tab){
		"with the mouse": func(b *tab) { b.click(copyPix) },
		"with the keyboard": func(b *tab) {
			b.tabTo(copyPix)
			b.press(kb.Enter)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := o.view(t, phone)
			if got := b.copied("copiado", func() { copies(b) }); got != o.created.Get("pix.qrcode") {
				t.Errorf("copied %q", got)
			}
		})
	}
}

// clipboard is the browser's only one.
var clipboard sync.Mutex

// copied runs act, which makes the page copy, and returns the copied text once the page
// shows that it has.
func (b *tab) copied(says string, act func()) string {
	b.Helper()
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		_, err := chromedp.CallBrowser(b.ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name, AllowWithoutSanitization: true},
			Setting:    browser.PermissionSettingGranted, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
		})
		b.must(err, "let the page copy")
	}
	call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	clipboard.Lock()
	defer clipboard.Unlock()
	act()
	b.until("/" + says + "/i.test(document.body.innerText)")
	return eval[string](b, "navigator.clipboard.readText()")
}

// tabTo presses the tab key until the focus is on what a selector finds, and
// fails if it does not get there or the focus cannot be seen.
func (b *tab) tabTo(css string) {
	b.Helper()
	for range 60 {
		b.press(kb.Tab)
		if eval[bool](b, "document.activeElement.matches("+quoted(css)+")") {
			if eval[bool](b, `(s => s.outlineStyle === "none" && s.boxShadow === "none")(getComputedStyle(document.activeElement))`) {
				b.Errorf("the focus on %s cannot be seen", css)
			}
			return
		}
	}
	b.Fatalf("the tab key does not reach %s", css)
}

func testPIXWithoutScript(t *testing.T, s *shop) {
	o := s.own(t).order(t, "PIX", nil)
	b := o.view(t, phone.withoutScript())
	finds(t, "without script", b.reading(), "QR-Code", o.created.Get("pix.qrcode"))
	if got := b.value(pixText); got != o.created.Get("pix.qrcode") {
		t.Errorf("the code to copy is %q", got)
	}
	if !b.looksAgain() {
		t.Error("the page does not reload by itself")
	}
	o.happens(t, "pay")
	b.open(o.page)
	b.shows("PAID")
	b.shot("pix-paid-without-script")
}

// looksAgain reports whether the page reloads regularly without a script.
func (b *tab) looksAgain() bool {
	b.Helper()
	return b.holds(`meta[http-equiv="refresh"]`)
}

func testPIXInEnglish(t *testing.T, s *shop) {
	o := s.own(t).order(t, "PIX", nil)
	b := o.view(t, look{width: 360, language: "en-US,en;q=0.9"})
	if got := eval[string](b, "document.documentElement.lang"); !strings.HasPrefix(got, "en") {
		t.Errorf("the page is in %q", got)
	}
	if got := b.copied("copied", func() { b.click(copyPix) }); got != o.created.Get("pix.qrcode") {
		t.Errorf("copied %q", got)
	}
}
