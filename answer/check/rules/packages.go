package rules

import (
	"fmt"
	"slices"
	"strings"

	version "github.com/knqyf263/go-deb-version"
)

// packageRange is a package of Debian or Ubuntu in some versions. Min and Max are among them; "" stands
// for no bound.
type packageRange struct{ Package, Min, Max string }

// holds reports whether a version is in the range.
func (p packageRange) holds(text string) bool {
	installed, err := version.NewVersion(text)
	if err != nil {
		return false
	}
	for _, bound := range []struct {
		text string
		out  func(version.Version) bool
	}{{p.Min, installed.LessThan}, {p.Max, installed.GreaterThan}} {
		if bound.text == "" {
			continue
		}
		limit, err := version.NewVersion(bound.text)
		if err != nil || bound.out(limit) {
			return false
		}
	}
	return true
}

// firstIn returns the first package that is installed in one of the ranges, with its version.
func firstIn(ranges []packageRange, packages map[string]string) (name, version string, ok bool) {
	for _, p := range ranges {
		if installed := packages[p.Package]; installed != "" && p.holds(installed) {
			return p.Package, installed, true
		}
	}
	return "", "", false
}

// concerns reports whether a rule about logs concerns a node with these packages.
func (r *logRule) concerns(packages map[string]string) bool {
	if _, _, ok := firstIn(r.Installed, packages); len(r.Installed) > 0 && !ok {
		return false
	}
	return !slices.ContainsFunc(r.Absent, func(name string) bool { return packages[name] != "" })
}

// installed returns the packages that the rule names, with their versions.
func (r *logRule) installed(packages map[string]string) string {
	var list []string
	for _, p := range r.Installed {
		if text := fmt.Sprintf("%s %s", p.Package, packages[p.Package]); packages[p.Package] != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, ", ")
}
