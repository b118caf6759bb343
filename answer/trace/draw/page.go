package draw

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/svg"
	"ovs-offline/internal/webpage"
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
	section
	Policy string
	Style  template.CSS
	Script template.JS
}

// section is what the template of an answer in a page takes.
type section struct {
	ID      string // what the ids of its elements begin with
	Answer  *answer.Answer
	Verdict string
	Class   string
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
	content, err := newSection(shown, "")
	if err != nil {
		return err
	}
	whole := page{section: content, Policy: webpage.Policy([]string{pageScript}, string(webpage.Style(Style()))),
		Style: webpage.Style(Style()), Script: template.JS(pageScript)} // both are part of the program
	return write(w, "page", whole)
}

// Style returns the style sheet of a page with a Section.
func Style() string { return pageCSS + style }

// Section writes an answer as a part of another page, which has the style sheet Style. The ids of the
// part's elements begin with id.
func Section(w io.Writer, shown *answer.Answer, id string) error {
	content, err := newSection(shown, id)
	if err != nil {
		return err
	}
	return write(w, "answer", content)
}

func newSection(shown *answer.Answer, id string) (section, error) {
	const upright, columns = 1000, 96
	var drawn, text bytes.Buffer
	out := canvas{Writer: svg.NewWriter(&drawn)}
	picture := newPicture(shown, true)
	picture.id = id
	picture.draw(out)
	if err := errors.Join(out.Flush(), shown.Write(&text, answer.Options{Width: columns})); err != nil {
		return section{}, err
	}
	content := section{
		ID: id, Answer: shown, Verdict: string(shown.Verdict), Class: verdictClass(shown.Verdict),
		Picture: template.HTML(drawn.String()), // package svg has escaped all texts in it
		Wide:    picture.w > upright, Text: text.String(),
		Ways: []pageWay{newPageWay(shown, id, "Way of the packet", "")},
	}
	if shown.Return != nil {
		content.Ways = append(content.Ways, newPageWay(shown.Return, id, "Way of the reply", "r"))
	}
	return content, nil
}

// write writes one of the templates of the page.
func write(w io.Writer, name string, content any) error {
	parsed, err := template.New("page").Funcs(webpage.Funcs()).Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("reading the template of the page: %w", err)
	}
	if err := parsed.ExecuteTemplate(w, name, content); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func newPageWay(shown *answer.Answer, id, title, prefix string) pageWay {
	w := pageWay{Answer: shown, Title: title}
	deciding, _ := shown.Deciding()
	number := func(i int) string { return fmt.Sprint(prefix, i+1) }
	for i := range shown.Path {
		hop := &shown.Path[i]
		added := pageHop{Hop: hop, Number: number(i), ID: hopID(id, number(i)), Location: hop.Location.String(), Groups: groups(hop, -1), Choice: shown.NewChoice(i)}
		if i == deciding {
			added.Groups = groups(hop, shown.DropStage(hop))
		}
		if hop.From >= 0 && hop.From < i {
			added.From, added.FromID = number(hop.From), hopID(id, number(hop.From))
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
