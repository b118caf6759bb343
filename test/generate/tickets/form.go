package tickets

import (
	"slices"
	"strings"
)

// Form is a form in which people paste what a node printed.
type Form struct {
	Kind, Name string
	Shows      string // what is special about it
	// Lacks matches the causes that an answer may name for not being definite, where a part of the data was taken away:
	// a definite answer has to be that of the whole node all the same. It is "" for a form that has all of the data.
	Lacks string
	// Write makes the text, "" for a node that has nothing of which the form is.
	Write func(*Node) string
}

// Whole reports whether the text has all of the data.
func (f Form) Whole() bool { return f.Lacks == "" }

// Forms returns all forms, by kind.
func Forms() []Form {
	return slices.Concat(prompts(), wrapped(), markup(), encodings(), wraps(), cuts(), filters(), remarks(), shapes(), moments(), options())
}

// rootPrompt is the prompt of root on Red Hat's systems, which most tickets have.
func rootPrompt(n *Node) string { return "[root@" + n.Name + " ~]# " }

// typed returns a terminal's text: each command behind a prompt, and its output.
func typed(prompt string, outputs []Output) string {
	return typedAs(outputs, func(command string) string { return prompt + command })
}

// typedAs works like typed, with the line on which each command stands.
func typedAs(outputs []Output, line func(command string) string) string {
	var b strings.Builder
	for _, o := range outputs {
		b.WriteString(line(o.Command) + "\n" + ended(o.Text))
	}
	return b.String()
}

// plain returns the outputs of a node as a terminal of Red Hat's systems shows them.
func plain(n *Node, outputs []Output) string { return typed(rootPrompt(n), outputs) }

// ended returns a text that ends with the end of a line, if it is not empty.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// byPrompt returns a form that has a prompt of its own.
func byPrompt(name, shows string, prompt func(*Node) string) Form {
	return Form{Name: name, Shows: shows, Write: func(n *Node) string { return typed(prompt(n), n.Outputs) }}
}

// byCommand returns a form whose commands stand in a line of their own.
func byCommand(name, shows string, line func(n *Node, command string) string) Form {
	return Form{Name: name, Shows: shows, Write: func(n *Node) string {
		return typedAs(n.Outputs, func(command string) string { return rootPrompt(n) + line(n, command) })
	}}
}

// byText returns a form that changes the whole text of a terminal.
func byText(name, shows string, change func(n *Node, text string) string) Form {
	return Form{Name: name, Shows: shows, Write: func(n *Node) string { return change(n, plain(n, n.Outputs)) }}
}

// byFlows returns a form that changes the flows of each bridge.
func byFlows(name, shows, lacks string, change func(text string) string) Form {
	return Form{Name: name, Shows: shows, Lacks: lacks, Write: func(n *Node) string { return plain(n, changedFlows(n.Outputs, change)) }}
}

// ofKind gives forms their kind.
func ofKind(kind string, forms ...Form) []Form {
	for i := range forms {
		forms[i].Kind = kind
	}
	return forms
}

// Table returns the forms as a table in Markdown, a row for each kind.
func Table() string {
	var b strings.Builder
	b.WriteString("| kind | forms that have all of the data | forms in which a part is missing |\n|---|---|---|\n")
	forms := Forms()
	for len(forms) > 0 {
		kind := forms[0].Kind
		var whole, parts []string
		for ; len(forms) > 0 && forms[0].Kind == kind; forms = forms[1:] {
			if name := strings.ReplaceAll(forms[0].Name, "|", `\|`); forms[0].Whole() {
				whole = append(whole, name)
			} else {
				parts = append(parts, name)
			}
		}
		b.WriteString("| " + kind + " | " + strings.Join(whole, ", ") + " | " + strings.Join(parts, ", ") + " |\n")
	}
	return b.String()
}
