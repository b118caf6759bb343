package whatif

import (
	"cmp"
	"slices"

	"ovs-offline/internal/daemonlog"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/replica"
	"ovs-offline/replica/scratch"
)

// Refusal is something that the programs of a phase can't use, and those of an earlier one could: what they log about
// it.
type Refusal struct {
	Program string   `json:"program"`
	Nodes   []string `json:"nodes,omitempty"` // none for ovn-northd and the databases
	// Problem is what the messages have in common, and Example the first of them.
	Problem string `json:"problem"`
	Example string `json:"example"`
	Count   int    `json:"count"` // of different messages
}

var (
	// rowUUID matches the UUIDs in a message: rows of the SB database that a release makes anew have others.
	rowUUID = lazyregexp.New(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	// parsing matches the message about a match or actions that can't be parsed (lib/lflow.c and controller/lflow.c
	// of OVN). The reason follows the quoted text.
	parsing = lazyregexp.New(`^(error parsing (?:match|actions)) "(?s:.*)": (.*)$`)
)

// problemOf returns what a message has in common with those of the same cause.
func problemOf(text string) string {
	if match := parsing.FindStringSubmatch(text); match != nil {
		return match[1] + ": " + match[2]
	}
	return string(daemonlog.Folded(nil, []byte(text)))
}

// refused returns what the programs of a later phase log and those of an earlier one do not, and what the later ones
// could not convert.
func refused(before, after *phase) []Refusal {
	type message struct{ node, program, text string }
	key := func(c scratch.Complaint) message {
		return message{c.Node, c.Program, rowUUID.ReplaceAllString(c.Text, "UUID")}
	}
	known := map[message]bool{}
	for _, complaint := range before.complaints {
		known[key(complaint)] = true
	}
	var news []scratch.Complaint
	for _, remark := range after.remarks {
		if replica.IsRefusal(remark) && !slices.Contains(before.remarks, remark) {
			news = append(news, scratch.Complaint{Program: "ovsdb-tool", Text: remark})
		}
	}
	for _, complaint := range after.complaints {
		if !known[key(complaint)] {
			news = append(news, complaint)
		}
	}
	return grouped(news)
}

// grouped returns the messages by their problem, the most frequent first.
func grouped(messages []scratch.Complaint) []Refusal {
	list := []Refusal{}
	counted := map[scratch.Complaint]bool{}
	for _, message := range messages {
		problem := problemOf(message.Text)
		i := slices.IndexFunc(list, func(r Refusal) bool { return r.Program == message.Program && r.Problem == problem })
		if i < 0 {
			i = len(list)
			list = append(list, Refusal{Program: message.Program, Problem: problem, Example: message.Text})
		}
		if message.Node != "" && !slices.Contains(list[i].Nodes, message.Node) {
			list[i].Nodes = append(list[i].Nodes, message.Node)
		}
		anywhere := scratch.Complaint{Program: message.Program, Text: message.Text}
		if !counted[anywhere] {
			counted[anywhere] = true
			list[i].Count++
		}
	}
	slices.SortStableFunc(list, func(a, b Refusal) int { return cmp.Compare(b.Count, a.Count) })
	return list
}
