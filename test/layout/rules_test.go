// Package layout has tests only: they check which packages import which.
package layout

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// imports maps each package to the packages of the same module that it imports,
// not counting imports of its tests. Packages are named by their folder: "." is
// the module's own.
type imports map[string][]string

// violations returns a line for each import, and for each circle of folders,
// that the layout forbids:
//
//   - A package may import only what allowed names for its room. (Its tests may import
//     packages below test, too.)
//   - Folders must not import each other in a circle. In each folder, the package
//     of the folder itself and each of its subfolders, with all that is below it,
//     are taken as one each. (So is, beside the rooms, each tool that pkg may import.)
//     No sequence of imports among these may lead back to where it started. So siblings
//     import each other in one direction, and a package either imports its subfolders, or
//     is imported by them as the interface that they implement (as replica/runtime is), or
//     both as long as the subfolders that it imports do not lead back to it.
func violations(all imports) []string {
	var list []string
	folders := map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(all)) {
		for folder := p; ; folder = path.Dir(folder) {
			folders[folder] = true
			if folder == "." {
				break
			}
		}
		for _, imported := range all[p] {
			if reason := forbidden(p, imported); reason != "" {
				list = append(list, fmt.Sprintf("%s imports %s: %s", p, imported, reason))
			}
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if circle := among(folder, all).circle(); circle != nil {
			list = append(list, "circle: "+strings.Join(circle, ", "))
		}
	}
	return list
}

// allowed returns, by room, the packages that the packages of the room may import besides
// those of the room itself. "/..." stands for a package and all below it. A room is named by
// its folder; a package belongs to the room with the longest name that fits.
func allowed() map[string][]string {
	return map[string][]string{
		".":   {"cmd", "internal/garbage"},
		"cmd": {"mcp", "answer/...", "replica/...", "collect/...", "snapshot/...", "workdir/...", "internal/...", "pkg/..."},
		"mcp": {"answer/...", "collect", "replica", "replica/report", "replica/runtime", "replica/set", "snapshot/...", "workdir",
			"internal/...", "pkg/..."},
		// What answers ask of replicas: their state and reports, network namespaces, programs of a release, scratch daemons.
		"answer": {"replica", "replica/linux", "replica/release", "replica/report", "replica/runtime", "replica/scratch",
			"snapshot/...", "workdir/...", "internal/...", "pkg/..."},
		// A capture to compare may be a report that was not collected yet.
		"answer/compare": {"answer/...", "collect", "snapshot/...", "workdir/...", "internal/...", "pkg/..."},
		"replica":        {"snapshot/...", "workdir/...", "internal/...", "pkg/..."},
		"snapshot":       {"workdir/...", "internal/...", "pkg/..."},
		"collect":        {"sosreport", "workdir/...", "internal/...", "pkg/..."},
		"sosreport":      {"workdir/...", "internal/...", "pkg/..."},
		"workdir":        {"internal/...", "pkg/..."},
		"internal":       {"pkg/..."},
		// Others build on these packages: they know nothing of the house but its smallest tools.
		"pkg":     {"internal/interrupt", "internal/lazyregexp", "internal/lines", "internal/phrase"},
		"test":    {"..."},
		"scripts": {"..."},
	}
}

// forbidden returns why one package must not import another, or "".
func forbidden(p, imported string) string {
	room := roomOf(p)
	if room == "" {
		return "no room of the layout has " + p
	}
	if room == roomOf(imported) || slices.ContainsFunc(allowed()[room],
		func(pattern string) bool { return fits(imported, pattern) }) {
		return ""
	}
	return fmt.Sprintf("%s may import only %s", room, strings.Join(append(allowed()[room], "itself"), ", "))
}

// roomOf returns the room of a package, "" for none.
func roomOf(p string) string {
	best := ""
	for room := range allowed() {
		if fits(p, room+"/...") && len(room) > len(best) || p == room {
			best = room
		}
	}
	return best
}

// fits reports whether a pattern names a package.
func fits(p, pattern string) bool {
	folder, below := strings.CutSuffix(pattern, "...")
	return p == strings.TrimSuffix(folder, "/") || below && strings.HasPrefix(p, folder)
}

// graph is the imports among a folder's package and its subfolders: from one to
// another, with one import as an example.
type graph map[string]map[string]string

// among returns the graph of a folder.
func among(folder string, all imports) graph {
	g := graph{}
	for p, list := range all {
		from, inside := part(folder, p)
		if !inside {
			continue
		}
		for _, imported := range list {
			to, inside := part(folder, imported)
			if !inside || to == from {
				continue
			}
			if g[from] == nil {
				g[from] = map[string]string{}
			}
			if example := p + " imports " + imported; g[from][to] == "" || example < g[from][to] {
				g[from][to] = example
			}
		}
	}
	return g
}

// part returns which part of a folder a package belongs to: the folder itself, one of its
// subfolders, or beside the rooms a tool that pkg may import.
func part(folder, p string) (name string, inside bool) {
	if p == folder {
		return folder, true
	}
	rest := p
	if folder != "." {
		if rest, inside = strings.CutPrefix(p, folder+"/"); !inside {
			return "", false
		}
	}
	if folder == "." && slices.Contains(allowed()["pkg"], p) {
		return p, true
	}
	first, _, _ := strings.Cut(rest, "/")
	return path.Join(folder, first), true
}

// circle returns the imports of a shortest circle, nil if there is no circle.
func (g graph) circle() []string {
	var shortest []string
	for _, start := range slices.Sorted(maps.Keys(g)) {
		if found := g.way(start); found != nil && (shortest == nil || len(found) < len(shortest)) {
			shortest = found
		}
	}
	return shortest
}

// way returns the imports of a shortest way from a node back to itself.
func (g graph) way(start string) []string {
	ways := map[string][]string{start: nil}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		from := queue[0]
		for _, to := range slices.Sorted(maps.Keys(g[from])) {
			longer := append(slices.Clone(ways[from]), g[from][to])
			if to == start {
				return longer
			}
			if _, seen := ways[to]; !seen {
				ways[to] = longer
				queue = append(queue, to)
			}
		}
	}
	return nil
}
