package draw

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"

	"ovs-offline/internal/svg"
	"ovs-offline/internal/terminal"
	"ovs-offline/trace/answer"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageScript string
)

// page is what the template of the page takes.
type page struct {
	Answer  *answer.Answer
	Verdict string
	Class   string
	Policy  string
	Style   template.CSS
	Script  template.JS
	Picture template.HTML
	Wide    bool // the picture is too wide to be read on an upright sheet of paper
	Text    string
	Ways    []pageWay
}

// pageWay is one direction.
type pageWay struct {
	*answer.Answer
	Title string
	Hops  []pageHop
}

type pageHop struct {
	Hop          *answer.Hop
	ID, Number   string
	Place        string
	From, FromID string // "" for the first hop
	Choice       string
	Groups       []group
	Ends         []pageEnd
}

// group is the stages in one pipeline or bridge.
type group struct {
	Name   string
	Stages []pageStage
}

type pageStage struct {
	answer.Stage
	Decides bool // the packet that the verdict is about is dropped here
}

type pageEnd struct{ Class, Text string }

// HTML writes an answer as a page that needs no server and no network: the picture, and
// each stage, which opens on a click.
func HTML(w io.Writer, a *answer.Answer) error {
	const upright, columns = 1000, 96
	var drawn, text bytes.Buffer
	out := canvas{Writer: svg.NewWriter(&drawn)}
	picture := newPicture(a, true)
	picture.draw(out)
	if err := errors.Join(out.Flush(), a.Write(&text, answer.Options{Width: columns})); err != nil {
		return err
	}
	t, err := template.New("page").Funcs(template.FuncMap{"plain": plain, "lines": plainLines, "fields": fields}).Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("reading the template of the page: %w", err)
	}
	p := page{
		Answer: a, Verdict: string(a.Verdict), Class: verdictClass(a.Verdict), Policy: policy(),
		Style: template.CSS(pageCSS), Script: template.JS(pageScript), // both are part of the program
		Picture: template.HTML(drawn.String()), // package svg has escaped all texts in it
		Wide:    picture.w > upright, Text: text.String(),
		Ways: []pageWay{newPageWay(a, "Way of the packet", "")},
	}
	if a.Return != nil {
		p.Ways = append(p.Ways, newPageWay(a.Return, "Way of the reply", "r"))
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// policy returns the Content-Security-Policy: nothing is loaded, and only the page's own
// script and styles apply.
func policy() string {
	return fmt.Sprintf("default-src 'none'; script-src %s; style-src %s %s; base-uri 'none'; form-action 'none'", Digest(pageScript), Digest(pageCSS), Digest(style))
}

// Digest returns a text as a source of the policy.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// plainLines returns a text of several lines without control characters.
func plainLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(terminal.Escape(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return b.String()
}

// fields returns a text that a browser may break behind each comma.
func fields(text string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(plain(text)), ",", ",<wbr>"))
}

func newPageWay(a *answer.Answer, title, prefix string) pageWay {
	w := pageWay{Answer: a, Title: title}
	deciding, _ := a.Deciding()
	number := func(i int) string { return fmt.Sprint(prefix, i+1) }
	for i := range a.Path {
		h := &a.Path[i]
		p := pageHop{Hop: h, Number: number(i), ID: hopID(number(i)), Place: h.Place.String(), Groups: groups(h, -1), Choice: a.NewChoice(i)}
		if i == deciding {
			p.Groups = groups(h, a.DropStage(h))
		}
		if h.From >= 0 && h.From < i {
			p.From, p.FromID = number(h.From), hopID(number(h.From))
		}
		for _, e := range h.Ends {
			class, _ := endClass(a, e)
			p.Ends = append(p.Ends, pageEnd{class, a.EndText(e)})
		}
		w.Hops = append(w.Hops, p)
	}
	return w
}

// groups returns the stages of a hop, by pipeline or bridge. dropped is the index of the
// stage that drops the packet that the verdict is about, -1 for none.
func groups(h *answer.Hop, dropped int) []group {
	var all []group
	for _, g := range h.Groups() {
		shown := group{Name: g.Name}
		for i, s := range g.Stages {
			shown.Stages = append(shown.Stages, pageStage{s, g.First+i == dropped})
		}
		all = append(all, shown)
	}
	return all
}
