package collect

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/workdir/recording"
)

// nameNodes gives every node a name of its own. The names of nodes of one host differ in
// the day or the time of their sources, or in the names of the archives.
func nameNodes(nodes []*recording.Recording) []Named {
	byHost := map[string][]*recording.Recording{}
	for _, node := range nodes {
		host := cmp.Or(node.Host, "node")
		byHost[host] = append(byHost[host], node)
	}
	used := map[string]bool{}
	var list []Named
	for _, node := range nodes {
		host := cmp.Or(node.Host, "node")
		first := host
		if same := byHost[host]; len(same) > 1 {
			first += distinction(same, node)
		}
		name := first
		for i := 2; used[name]; i++ {
			name = fmt.Sprintf("%s-%d", first, i)
		}
		used[name] = true
		list = append(list, Named{Name: name, Recording: node})
	}
	return list
}

// distinction returns the part of a name, with a dash before it, that distinguishes a
// node from the others of its host; "" if there is no such part.
func distinction(same []*recording.Recording, node *recording.Recording) string {
	day := func(node *recording.Recording) string { return momentText(node.Taken, time.DateOnly) }
	minute := func(node *recording.Recording) string { return momentText(node.Taken, "2006-01-02-1504") }
	for _, text := range []func(*recording.Recording) string{day, minute, archiveLabel} {
		texts := map[string]bool{}
		for _, other := range same {
			texts[text(other)] = true
		}
		if len(texts) == len(same) && !texts[""] {
			return "-" + text(node)
		}
	}
	return ""
}

func momentText(moment recording.Moment, layout string) string {
	if !moment.Known() || moment.DayOnly && layout != time.DateOnly {
		return ""
	}
	return moment.At.Format(layout)
}

// archiveLabel returns the name of a node's archive without the host's name.
func archiveLabel(node *recording.Recording) string {
	label := archiveEnding.ReplaceAllString(archiveName(node.Source.Name), "")
	label = strings.TrimPrefix(label, "sosreport-")
	return strings.TrimPrefix(label, node.Host+"-")
}

var archiveEnding = lazyregexp.New(`\.(?:tar(?:\.(?:xz|gz|bz2|zst))?|tgz)$`)

// archiveName returns the name of the innermost archive in the path of a source, or
// of its folder or file if it is in no archive.
func archiveName(source string) string {
	name := ""
	for part := range strings.FieldsFuncSeq(source, func(char rune) bool { return char == '/' || char == ':' }) {
		if archiveEnding.MatchString(part) || !archiveEnding.MatchString(name) {
			name = part
		}
	}
	return name
}
