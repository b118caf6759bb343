// Package hotsos has tests only: they give the inputs of hotsos's own tests to check, and compare what
// it finds with what hotsos finds.
package hotsos

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/collect"
	"ovs-offline/replica/runtime"
	"ovs-offline/snapshot"
	"ovs-offline/test/daemons/local"
	"ovs-offline/workdir"
)

// scenarios is the folder of the tests in a checkout of github.com/canonical/hotsos, and original the
// report of which tests copy files.
const (
	scenarios = "hotsos/defs/tests/scenarios"
	original  = "tests/unit/fake_data_root/openstack"
)

// scenario is a test of hotsos: files of a report, and what hotsos finds in them.
type scenario struct {
	Mock     any `json:"mock"`
	DataRoot struct {
		Files map[string]string `json:"files"`
		Copy  []string          `json:"copy-from-original"`
	} `json:"data-root"`
	Bugs   map[string]any `json:"raised-bugs"`
	Issues map[string]any `json:"raised-issues"`
}

// expected is what check finds in the input of a test: the names of rules, or why it finds nothing
// where hotsos does.
type expected struct {
	rules []string
	why   string
}

// TestScenariosOfHotsos checks that check finds what hotsos finds in each of its tests about Open
// vSwitch, OVN and neutron, and nothing where it finds nothing.
func TestScenariosOfHotsos(t *testing.T) {
	top := os.Getenv("OVS_OFFLINE_HOTSOS")
	if top == "" {
		t.Skip("OVS_OFFLINE_HOTSOS names no checkout of github.com/canonical/hotsos: make test-hotsos HOTSOS=FOLDER runs this test")
	}
	want := findings()
	var files []string
	for _, pattern := range []string{"openvswitch/*.yaml", "openvswitch/*/*.yaml", "openvswitch/*/*/*.yaml",
		"openstack/neutron/*.yaml", "openstack/neutron/*/*.yaml", "openstack/*neutron*.yaml"} {
		found, err := filepath.Glob(filepath.Join(top, scenarios, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 60 {
		t.Fatalf("%s has %d tests about Open vSwitch, OVN and neutron", top, len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, filepath.Join(top, scenarios)+"/"), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s scenario
			if err := yaml.Unmarshal(text, &s); err != nil {
				t.Fatal(err)
			}
			got := s.check(t, filepath.Join(top, original))
			raised := len(s.Bugs)+len(s.Issues) > 0
			expect, known := want[name]
			switch {
			case !raised && len(got) > 0 && len(expect.rules) == 0:
				t.Errorf("hotsos finds nothing; check found %q", got)
			case raised && expect.why != "":
				t.Logf("not looked for: %s", expect.why)
			case raised && !known:
				t.Errorf("hotsos finds %v %v; check found %q, and the test has no row", s.Bugs, s.Issues, got)
			}
			for _, rule := range expect.rules {
				if !slices.ContainsFunc(got, func(text string) bool { return strings.HasPrefix(text, rule+":") }) {
					t.Errorf("check found %q, and not %s", got, rule)
				}
			}
		})
	}
}

// check collects the report of the scenario, and returns what check finds: "RULE: what".
func (s *scenario) check(t *testing.T, original string) (found []string) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "sosreport-node1")
	write := func(name, text string) {
		path := filepath.Join(report, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("version.txt", "sosreport: 4.4\n")
	write("hostname", "node1\n")
	// A report of a machine with Open vSwitch has more of it than the files that a test is about.
	write("var/log/openvswitch/ovsdb-server.log",
		"2022-02-09T00:00:00.000Z|00001|vlog|INFO|opened log file /var/log/openvswitch/ovsdb-server.log\n")
	write("sos_commands/openvswitch/ovs-ofctl_dump-flows_br-ex",
		" cookie=0x0, duration=9.5s, table=0, n_packets=0, n_bytes=0, priority=0 actions=NORMAL\n")
	write("sos_commands/ovn_central/ovn-nbctl_--no-leader-only_list_Logical_Switch",
		"_uuid               : 3c5a4c51-6c5b-4f0e-8a4b-8c1d0b9e4f10\nname                : net\nports               : []\n")
	for _, name := range s.DataRoot.Copy {
		copyAll(t, filepath.Join(original, name), name, write)
	}
	for name, text := range s.DataRoot.Files {
		if !strings.HasPrefix(name, "/tmp/") {
			write(strings.TrimPrefix(name, "/"), oneDigit.ReplaceAllString(text, "${1}0${2}"))
		}
	}
	if lines := s.journal(); lines != "" {
		write("sos_commands/logs/journalctl_--no-pager", lines)
	}
	dir := filepath.Join(t.TempDir(), "case")
	wd, err := workdir.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	if _, _, err := collect.Collect(t.Context(), wd, collect.Files{Paths: []string{report}},
		collect.Options{}); err != nil {
		t.Fatalf("collecting the report: %v", err)
	}
	looked, err := check.Run(t.Context(), snapshot.Of(wd),
		check.Options{Programs: rule.Programs{Runtime: runtime.Auto, Runtimes: local.Runtimes}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range looked.Findings {
		found = append(found, fmt.Sprintf("%s: %s", f.Rule, f.What))
	}
	return found
}

// oneDigit matches times whose seconds have one digit, as no daemon writes them.
var oneDigit = regexp.MustCompile(`(?m)^(\d{4}-\d\d-\d\dT\d\d:\d\d:)(\d\.\d{3}Z)`)

// copyAll gives the files at or below a path to write.
func copyAll(t *testing.T, path, name string, write func(name, text string)) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		return // not every report has it
	}
	if !info.IsDir() {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(name, string(text))
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		copyAll(t, filepath.Join(path, entry.Name()), name+"/"+entry.Name(), write)
	}
}

// journal returns the lines that the test gives in place of what journalctl prints, in order of time.
func (s *scenario) journal() string {
	var lines []string
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, each := range v {
				walk(each)
			}
		case []any:
			for _, each := range v {
				walk(each)
			}
		case string:
			if text, ok := s.DataRoot.Files[v]; ok {
				lines = append(lines, strings.Split(text, "\n")...)
			} else if strings.Contains(v, "]: ") || strings.HasPrefix(v, "-- Reboot") {
				lines = append(lines, v)
			}
		}
	}
	walk(s.Mock)
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	if len(lines) == 0 {
		return ""
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}
