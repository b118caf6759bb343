package page_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"ovs-offline/answer/reach"
	"ovs-offline/answer/timeline"
	"ovs-offline/answer/trace"
	"ovs-offline/collect"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
	"ovs-offline/workdir"
)

// labCase is the case of three nodes with replicas and planted faults, and its page in a browser.
type labCase struct {
	*tab
	folder string
	nodes  map[string]*workdir.Dir
	lost   []string  // flows that brokenNode lacks
	change time.Time // the minute of plantedChange
}

// TestPage answers questions about a case with planted faults from its page alone, as a user does with mouse and
// keyboard. What the answers have to be is known from the faults, from what was recorded, or from the commands that the
// page replaces.
func TestPage(t *testing.T) {
	program := browserProgram(t)
	folder, nodes := labNodes(t)
	c := &labCase{folder: folder, nodes: nodes, lost: loseFlows(t, nodes[brokenNode], brokenMatch),
		change: changeAt(t, nodes["worker3"])}
	startAll(t, nodes)
	file := writePage(t, folder, trace.Check{From: "ns1/web-0", To: "ns2/db-1:5432"})
	t.Logf("%s: %s", program, file)
	c.tab = browse(t, file, 1000)
	for name, test := range map[string]func(*testing.T){
		"the first findings need no scrolling":  c.firstScreen,
		"a finding leads to its flows and back": c.findingToFlow,
		"search finds a pod":                    c.searchPod,
		"filters choose flows":                  c.filterFlows,
		"which policy drops A to B":             c.whichPolicyDrops,
		"which node lacks flows":                c.whichNodeLacks,
		"what changed at 14:02":                 c.whatChanged,
		"the keyboard reaches all":              c.byKeyboard,
		"paper gets the whole view":             c.prints,
		"the policy refuses markup":             c.policy,
		"pictures and texts":                    c.looks,
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			c.resize(1000)
			c.goTo("#/")
			test(t)
			c.quiet()
		})
	}
}

// firstScreen looks for the finding about the planted fault on the first screen of the page, in windows of two widths.
func (c *labCase) firstScreen(t *testing.T) {
	for _, width := range []int64{1000, 1600} {
		c.resize(width)
		texts := c.rows(".first li")
		if !strings.Contains(texts[0], fmt.Sprintf("br-int lacks %d flows of %s", len(c.lost), brokenService)) {
			t.Errorf("at %d pixels, the first finding is %q", width, texts[0])
		}
		bottom := eval[float64](c.tab, `[...document.querySelectorAll(".first li")].slice(0, 3).pop().getBoundingClientRect().bottom`)
		if bottom > 900 {
			t.Errorf("at %d pixels, the third finding ends %v pixels below the top of a window of 900", width, bottom)
		}
	}
}

// findingToFlow follows a finding to the rule that it is about, to a flow of the rule, and to the rule again.
func (c *labCase) findingToFlow(t *testing.T) {
	c.link("1 error")
	if text := c.text(); !strings.Contains(text, fmt.Sprintf("br-int lacks %d flows of %s", len(c.lost), brokenService)) {
		t.Fatalf("the finding about the planted fault is not shown:\n%s", text)
	}
	c.link(brokenService)
	rules := c.address()
	c.link(brokenService)
	rule := c.address()
	if text := c.text(); !strings.Contains(text, "10.96.2.10:5432") {
		t.Errorf("the row of the rule does not have its VIP:\n%s", text)
	}
	c.link("flows on worker")
	flows := c.address()
	c.do(`document.querySelector("li.flow details").open = true`)
	text := c.rows("li.flow details[open]")[0]
	node := strings.Split(flows, "/")[2]
	cookie, _, _ := strings.Cut(text[strings.Index(text, "cookie="):], ",")
	if countIn(dumped(t, c.nodes[node]), cookie+",") == 0 {
		t.Errorf("no flow of %s was recorded with %s, as the page shows:\n%s", node, cookie, text)
	}
	c.do(`document.querySelector("li.flow details[open] dl a[href^='#/rules/']").click()`)
	c.settle()
	expect.Equal(t, c.address(), rule, "the rule of the flow")
	for _, address := range []string{flows, rule, rules, "#/findings", "#/"} {
		c.back()
		expect.Equal(t, c.address(), address, "the way back")
	}
}

func (c *labCase) searchPod(t *testing.T) {
	c.run(chromedp.KeyEvent("/"), chromedp.KeyEvent("web-0"), chromedp.KeyEvent(kb.Enter))
	c.await(`location.hash.startsWith("#/search")`)
	c.settle()
	c.link("ns1/web-0")
	text := c.text()
	for _, want := range []string{"ns1_web-0", "10.244.1.5", "br-int on worker1", "switch worker1",
		"router ovn_cluster_router", "flows on worker1"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of the pod has no %q:\n%s", want, text)
		}
	}
	c.link("flows on worker1")
	if rows := c.rows("details.stage"); len(rows) == 0 {
		t.Error("no flows of the pod are shown")
	}
}

// filterFlows compares the numbers of flows that filters leave with those of lines of the dump.
func (c *labCase) filterFlows(t *testing.T) {
	c.goTo("#/nodes/worker1/flows")
	flows := dumped(t, c.nodes["worker1"])
	c.choose("select[name=stage]", "br-int 0 input: from physical to logical")
	shown := func() string { return c.rows("p.note")[0] }
	tables := countIn(flows, " table=0,")
	if want := fmt.Sprintf("%d flows of ", tables); !strings.HasPrefix(shown(), want) {
		t.Errorf("of table 0 there are %q, and %d were recorded", shown(), tables)
	}
	c.choose("select[name=hit]", "matched none")
	never := countIn(flows, " table=0,", " n_packets=0,") - countIn(flows, " table=0,", " n_packets=0,",
		"actions=conjunction(") // clauses are not counted
	if want := fmt.Sprintf("%d flows of ", never); !strings.HasPrefix(shown(), want) {
		t.Errorf("%q of table 0 matched none, and %d were recorded", shown(), never)
	}
	c.choose("select[name=stage]", "all tables")
	c.choose("select[name=hit]", "hit or not")
	c.enter("input[name=q]", brokenMatch)
	with := countIn(flows, brokenMatch)
	if want := fmt.Sprintf("%d flows of ", with); !strings.HasPrefix(shown(), want) {
		t.Errorf("%q have %s, and %d were recorded", shown(), brokenMatch, with)
	}
	c.link("rules")
	c.back()
	if got := eval[string](c.tab, `document.querySelector("input[name=q]").value`); got != brokenMatch {
		t.Errorf("after the way back, the filter is %q", got)
	}
}

// whichPolicyDrops asks for a pair that a policy denies: ns1/client-0 may send tcp 5432 and udp 53 only.
func (c *labCase) whichPolicyDrops(t *testing.T) {
	const from, to = "ns1/client-0", "ns1/web-0"
	c.link("who reaches whom")
	c.enter("#from", from)
	c.enter("#to", to)
	c.run(chromedp.KeyEvent(kb.Enter))
	c.await(`location.hash.includes("from=")`)
	c.settle()
	got := map[string]string{}
	for _, row := range c.rows("table.answers tbody tr") {
		cells := strings.Split(row, "|")
		got[cells[2]] = strings.Join(cells, "|")
	}
	dropped := got["tcp/80"]
	if !strings.Contains(dropped, "UNREACHABLE") || !strings.Contains(dropped, "default deny egress") {
		t.Errorf("what drops tcp/80 is shown as %q", dropped)
	}
	for _, answer := range c.reached(t, from, to) {
		if got[answer.port] != answer.text {
			t.Errorf("%s: the page says %q, and reach %q", answer.port, got[answer.port], answer.text)
		}
	}
	c.link("default deny egress")
	if text := c.text(); !strings.Contains(text, "drop") || !strings.Contains(text, "flows on worker1") {
		t.Errorf("the rule has no flows on worker1:\n%s", text)
	}
}

type reached struct{ port, text string }

// reached returns what reach says of a pair, as the table of the page has it.
func (c *labCase) reached(t *testing.T, from, to string) (list []reached) {
	t.Helper()
	session, err := trace.OpenSet(t.Context(), openSet(t, c.folder), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	matrix, err := reach.New(t.Context(), session, reach.Options{From: []string{from}, To: []string{to}})
	if err != nil {
		t.Fatal(err)
	}
	for cell := range matrix.Cells(t.Context()) {
		for _, one := range cell.Asked {
			list = append(list, reached{cell.Port.String(),
				strings.Join([]string{one.From, one.To, cell.Port.String(), string(one.Verdict), one.Reason, one.Rule}, "|")})
		}
	}
	if len(list) == 0 {
		t.Fatal("reach has no answers")
	}
	return list
}

func (c *labCase) whichNodeLacks(t *testing.T) {
	c.goTo("#/drift")
	rows := c.rows("table tbody tr")
	var shown []string
	for _, row := range rows {
		shown = append(shown, strings.Join(strings.Split(row, "|")[:3], "|"))
	}
	slices.Sort(shown)
	expect.Equal(t, strings.Join(shown, " "),
		fmt.Sprintf("worker1|no drift|0 %s|drift|%d worker3|no drift|0", brokenNode, len(c.lost)),
		"node, verdict and missing flows")
	c.link(brokenNode)
	c.do(`document.querySelectorAll("details").forEach((one) => { one.open = true; })`)
	text := c.text()
	for _, flow := range c.lost {
		cookie, _, _ := strings.Cut(flow, ",")
		if !strings.Contains(text, cookie+",") {
			t.Errorf("the flow that was removed is not named: %s", flow)
		}
	}
}

// whatChanged asks for a minute, and compares what is shown with the timeline of the command.
func (c *labCase) whatChanged(t *testing.T) {
	opened, err := timeline.Open(t.Context(), openSet(t, c.folder),
		timeline.Query{Since: c.change, Until: c.change.Add(time.Minute - time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	var want []string
	if _, err := opened.Read(t.Context(), 0, func(e *timeline.Entry) error {
		want = append(want, e.Time.UTC().Format("2006-01-02 15:04:05.000")+"|"+strings.TrimSpace(e.Annotated()))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c.goTo("#/timeline")
	c.enter("input[name=at]", plantedClock)
	var got []string
	for _, row := range eval[[][]string](c.tab,
		`[...document.querySelectorAll("#app li.event")].map((event) => [event.querySelector(".moment").innerText, event.querySelector(".what").innerText])`) {
		got = append(got, strings.Join(row, "|"))
	}
	expect.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"), "entries of the minute")
	if !strings.Contains(strings.Join(got, "\n"), plantedChange) {
		t.Errorf("the change that was planted at %s is not shown", plantedClock)
	}
}

// policy checks that the page's policy refuses markup, scripts and requests, and that the other tests would notice.
func (c *labCase) policy(t *testing.T) {
	for _, markup := range []string{`document.body.innerHTML = "<b>x</b>"`, `document.createElement("script").text = "0"`,
		`document.body.setAttribute("onclick", "0")`} {
		if got := eval[string](c.tab, `(() => { try { `+markup+
			`; return "done"; } catch (failed) { return failed.name; } })()`); got == "done" {
			t.Errorf("the policy of the page lets it do %s", markup)
		}
	}
	for _, asked := range []string{`new Image().src = "http://192.0.2.1/"`, `fetch("http://192.0.2.1/").catch(() => 0)`,
		`console.log("said")`, `setTimeout(() => { throw new Error("thrown") })`} {
		c.reset()
		c.do(asked)
		ovs.Await(t, "the test to notice "+asked, func() bool { return len(c.reset()) > 0 })
	}
}

// prints checks that paper gets all entries of a list, and the whole of a picture.
func (c *labCase) prints(t *testing.T) {
	c.goTo("#/rules")
	var rules int
	if _, err := fmt.Sscanf(c.rows("p.note")[1], "%d rules", &rules); err != nil || rules <= len(c.rows("li.flow")) {
		t.Fatalf("the list of rules is not long: %v, %d rules", err, rules)
	}
	c.do(`window.dispatchEvent(new Event("beforeprint"))`)
	if shown := len(c.rows("li.flow")); shown != rules {
		t.Errorf("%d of %d rules are printed", shown, rules)
	}
	c.goTo("#/network")
	c.do(`document.querySelector("[aria-label=larger]").click()`)
	c.do(`window.dispatchEvent(new Event("beforeprint"))`)
	if !eval[bool](c.tab, `(() => {
		const view = document.querySelector(".network").viewBox.baseVal, all = document.querySelector(".network > g").getBBox();
		return view.x <= all.x && view.y <= all.y && view.x + view.width >= all.x + all.width && view.y + view.height >= all.y + all.height;
	})()`) {
		t.Error("a part of the picture is not printed")
	}
}

// byKeyboard goes from field to field with the tab key: the focus reaches the tabs and the view, and is visible.
func (c *labCase) byKeyboard(t *testing.T) {
	c.do(`document.querySelector("h1 a").focus()`)
	reached := map[string]bool{}
	for range 24 {
		c.run(chromedp.KeyEvent(kb.Tab))
		if eval[bool](c.tab, "document.activeElement === document.body") {
			break // it left the page at its end
		}
		reached[eval[string](c.tab, `document.activeElement.getAttribute("href") || document.activeElement.id`)] = true
		if outline := eval[string](c.tab, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
			t.Errorf("the focus is not visible on %s", eval[string](c.tab, `document.activeElement.outerHTML`))
		}
	}
	for _, want := range []string{"query", "#/findings", "#/timeline", "#/traces", "#/nodes/worker1", "#/nodes/worker3"} {
		if !reached[want] {
			t.Errorf("the tab key does not reach %s", want)
		}
	}
	c.goTo("#/reach")
	c.do(`document.querySelector(".matrix tbody th a").focus()`)
	c.run(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter))
	c.await(`location.hash.startsWith("#/reach/")`)
	c.settle()
	if rows := c.rows("table.answers tbody tr"); len(rows) == 0 {
		t.Error("a cell of the matrix that was chosen by keys shows no answers")
	}
}

// looks checks what a user would see at once as broken, on all views: boxes that overlap, edges through boxes, texts
// that leave their box or that are cut without a way to see them, and a page that is wider than the window.
func (c *labCase) looks(t *testing.T) {
	addresses := c.addresses()
	t.Logf("the page has %d views; the test opens %d of them", len(addresses), len(oneOfEachShape(addresses)))
	for _, address := range oneOfEachShape(addresses) {
		c.goTo(address)
		c.checkLooks(address)
	}
	c.resize(1600)
	for _, address := range sweep.Spread(oneOfEachShape(addresses), 8) {
		c.goTo(address)
		c.checkLooks(address)
	}
}

// addresses returns the addresses of the tabs, of the parts of nodes, and of some of all other views.
func (b *tab) addresses() []string {
	b.t.Helper()
	list := eval[[]string](b, `(() => {
		const some = (all, address) => all.filter((_, index) => index % Math.ceil(all.length / 12) === 0).map(address);
		return [...[...document.querySelectorAll("#tabs a")].map((tab) => tab.hash), ...(theCase.traces || []).map((_, index) => route("traces", index)),
			...theCase.nodes.flatMap((node) => nodeSections.map(([part]) => route("nodes", node.name, part))),
			...some(theCase.endpoints, (end) => route("ports", end.name)), ...some(theCase.rules, (rule) => route("rules", rule.uuid)),
			...some(theCase.logical ? theCase.logical.boxes : [], networkRoute), ...some([...portsOf(theCase.physical)].filter(({ box }) => box.kind === "bridge"), ({ box, port }) => route("nodes", nodeOf(box), "ports", port.name)),
			...some(theCase.matrix ? theCase.matrix.from : [], (from) => withQuery(route("reach"), { from: from.name }))];
	})()`)
	return append(list, "#/search?q="+url.QueryEscape("ns1"))
}

// oneOfEachShape returns the first address of each kind of view, and in a sweep all: the page of a port, a rule or a
// node is drawn like that of another one.
func oneOfEachShape(addresses []string) []string {
	seen := map[string]bool{}
	return sweep.Rows(addresses, func(address string) bool {
		path, query, _ := strings.Cut(address, "?")
		parts := strings.Split(path, "/")
		kind, _, _ := strings.Cut(query, "=")
		shape := fmt.Sprint(parts[1], len(parts), kind)
		if parts[1] == "nodes" && len(parts) > 3 {
			shape += parts[3] // a section of a node
		}
		first := !seen[shape]
		seen[shape] = true
		return first
	})
}

// checkLooks fails the test for what is broken in the present view.
func (b *tab) checkLooks(address string) {
	b.t.Helper()
	for _, broken := range eval[[]string](b, lookForBroken) {
		b.t.Errorf("%s: %.300s", address, broken)
	}
}

// lookForBroken returns what is broken in the present view.
const lookForBroken = `(() => {
	const broken = [];
	const page = document.documentElement;
	if (page.scrollWidth > window.innerWidth) broken.push("the page is " + page.scrollWidth + " pixels wide");
	const frames = [...document.querySelectorAll("#app .box")].map((box) => [box, box.querySelector(".frame").getBBox()]);
	const name = (box) => box.dataset.name;
	frames.forEach(([one, a], index) => {
		for (const [other, b] of frames.slice(index + 1)) {
			if (a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height) broken.push("the boxes " + name(one) + " and " + name(other) + " overlap");
		}
		for (const text of one.querySelectorAll("text")) {
			const t = text.getBBox();
			if (text.textContent && (t.x < a.x || t.x + t.width > a.x + a.width + 1)) broken.push("the text " + text.textContent + " leaves the box " + name(one));
		}
	});
	for (const edge of document.querySelectorAll("#app .edge")) {
		const length = edge.getTotalLength();
		for (let at = 0; at < length; at += 8) {
			const p = edge.getPointAtLength(at);
			for (const [box, f] of frames) if (p.x > f.x + 1 && p.x < f.x + f.width - 1 && p.y > f.y + 1 && p.y < f.y + f.height - 1) { broken.push("an edge runs through the box " + name(box)); at = length; break; }
		}
	}
	for (const inside of document.querySelectorAll("svg *")) if (inside.namespaceURI !== "http://www.w3.org/2000/svg") broken.push("a picture has " + inside.outerHTML);
	const whole = (element) => {
		for (let above = element; above && above !== document.body; above = above.parentElement) {
			const title = above.getAttribute("title") || [...above.children].filter((child) => child.localName === "title").map((child) => child.textContent).join("");
			if (title) return title;
		}
		return "";
	};
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		const text = texts.currentNode, element = text.parentElement;
		if (element.closest("script, style, title") || !element.checkVisibility()) continue;
		const [start, end] = text.data.split("\u2026");
		if (end !== undefined && !(whole(element).includes(start.trim()) && whole(element).includes(end.trim()))) broken.push("no title has all of the text " + text.data);
		if (element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).textOverflow === "ellipsis" && !whole(element).includes(element.textContent.trim())) broken.push("no title has all of the cut text " + element.textContent);
	}
	return broken.slice(0, 5);
})()`

// TestPagesOfLittle opens the pages of cases that have only databases, without any flows, and of a large logical
// network.
func TestPagesOfLittle(t *testing.T) {
	browserProgram(t)
	ovs.Need(t, "ovsdb-server")
	made := ovndb.NewDeployment(t, ovs.NBSchema, ovs.SBSchema, ovs.Schema)
	var b *tab
	for _, databases := range [][]string{{made.OVS}, {made.NB}, {made.OVS, made.NB, made.SB}} {
		folder := filepath.Join(ovs.Dir(t), "node")
		wd, err := workdir.Lock(folder)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = collect.Collect(t.Context(), wd, collect.Files{Paths: databases}, collect.Options{})
		wd.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if file := writePage(t, folder); b == nil {
			b = browse(t, file, 1000)
		} else {
			b.open(file)
		}
		for _, address := range oneOfEachShape(b.addresses()) {
			b.goTo(address)
			b.checkLooks(address)
		}
		b.quiet()
	}
}
