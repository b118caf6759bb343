package rules

import (
	"testing"

	"ovs-offline/answer/rule"
)

// TestPackageRulesFindTheirVersions checks each rule with the lines in its own file.
func TestPackageRulesFindTheirVersions(t *testing.T) {
	all, err := packageRules()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Follows == "" || len(r.Next) == 0 || len(r.Sources) == 0 || len(r.Finds) == 0 {
			t.Errorf("%s: something is missing in its file", r.Name)
		}
		for want, lines := range map[bool][]string{true: r.Finds, false: r.Ignores} {
			for _, line := range lines {
				if _, ok := r.finding(rule.ParsePackages(line)); ok != want {
					t.Errorf("%s finds %q: %v", r.Name, line, ok)
				}
			}
		}
	}
}
