package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/answer/trace/draw"
	"ovs-offline/internal/webpage"
)

var (
	//go:embed assets/page.html
	pageHTML string
	//go:embed assets/page.css
	pageCSS string
	// parts are the parts of the page's script.
	//
	//go:embed assets/script
	parts embed.FS
	// layoutScript is a library that is not ours, which lays out graphs; its licence is beside it.
	//
	//go:embed assets/dagre/dagre.min.js
	layoutScript string
)

// content is what the template of the page takes.
type content struct {
	*Case
	Policy  string
	Style   template.CSS
	Script  template.JS
	Chunks  []chunk
	Answers []drawn
}

// drawn is the answer to a question of the user.
type drawn struct {
	Trace
	Answer template.HTML
}

// Write writes the page as one file that needs no server and no network.
func (p *Page) Write(w io.Writer) error {
	page := content{Case: &p.Case}
	data, err := webpage.Data(p.Case)
	if err != nil {
		return err
	}
	if page.Answers, err = p.draw(); err != nil {
		return err
	}
	page.Chunks = append([]chunk{{"case", template.HTML(data)}}, p.chunks...)
	script, err := scripts()
	if err != nil {
		return err
	}
	page.Script = template.JS(script)
	page.Style = webpage.Style(draw.Style() + pageCSS)
	page.Policy = webpage.Policy([]string{script}, string(page.Style)) + "; require-trusted-types-for 'script'; trusted-types 'none'"
	next := func(step rule.Next) string { return step.Text(p.call) }
	t, err := template.New("page").Funcs(webpage.Funcs()).Funcs(template.FuncMap{"next": next}).Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("reading the template of the page: %w", err)
	}
	if err := t.Execute(w, page); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// draw draws the answers to the questions of the user.
func (p *Page) draw() (list []drawn, err error) {
	for i, trace := range p.Traces {
		if trace.Element == "" {
			continue
		}
		var text bytes.Buffer
		if err := draw.Section(&text, p.answers[i], trace.Element+"-"); err != nil {
			return nil, err
		}
		list = append(list, drawn{trace, template.HTML(text.String())}) // package draw has escaped all texts in it
	}
	return list, nil
}

// scripts returns the script of the page: the library, without a comment that names a file for debuggers, and our parts,
// of which main is the last.
func scripts() (string, error) {
	script, _, _ := strings.Cut(layoutScript, "//# sourceMappingURL=")
	for _, name := range []string{"dom", "data", "links", "layout", "graph", "flows", "nodes", "rules", "ports", "network", "reach", "matrix", "events", "main"} {
		part, err := parts.ReadFile("assets/script/" + name + ".js")
		if err != nil {
			return "", err
		}
		script += string(part)
	}
	return script, nil
}
