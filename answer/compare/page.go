package compare

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"ovs-offline/internal/webpage"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
)

// page is what the template of the page takes.
type page struct {
	*Comparison
	Policy string
	Style  template.CSS
	Groups []pageGroup
}

// pageGroup is the findings of one kind.
type pageGroup struct {
	KindCount
	Findings []Finding
}

// HTML writes a comparison as a page that needs no server, no network and no script.
func (c *Comparison) HTML(w io.Writer) error {
	t, err := template.New("page").Funcs(webpage.Funcs()).Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("reading the template of the page: %w", err)
	}
	document := page{Comparison: c, Policy: webpage.Policy(nil, string(webpage.Style(pageCSS))), Style: webpage.Style(pageCSS)}
	at := 0
	for _, k := range c.Kinds() {
		n := k.Added + k.Gone + k.Changed
		document.Groups = append(document.Groups, pageGroup{k, c.Findings[at : at+n]})
		at += n
	}
	if err := t.Execute(w, document); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}
