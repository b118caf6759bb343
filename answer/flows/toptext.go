package flows

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// maxCell bounds a cell of a table; -o json has all of it.
const maxCell = 90

func cell(text string) string { return terminal.Escape(phrase.Shorten(text, maxCell)) }

// PrintCosts prints the lists of costs.
func (top *Top) PrintCosts(page *show.Page) {
	page.Printf("%d flows, %d of them by %s", top.Flows, top.Counted, top.By)
	if top.Unknown > 0 {
		page.Printf("; %d have a cookie that no row has", top.Unknown)
	}
	page.Printf("\n")
	printCosts(page, "Most flows", top.Costs, top.Groups)
	if own := top.Own; own != nil {
		page.Printf("\nNot listed: %d flows, %d of them never hit, that OVN adds to every\n"+
			"switch and router whatever its rules are. top --by stage has them.\n", own.Flows, own.NeverHit)
	}
	printCosts(page, "Never hit", top.NeverHit, top.Never)
}

// PrintFindings prints what Examine found.
func (top *Top) PrintFindings(p *show.Page) {
	printProducts(p, "Cross products", top.Products)
	printProducts(p, "Conjunctions", top.Conjunctions)
	printDuplicates(p, top.Duplicates)
}

// printCosts prints a list of costs, of all there are.
func printCosts(page *show.Page, title string, list []Cost, all int) {
	page.Printf("\n%s: %d of %d\n", title, len(list), all)
	if len(list) == 0 {
		return
	}
	table := page.Table("flows", "never hit", "packets", "name", "nodes")
	for _, cost := range list {
		packets := any(cost.Packets)
		if !cost.Counted {
			packets = "-"
		}
		var nodes []string
		for _, n := range slices.Sorted(maps.Keys(cost.Nodes)) {
			nodes = append(nodes, fmt.Sprintf("%s %d", n, cost.Nodes[n]))
		}
		table.AppendRow([]any{cost.Flows, cost.NeverHit, packets, cell(cost.Name), cell(strings.Join(nodes, ", "))})
	}
	table.Render()
}

func printProducts(page *show.Page, title string, list []Product) {
	page.Printf("\n%s: %d\n", title, len(list))
	if len(list) == 0 {
		return
	}
	table := page.Table("flows", "node", "stage", "name", "values")
	for _, product := range list {
		table.AppendRow([]any{product.Flows, cell(product.Node), cell(product.Stage), cell(product.Name), cell(product.Text())})
	}
	table.Render()
}

func printDuplicates(page *show.Page, list []Duplicate) {
	page.Printf("\nDuplicates: %d\n", len(list))
	if len(list) == 0 {
		return
	}
	table := page.Table("priority", "where", "match", "rules")
	for _, duplicate := range list {
		var rows []string
		for _, r := range duplicate.Rows {
			rows = append(rows, cell(r.Name))
		}
		table.AppendRow([]any{duplicate.Priority, cell(duplicate.Where), cell(duplicate.Match), strings.Join(rows, "\n")})
	}
	table.Render()
}
