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

	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/svg"
	"ovs-offline/internal/terminal"
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
	Location     string
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
func HTML(w io.Writer, shown *answer.Answer) error {
	const upright, columns = 1000, 96
	var drawn, text bytes.Buffer
	out := canvas{Writer: svg.NewWriter(&drawn)}
	picture := newPicture(shown, true)
	picture.draw(out)
	if err := errors.Join(out.Flush(), shown.Write(&text, answer.Options{Width: columns})); err != nil {
		return err
	}
	parsed, err := template.New("page").Funcs(template.FuncMap{"plain": plain, "lines": plainLines, "fields": fields}).Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("reading the template of the page: %w", err)
	}
	content := page{
		Answer: shown, Verdict: string(shown.Verdict), Class: verdictClass(shown.Verdict), Policy: policy(),
		Style: template.CSS(pageCSS), Script: template.JS(pageScript), // both are part of the program
		Picture: template.HTML(drawn.String()), // package svg has escaped all texts in it
		Wide:    picture.w > upright, Text: text.String(),
		Ways: []pageWay{newPageWay(shown, "Way of the packet", "")},
	}
	if shown.Return != nil {
		content.Ways = append(content.Ways, newPageWay(shown.Return, "Way of the reply", "r"))
	}
	if err := parsed.Execute(w, content); err != nil {
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

func newPageWay(shown *answer.Answer, title, prefix string) pageWay {
	w := pageWay{Answer: shown, Title: title}
	deciding, _ := shown.Deciding()
	number := func(i int) string { return fmt.Sprint(prefix, i+1) }
	for i := range shown.Path {
		hop := &shown.Path[i]
		added := pageHop{Hop: hop, Number: number(i), ID: hopID(number(i)), Location: hop.Location.String(), Groups: groups(hop, -1), Choice: shown.NewChoice(i)}
		if i == deciding {
			added.Groups = groups(hop, shown.DropStage(hop))
		}
		if hop.From >= 0 && hop.From < i {
			added.From, added.FromID = number(hop.From), hopID(number(hop.From))
		}
		for _, end := range hop.Ends {
			class, _ := endClass(shown, end)
			added.Ends = append(added.Ends, pageEnd{class, shown.EndText(end)})
		}
		w.Hops = append(w.Hops, added)
	}
	return w
}

// groups returns the stages of a hop, by pipeline or bridge. dropped is the index of the
// stage that drops the packet that the verdict is about, -1 for none.
func groups(hop *answer.Hop, dropped int) []group {
	var all []group
	for _, members := range hop.Groups() {
		shown := group{Name: members.Name}
		for i, stage := range members.Stages {
			shown.Stages = append(shown.Stages, pageStage{stage, members.First+i == dropped})
		}
		all = append(all, shown)
	}
	return all
}
