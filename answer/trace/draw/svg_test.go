package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/svg"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/generate/answers"
)

func drawn(t *testing.T, a answer.Answer) string {
	t.Helper()
	var b bytes.Buffer
	if err := SVG(&b, &a); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// element is an element of a picture or a page, with the text directly in it.
type element struct {
	xml.StartElement
	text string
	in   []string // the classes of the elements around it
}

func (e element) attr(name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// elements returns the elements of markup. A page may leave out end tags, and has
// attributes without a value.
func elements(t *testing.T, markup string, page bool) []element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(markup))
	if page {
		d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	}
	var all []element
	var open []int
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("this is no markup: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{StartElement: token.Copy()}
			for _, i := range open {
				e.in = append(e.in, all[i].attr("class"))
			}
			open, all = append(open, len(all)), append(all, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				all[open[len(open)-1]].text += string(token)
			}
		}
	}
}

// checkNames checks that markup has no elements but some, and no character that could
// control a terminal or turn the direction of text.
func checkNames(t *testing.T, name, markup string, page bool, allowed ...string) {
	t.Helper()
	for _, e := range elements(t, markup, page) {
		if !slices.Contains(allowed, e.Name.Local) {
			t.Errorf("%s: an element <%s>", name, e.Name.Local)
		}
		for _, a := range e.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "src" || a.Name.Local == "style" ||
				a.Name.Local == "href" && !regexp.MustCompile(`^#hop-r?\d+$`).MatchString(a.Value) {
				t.Errorf("%s: <%s> has the attribute %s=%q", name, e.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
	for _, r := range markup {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Fatalf("%s: the character %q", name, r)
		}
	}
}

func TestHostileNamesStayTextInThePicture(t *testing.T) {
	for name, a := range answers.All() {
		checkNames(t, name, drawn(t, a), false, "svg", "style", "title", "desc", "rect", "g", "text", "path")
	}
}

// TestTextsStayInThePicture measures every text where it is written.
func TestTextsStayInThePicture(t *testing.T) {
	for name, a := range answers.All() {
		all := elements(t, drawn(t, a), false)
		number := func(e element, attr string) float64 {
			f, err := strconv.ParseFloat(e.attr(attr), 64)
			if err != nil {
				t.Fatalf("%s: <%s> has %s=%q", name, e.Name.Local, attr, e.attr(attr))
			}
			return f
		}
		w, h := number(all[0], "width"), number(all[0], "height")
		for _, e := range all {
			if e.Name.Local != "text" {
				continue
			}
			size := svg.CharWidth
			if strings.HasPrefix(e.attr("class"), "verdict") {
				size *= 20.0 / 12
			}
			left, top := 0.0, 0.0
			if slices.Contains(e.in, "packet") || slices.Contains(e.in, "reply") {
				left, top = margin, margin // at the least
			}
			if x, y := left+number(e, "x"), top+number(e, "y"); x < 0 || y < 12 || x+float64(svg.Width(e.text))*size > w ||
				y > h {
				t.Errorf("%s: %q at %.0f, %.0f leaves the picture of %.0f by %.0f", name, e.text, x, y, w, h)
			}
		}
	}
}

// TestVerdictAndDropAreRed finds the drop that decides, with its stage and rule, by its class.
func TestVerdictAndDropAreRed(t *testing.T) {
	var verdict string
	var drop []string
	a := answers.All()["dropped"]
	for _, e := range elements(t, drawn(t, a), false) {
		switch {
		case e.Name.Local != "text":
		case e.attr("class") == "verdict bad":
			verdict = e.text
		case slices.Contains(e.in, "end dropped deciding"):
			drop = append(drop, e.text)
		}
	}
	expect.Equal(t, verdict, "UNREACHABLE", "the verdict in red")
	if got := strings.Join(drop, "|"); got != "\u2717 dropped|ACL|ls_out_acl_eval|NetworkPolicy ns2/deny-all (ACL priority|1000, drop)" {
		t.Errorf("the drop that decides is drawn as %s", got)
	}
}

// TestDroppedCopiesAreNotRed draws a packet that is flooded and arrives, and of which a copy is dropped.
func TestDroppedCopiesAreNotRed(t *testing.T) {
	var classes []string
	for _, e := range elements(t, drawn(t, answers.All()["flood"]), false) {
		if strings.Contains(e.text, "a copy is dropped") {
			classes = append(classes, e.in...)
		}
	}
	if !slices.Contains(classes, "end ") || slices.Contains(classes, "end dropped") {
		t.Errorf("the copy is drawn as %q", classes)
	}
}

// TestReplyIsBelowFromRightToLeft draws a question from worker-1 to worker-2: worker-1 is
// on the left in both directions.
func TestReplyIsBelowFromRightToLeft(t *testing.T) {
	a := answers.All()["two-hops"]
	at := map[string]float64{}
	for _, e := range elements(t, drawn(t, a), false) {
		if e.Name.Local == "text" && e.attr("class") == "title" && strings.HasPrefix(e.text, "worker-") {
			way := "packet"
			if slices.Contains(e.in, "reply") {
				way = "reply"
			}
			x, err := strconv.ParseFloat(e.attr("x"), 64)
			if err != nil {
				t.Fatal(err)
			}
			at[way+" "+e.text] = x
		}
	}
	if len(at) != 4 || at["packet worker-1"] > at["packet worker-2"] || at["reply worker-1"] > at["reply worker-2"] {
		t.Errorf("the nodes are at %v", at)
	}
	if p := newPicture(&a, false); p.tops[1] < p.tops[0]+p.ways[0].h {
		t.Errorf("the reply begins at %.0f, the packet's way ends at %.0f", p.tops[1], p.tops[0]+p.ways[0].h)
	}
}

// TestPictureIsDescribed checks the words that a screen reader reads out.
func TestPictureIsDescribed(t *testing.T) {
	all := elements(t, drawn(t, answers.All()["dropped"]), false)
	said := map[string]string{}
	for _, e := range all {
		if id := e.attr("id"); id != "" {
			said[id] = e.text
		}
	}
	expect.Equal(t, said["way-title"], "UNREACHABLE: ns1/web-0 svc/ns2/db:5432", "the title")
	if !strings.Contains(said["way-desc"], "dropped on worker-2") ||
		!strings.Contains(said["way-desc"], "rule: NetworkPolicy ns2/deny-all") {
		t.Errorf("the description is %q", said["way-desc"])
	}
	if ids := strings.Fields(all[0].attr("aria-labelledby")); fmt.Sprint(ids) != "[way-title way-desc]" {
		t.Errorf("the picture is labelled by %v", ids)
	}
}

// TestColoursHaveContrast computes the contrast of each colour of text with the
// backgrounds that it is on: 4.5 is what WCAG 2 (AA) calls for.
func TestColoursHaveContrast(t *testing.T) {
	light, dark, _ := strings.Cut(style, "@media")
	for name, sheet := range map[string]string{"light": light, "dark": dark} {
		rule := regexp.MustCompile(`(?m)^\.way ([^{]+) \{[^}]*?fill: (#[0-9a-f]{6})`)
		var texts, boxes []string
		for _, m := range rule.FindAllStringSubmatch(sheet, -1) {
			switch {
			case strings.Contains(m[1], "rect") || slices.Contains([]string{".page", ".node", ".bridge"}, m[1]):
				boxes = append(boxes, m[2])
			case !strings.Contains(m[1], "head"):
				texts = append(texts, m[2])
			}
		}
		if len(texts) < 5 || len(boxes) < 7 {
			t.Fatalf("%s: only %v and %v were found", name, texts, boxes)
		}
		for _, text := range texts {
			for _, box := range boxes {
				if c := contrast(t, text, box); c < 4.5 {
					t.Errorf("%s: %s on %s has the contrast %.2f", name, text, box, c)
				}
			}
		}
	}
}

// TestColoursOfThePageHaveContrast does the same for the page.
func TestColoursOfThePageHaveContrast(t *testing.T) {
	for _, sheet := range regexp.MustCompile(`:root \{[^}]*--page[^}]*\}`).FindAllString(pageCSS, -1) {
		colour := map[string]string{}
		for _, m := range regexp.MustCompile(`--(\w+): (#[0-9a-f]{6})`).FindAllStringSubmatch(sheet, -1) {
			colour[m[1]] = m[2]
		}
		for _, text := range []string{"text", "note", "good", "bad", "unsure", "link"} {
			for _, box := range []string{"page", "box"} {
				if c := contrast(t, colour[text], colour[box]); c < 4.5 {
					t.Errorf("%s on %s has the contrast %.2f: %s", text, box, c, sheet)
				}
			}
		}
	}
}
