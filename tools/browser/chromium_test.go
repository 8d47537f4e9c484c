package browser_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/porteira/porteira/internal/checkout/checkouttest"
)

// patience is how long a test waits for a page on a busy machine; it is not asserted.
const patience = 45 * time.Second

// chromium is the browser of all tests, started by the first that needs it.
var chromium struct {
	sync.Mutex

	ctx  context.Context
	stop []func()
}

// tabsAtOnce is how many tests look at pages at a time: they mostly wait.
const tabsAtOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", tabsAtOnce); err != nil {
		panic(err) // package testing defines it
	}
	code := m.Run()
	for _, stop := range slices.Backward(chromium.stop) {
		stop()
	}
	os.Exit(code)
}

// started is the browser.
func started(t testing.TB) context.Context {
	t.Helper()
	path := checkouttest.Tool(t, "chromium", "chromium-browser", "google-chrome")
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx != nil {
		return chromium.ctx
	}
	profile, err := os.MkdirTemp("", "porteira-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.UserDataDir(profile),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	chromium.ctx = ctx //nolint:fatcontext // one browser for all tests
	chromium.stop = []func(){func() { _ = os.RemoveAll(profile) }, stopAllocator, stop}
	return ctx
}

// look is how a payer looks at a page. The zero look is a desktop in light,
// in Portuguese.
type look struct {
	width    int64
	dark     bool
	language string
	noScript bool
}

var (
	desktop = look{width: 1280}
	phone   = look{width: 360}
)

func (l look) inDark() look        { l.dark = true; return l }
func (l look) withoutScript() look { l.noScript = true; return l }

// tab is an open page. Complaints of the browser and dialogs fail the test at its end.
type tab struct {
	testing.TB

	ctx context.Context

	mu         sync.Mutex
	complaints []string
	bytes      int
	expected   bool     // the test expects complaints
	allowed    []string // parts of complaints that are not defects
}

// newTab opens an empty tab without cookies or history.
func newTab(t testing.TB, l look) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(started(t), chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{TB: t, ctx: ctx}
	b.must(chromedp.Do(ctx), "open a tab")
	b.must(chromedp.Listen(ctx, b.heard), "listen")
	t.Cleanup(func() {
		if t.Failed() {
			b.shot(strings.NewReplacer("/", "-", " ", "_").Replace(t.Name()) + "-failed")
		}
		if complaints := b.heardSoFar(); len(complaints) > 0 && !b.expected {
			t.Errorf("the browser complained: %s", strings.Join(complaints, "\n"))
		}
	})
	b.appear(l)
	return b
}

// appear applies a look to pages opened from now on.
func (b *tab) appear(l look) {
	b.Helper()
	if l.width == 0 {
		l.width = desktop.width
	}
	if l.language == "" {
		l.language = "pt-BR"
	}
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: l.width, Height: 800, DeviceScaleFactor: 1, Mobile: l.width < 500,
	})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.noScript})
	call(b, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": l.language}})
}

// heard is called for each event, and must not wait for the browser.
func (b *tab) heard(event any) {
	complaint := ""
	switch event := event.(type) {
	case *log.EventEntryAdded:
		if event.Entry.Level == log.EntryLevelError || event.Entry.Level == log.EntryLevelWarning {
			complaint = event.Entry.Text + " " + event.Entry.URL
		}
	case *runtime.EventExceptionThrown:
		complaint = event.ExceptionDetails.Text
		if event.ExceptionDetails.Exception != nil {
			complaint += " " + event.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if event.Type == runtime.ConsoleAPICalledTypeError || event.Type == runtime.ConsoleAPICalledTypeWarning {
			complaint = "console." + string(event.Type)
		}
	case *page.EventJavascriptDialogOpening:
		complaint = "dialog: " + event.Message
		go func() {
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *network.EventLoadingFinished:
		b.mu.Lock()
		b.bytes += int(event.EncodedDataLength)
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if complaint != "" && !slices.ContainsFunc(b.allowed, func(part string) bool { return strings.Contains(complaint, part) }) {
		b.complaints = append(b.complaints, complaint)
	}
}

// allows ignores a complaint of the browser.
func (b *tab) allows(complaint string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, complaint)
}

// heardSoFar are the complaints.
func (b *tab) heardSoFar() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.complaints)
}

// hears waits for a complaint, which may come shortly after the page.
func (b *tab) hears(text string) {
	b.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(strings.Join(b.heardSoFar(), "\n"), text); {
		if time.Now().After(deadline) {
			b.Fatalf("no complaint with %q, only %q", text, b.heardSoFar())
		}
		eval[bool](b, "new Promise(done => requestAnimationFrame(() => done(true)))")
	}
}

// received is how many bytes came over the wire, headers included.
func (b *tab) received() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

func (b *tab) must(err error, what string, arguments ...any) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", fmt.Sprintf(what, arguments...), err)
	}
}
