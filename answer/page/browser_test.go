package page_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	devtools "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"ovs-offline/test/daemons/ovs"
)

// programs are the browsers that a test can drive, as scripts/install-deps has them.
var programs = []string{"chromium-headless-shell", "chromium", "google-chrome",
	"/usr/lib64/chromium-browser/headless_shell"}

// browserProgram returns the path of a browser. It skips the test where none is installed.
func browserProgram(t *testing.T) string {
	t.Helper()
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed: scripts/install-deps --test installs one")
	return ""
}

// tab is a page in a browser. Whatever the page says to the console, asks of a network, or asks of the user, fails
// the test at its end.
type tab struct {
	t   *testing.T
	ctx context.Context

	lock sync.Mutex
	said []string
}

// browse opens a page in a new browser with a window of a width.
func browse(t *testing.T, file string, width int64) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browserProgram(t)), chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-background-networking", true),
		chromedp.WindowSize(int(width), 900))
	allocated, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	b.resize(width)
	b.open(file)
	return b
}

// resize gives the window another width.
func (b *tab) resize(width int64) {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(width, 900))
}

// open opens another page.
func (b *tab) open(file string) {
	b.t.Helper()
	b.run(chromedp.Navigate("file://" + filepath.ToSlash(file)))
	b.await("document.body && document.body.dataset.ready")
}

// listen notes what a page must not do.
func (b *tab) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		text, _ := json.Marshal(e.Args)
		b.note("console: " + string(text))
	case *runtime.EventExceptionThrown:
		text, _ := json.Marshal(e.ExceptionDetails)
		b.note("exception: " + string(text))
	case *log.EventEntryAdded:
		b.note("log: " + e.Entry.Text)
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, "file://") || e.Type != network.ResourceTypeDocument {
			b.note("request: " + e.Request.URL)
		}
	case *devtools.EventJavascriptDialogOpening:
		b.note("dialog: " + e.Message)
	case *devtools.EventWindowOpen:
		b.note("window: " + e.URL)
	}
}

func (b *tab) note(text string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.said = append(b.said, text)
}

// quiet fails the test if the page said something since it was called last.
func (b *tab) quiet() {
	b.t.Helper()
	said := b.reset()
	for _, text := range said[:min(10, len(said))] {
		b.t.Errorf("the page is not quiet: %.300s", text)
	}
}

// reset returns what the page said, and forgets it.
func (b *tab) reset() (said []string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	said, b.said = b.said, nil
	return said
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, ovs.Patience())
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v; %q", err, b.said)
	}
}

// eval returns the value of an expression in the page, or of its promise.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, ovs.Patience())
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%v: %.300s; %q", err, expression, b.said)
	}
	return value
}

// await waits until a condition holds in the page.
func (b *tab) await(condition string) {
	b.t.Helper()
	eval[bool](b, `new Promise((done) => { const look = () => ((`+condition+
		`) ? done(true) : requestAnimationFrame(look)); look(); })`)
}

// goTo goes to an address of the page.
func (b *tab) goTo(address string) {
	b.t.Helper()
	b.do("location.hash = " + quoted(address))
	b.settle()
}

// settle waits until the page shows what its address names.
func (b *tab) settle() {
	b.t.Helper()
	b.await("document.body.dataset.shown === location.hash")
}

// do runs a statement in the page.
func (b *tab) do(statement string) {
	b.t.Helper()
	eval[bool](b, "(("+statement+"), true)")
}

// visible are the elements that a user sees: the functions that find something look at these only.
const visible = `[...document.querySelectorAll("main > section:not([hidden])")]`

// link clicks the first visible link whose text has some text.
func (b *tab) link(text string) {
	b.t.Helper()
	const mark = "data-test"
	found := eval[bool](b, `(() => {
		for (const old of document.querySelectorAll("[`+mark+`]")) old.removeAttribute("`+mark+`");
		const link = [...document.querySelectorAll("a")].find((a) => a.textContent.includes(`+quoted(text)+`) && a.checkVisibility());
		if (link) link.setAttribute("`+mark+`", "");
		return !!link;
	})()`)
	if !found {
		b.t.Fatalf("%s has no link %q:\n%s", b.address(), text, b.text())
	}
	b.run(chromedp.Click(chromedp.CSS("[" + mark + "]")))
	b.settle()
}

// text returns what a user sees of the present view.
func (b *tab) text() string {
	b.t.Helper()
	return eval[string](b, visible+`.map((section) => section.innerText).join("\n")`)
}

// rows returns the texts of the visible elements that match a selector, with the cells of each row of a table divided
// by |.
func (b *tab) rows(selector string) []string {
	b.t.Helper()
	return eval[[]string](b, visible+`.flatMap((section) => [...section.querySelectorAll(`+quoted(selector)+
		`)]).filter((one) => one.checkVisibility()).map((one) => (one.cells ? [...one.cells].map((cell) => cell.innerText).join("|") : one.innerText))`)
}

func (b *tab) address() string {
	b.t.Helper()
	return eval[string](b, "location.hash")
}

func (b *tab) back() {
	b.t.Helper()
	before := b.address()
	b.do("history.back()")
	b.await("location.hash !== " + quoted(before))
	b.settle()
}

// enter types a text into a field, in place of what it has.
func (b *tab) enter(selector, text string) {
	b.t.Helper()
	b.do("document.querySelector(" + quoted(selector) + ").select()")
	b.run(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// choose chooses an option of a list by its text.
func (b *tab) choose(selector, text string) {
	b.t.Helper()
	if !eval[bool](b, `(() => {
		const list = document.querySelector(`+quoted(selector)+`), option = list && [...list.options].find((one) => one.text === `+quoted(text)+`);
		if (!option) return false;
		list.value = option.value;
		list.dispatchEvent(new Event("change", { bubbles: true }));
		return true;
	})()`) {
		b.t.Fatalf("%s has no option %q", selector, text)
	}
}

// quoted returns a text as one of JavaScript.
func quoted(text string) string {
	raw, _ := json.Marshal(text) // a string is always valid
	return string(raw)
}
