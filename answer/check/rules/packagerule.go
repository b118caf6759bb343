package rules

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"ovs-offline/answer/rule"
	"ovs-offline/workdir"
)

//go:embed packages/*.yaml
var packageFiles embed.FS

// packageRule is a rule about versions of packages with a known defect: one file in packages/.
type packageRule struct {
	Name     string
	Severity rule.Severity
	What     string // a text/template with Package and Version
	Follows  string
	Next     []string
	Sources  []string
	// Installed lists packages of Debian, of which one has to be installed.
	Installed []packageRange
	// Finds and Ignores are lines of "dpkg -l" for the test of the rule.
	Finds, Ignores []string

	what *template.Template
	next []rule.Next
}

// packageRules reads the rules in packages/.
func packageRules() (all []*packageRule, err error) {
	names, err := fs.Glob(packageFiles, "packages/*.yaml")
	for _, name := range names {
		text, err := packageFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		one := &packageRule{Name: strings.TrimSuffix(path.Base(name), ".yaml")}
		if err := yaml.UnmarshalStrict(text, one); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if one.what, err = template.New(name).Option("missingkey=error").Parse(one.What); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if one.next, err = parseNext(one.Next); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, one)
	}
	return all, err
}

// knownDefects lets all rules in packages/ look at the packages of a node.
func knownDefects() rule.Rule {
	return rule.Rule{
		Name: "packages", Severity: rule.Warning, Sources: []string{"dpkg -l"},
		Needs: []rule.Data{rule.HostOutput(workdir.HostDebs, "list of packages")},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			packages, err := n.Packages()
			if err != nil || len(packages) == 0 {
				return err
			}
			all, err := packageRules()
			for _, r := range all {
				if finding, ok := r.finding(packages); ok {
					found(finding)
				}
			}
			return err
		},
	}
}

// finding returns what the rule says of the packages; ok is false if it says nothing.
func (r *packageRule) finding(packages map[string]string) (finding rule.Finding, ok bool) {
	name, version, ok := firstIn(r.Installed, packages)
	if !ok {
		return finding, false
	}
	what, err := filled(r.what, map[string]string{"Package": name, "Version": version})
	if err != nil {
		return finding, false
	}
	return rule.Finding{Rule: r.Name, Severity: r.Severity, What: what, Follows: r.Follows, Next: r.next, Sources: r.Sources,
		Evidence: []string{"dpkg -l: " + name + " " + version}}, true
}
