package browser_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/porteira/porteira/internal/app/apptest"
)

// call runs a command of the browser's protocol on a tab.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	b.must(err, "the browser's protocol")
	return result
}

// run runs an action on a tab.
func run[T any](b *tab, action chromedp.Action[T], what string, arguments ...any) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	b.must(err, what, arguments...)
	return result
}

// shot saves a picture of the page for people, if PORTEIRA_SHOTS names a folder.
func (b *tab) shot(name string) {
	b.Helper()
	folder := os.Getenv("PORTEIRA_SHOTS")
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100)); err == nil {
		_ = os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600)
	}
}

// open goes to an address and waits until it has loaded.
func (b *tab) open(url string) {
	b.Helper()
	run(b, chromedp.Navigate(url), "open the page")
}

// eval is the value of an expression in the page.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	return run(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise), "evaluate %.80s", expression)
}

// until waits until an expression is true, even if the page loads another one meanwhile or
// may run no script.
func (b *tab) until(expression string) {
	b.Helper()
	apptest.Until(b, func() string {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		defer cancel()
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		switch {
		case err != nil:
			return expression + ": " + err.Error()
		case !is:
			return expression
		}
		return ""
	})
}

// reads waits until the page shows a text.
func (b *tab) reads(text string) {
	b.Helper()
	b.until("document.body && document.body.innerText.includes(" + quoted(text) + ")")
}

// words is the visible text of the page.
func (b *tab) words() string {
	b.Helper()
	return eval[string](b, "document.body.innerText")
}

// holds reports whether anything in the page matches a selector.
func (b *tab) holds(css string) bool {
	b.Helper()
	return eval[bool](b, "document.querySelector("+quoted(css)+") !== null")
}

// click clicks the element of a selector, with the mouse.
func (b *tab) click(css string) {
	b.Helper()
	run(b, chromedp.Click(chromedp.CSS(css)), "click %s", css)
}

// enter types a text into a field.
func (b *tab) enter(css, text string) {
	b.Helper()
	run(b, chromedp.SendKeys(chromedp.CSS(css), text), "type into %s", css)
}

// press types keys at the focus.
func (b *tab) press(keys string) {
	b.Helper()
	run(b, chromedp.KeyEvent(keys), "press %q", keys)
}

// picture is the complete page as PNG; scale is pixels per CSS pixel.
func (b *tab) picture() []byte {
	b.Helper()
	full := true
	return call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &full}).Data
}

// paper is the page as printed on A4.
func (b *tab) paper() []byte {
	b.Helper()
	return run(b, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4), chromedp.PDFPreferCSSPageSize()), "print")
}

// quoted is a text as JavaScript writes it.
func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always can
	}
	return string(out)
}
