package check_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/check/rules"
)

// plantedElsewhere names, for a rule that is not planted here, the file and the tests that have its truth.
func plantedElsewhere() map[string][]string {
	const slow, cluster = "../slow/slow_test.go", "../cluster/lab_test.go"
	talker := []string{slow, "TestTalkerThatFillsAZoneIsNamed", "TestConnectionsNearTheLimitOfTheDatapath"}
	damaged := []string{"damaged_test.go", "TestDamagedReports"}
	return map[string][]string{
		"cluster":                 {cluster, "TestMajorityIsLost", "TestServerIsGone", "TestFindings"},
		"row-churn":               {slow, "TestRowsThatChangeAgainAndAgainAreFound"},
		"datapath-flows-stale":    {"../flows/replay_test.go", "TestStaleDatapathFlowsAreNamed"},
		"megaflow-explosion":      {slow, "TestExplosionIsAFinding"},
		"not-offloaded":           {slow, "TestOffloadThatTakesNoFlowIsFound", "TestReasonsOfFlowsThatAreNotOffloaded"},
		"data-missing":            damaged,
		"flows-unread":            damaged,
		"tunnel-address-differs":  damaged,
		"router-does-not-forward": damaged,
		"router-active-twice":     damaged,
		"conntrack-talker":        talker,
		"conntrack-near-limit":    talker,
		"conntrack-of-tunnels":    talker,
	}
}

// made names the rules whose findings have names of their own.
func made() map[string][]string {
	files := func(folder string) (names []string) {
		found, _ := filepath.Glob(filepath.Join("rules", folder, "*.yaml"))
		for _, file := range found {
			names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
		}
		return names
	}
	return map[string][]string{"logs": files("logs"), "packages": files("packages"),
		"costly-rules": {"flows-of-no-row", "rule-multiplies-out", "rule-twice"}, "drift": {"drift", "foreign-flow", "flows-unread"}}
}

// TestEachRuleIsPlantedTwice fails for a rule that fewer than two planted faults are for, unless another test
// has its truth, and for two rules of one name.
func TestEachRuleIsPlantedTwice(t *testing.T) {
	planted := map[string]int{}
	for _, f := range slices.Concat(openstackFaults(), kubernetesFaults()) {
		planted[f.rule]++
	}
	for _, f := range recordedFaults() {
		planted[f.rule]++
	}
	elsewhere, seen := plantedElsewhere(), map[string]bool{}
	for _, r := range rules.All() {
		names := made()[r.Name]
		if names == nil {
			names = []string{r.Name}
		}
		for _, name := range names {
			if seen[name] {
				t.Errorf("two rules are named %s", name)
			}
			seen[name] = true
			if planted[name] < 2 && elsewhere[name] == nil {
				t.Errorf("the rule %s is planted %d times: it needs two faults in faults_table_test.go, faults_kubernetes_test.go or recorded_table_test.go", name, planted[name])
			}
		}
	}
	for name := range planted {
		if !seen[name] {
			t.Errorf("a fault is for %s, which is no rule", name)
		}
	}
	for name, where := range elsewhere {
		text, err := os.ReadFile(where[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range where[1:] {
			if !seen[name] || !strings.Contains(string(text), "func "+test+"(") {
				t.Errorf("%s has no %s for the rule %s", where[0], test, name)
			}
		}
	}
}

// TestEachRuleSaysWhatItReads fails for a rule that names no data, by which an all-clear would count it as one that
// looked.
func TestEachRuleSaysWhatItReads(t *testing.T) {
	for _, r := range rules.All() {
		if len(r.Needs) == 0 && r.Name != "data-lost" { // which reads what each collection writes
			t.Errorf("the rule %s does not say what it reads", r.Name)
		}
	}
}
