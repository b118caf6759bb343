package cmd

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
)

// anonymised saves a folder anonymised, loads it into another, and returns what was replaced, by what.
func (s session) anonymised(folder, into string) map[string]string {
	s.t.Helper()
	bundle := filepath.Join(s.dir, "case.ovs-offline")
	said := s.run("-w", folder, "save", "--anonymise", bundle)
	s.t.Log(said)
	s.run("-w", into, "load", bundle)
	raw, err := os.ReadFile(bundle + ".map.json")
	if err != nil {
		s.t.Fatal(err)
	}
	var kinds map[string]map[string]string
	if err := json.Unmarshal(raw, &kinds); err != nil {
		s.t.Fatal(err)
	}
	all := map[string]string{}
	for _, kind := range []string{"names", "addresses", "macs", "uuids"} {
		if len(kinds[kind]) == 0 {
			s.t.Errorf("nothing was replaced among %s", kind)
		}
		maps.Copy(all, kinds[kind])
	}
	_, kept, _ := strings.Cut(said, "or OpenStack stay: ")
	kept, _, _ = strings.Cut(kept, "\n")
	s.checkNothingIsLeft(folder, bundle, strings.Split(kept, ", "))
	return all
}

// replaceable matches UUIDs, MAC addresses, IPv4 and IPv6 addresses, and words.
var replaceable = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b|\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d+)?\b|\b[0-9a-f]+:[0-9a-f:]*:[0-9a-f]*(?:/\d+)?|[A-Za-z0-9]+`)

// checkNothingIsLeft looks in a bundle, with grep, for the names, addresses, MAC addresses and UUIDs of the files that
// it was made from, but for those that the command has named.
func (s session) checkNothingIsLeft(folder, bundle string, kept []string) {
	s.t.Helper()
	unpacked := filepath.Join(s.dir, "unpacked")
	if err := os.MkdirAll(unpacked, 0o700); err != nil {
		s.t.Fatal(err)
	}
	ovs.Run(s.t, "tar", "--zstd", "-xf", bundle, "-C", unpacked)
	secrets := map[string]bool{}
	for _, search := range [][]string{
		{"-rohE", `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`},
		{"-rohE", `\b[0-9a-f][02468ace](:[0-9a-f]{2}){5}\b`},                                // MAC addresses of one device
		{"-rohP", `(?<![0-9a-f]\.)(?<![0-9a-f])[0-9]{1,3}(\.[0-9]{1,3}){3}(?!\.?[0-9a-f])`}, // not four of the many octets of userdata
		{"-rohE", `\b(f[cd][0-9a-f]{2}|2[0-9a-f]{3}):[0-9a-f:]+:[0-9a-f:]*[0-9a-f]`},        // IPv6 addresses
		{"-rohE", "--include=conf.db", "--include=ovnnb_db.db",
			`"(name|hostname|iface-id|logical_port|neutron:[a-z_]*name)"[:,]"[^"]{3,}"`},
	} {
		found, err := exec.Command("grep", append(search, folder)...).Output()
		if err != nil && len(found) == 0 && !strings.HasPrefix(search[1], `\b(f`) {
			s.t.Fatalf("grep %q: %v", search, err)
		}
		for line := range strings.Lines(string(found)) {
			secret := strings.TrimSuffix(strings.TrimSpace(line), `"`)
			secrets[secret[strings.LastIndex(secret, `"`)+1:]] = true
		}
	}
	var list []string
	for secret := range secrets {
		if !staysInBundles.MatchString(secret) && !slices.Contains(kept, secret) {
			list = append(list, secret, inOctets(secret))
		}
	}
	patterns := filepath.Join(s.dir, "secrets")
	if err := os.WriteFile(patterns, []byte(strings.Join(list, "\n")), 0o600); err != nil {
		s.t.Fatal(err)
	}
	left, err := exec.Command("grep", "-rohwF", "-f", patterns, unpacked).Output()
	if len(left) > 0 || err == nil {
		s.t.Errorf("of %d names and addresses, these are in the bundle:\n%.2000s", len(list), left)
	}
	if names, _ := exec.Command("sh", "-c", "find "+unpacked).Output(); slices.ContainsFunc(list,
		func(secret string) bool { return strings.Contains(string(names), "/"+secret+"/") }) {
		s.t.Errorf("names of files: %s", names)
	}
	s.t.Logf("%d names and addresses were looked for, as texts and as bytes of actions", len(list)/2)
}

// inOctets returns a text as ovs-ofctl prints the bytes of an action.
func inOctets(text string) string {
	var octets []string
	for _, c := range []byte(text) {
		octets = append(octets, fmt.Sprintf("%02x", c))
	}
	return strings.Join(octets, ".")
}

// staysInBundles matches what has a meaning by itself: addresses of RFC 6890, masks, bytes that look like an address,
// names of schemas, and numbers.
var staysInBundles = regexp.MustCompile(`\.0[0-9]|^(0|127|169\.254|22[4-9]|2[345][0-9])\.|^00:00:00:00:00:00$|^(Open_vSwitch|OVN_Northbound|dst_ip|main)$|^[0-9]+$`)

// translated returns a text with everything replaced as a map says.
func translated(text string, by map[string]string) string {
	return replaceable.ReplaceAllStringFunc(text, func(part string) string {
		plain, mask, _ := strings.Cut(part, "/")
		switch {
		case by[part] != "":
			return by[part]
		case by[plain] != "" && mask != "":
			return by[plain] + "/" + mask
		}
		return part
	})
}

// firstMember matches the name of a group without a name, which reach calls by the first of its members in the order
// of names.
var firstMember = regexp.MustCompile(`\S+ \+([0-9]+)`)

// answersOf starts the replicas of a folder, and returns the cells that reach prints for the ports, and what drift
// prints. Without ports, reach takes those of the rules. Names and addresses in both are replaced as the map says.
func (s session) answersOf(folder string, ports []string, by map[string]string) (cells, drift []string) {
	s.t.Helper()
	s.run("-w", folder, "start")
	defer s.run("-w", folder, "stop")
	out, err := s.command("-w", folder, "reach", "--all-members", "--port", strings.Join(ports, ","), "-o",
		"json").Output()
	if len(out) == 0 {
		s.t.Fatal(err)
	}
	var matrix struct {
		Cells []struct {
			From, To, Port, Verdict, Reason string
			Asked                           []struct{ From, To, Verdict, Reason, Rule string }
		}
	}
	if err := json.Unmarshal(out, &matrix); err != nil {
		s.t.Fatal(err)
	}
	for _, cell := range matrix.Cells {
		asked := []string{}
		for _, one := range cell.Asked {
			asked = append(asked, translated(fmt.Sprint(one), by))
		}
		slices.Sort(asked)
		groups := firstMember.ReplaceAllString(translated(fmt.Sprint(cell.From, " ", cell.To), by), "members +$1")
		cells = append(cells, groups+fmt.Sprint(" ", cell.Port, " ", cell.Verdict, " ", cell.Reason, asked))
	}
	out, _ = s.command("-w", folder, "drift").Output()
	for line := range strings.Lines(string(out)) {
		drift = append(drift, translated(strings.TrimSpace(line), by))
	}
	return cells, drift
}

// TestAnonymisedDataGivesTheSameAnswers asks who reaches whom, and what has drifted, of recorded nodes and of their
// anonymised copies, and looks for what was replaced in the bundles.
func TestAnonymisedDataGivesTheSameAnswers(t *testing.T) {
	fidelity.NeedScratch(t)
	const worker = "../testdata/captures/ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz"
	collections := map[string]func(t *testing.T, s session, folder string){
		"capture": func(_ *testing.T, s session, folder string) {
			s.run("-w", filepath.Join(folder, "ovn-worker"), "collect", worker)
		},
	}
	// The capture is of Kubernetes as well.
	for _, name := range sweep.Rows([]string{"openstack", "kubernetes-ic"},
		func(name string) bool { return name == "openstack" }) {
		collections[name] = func(t *testing.T, _ session, folder string) {
			if _, err := sets.Recorded(t, "../scripts/lab/lab", name).Workdirs(t.Context(), folder, sets.Native); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, collect := range collections {
		t.Run(name, func(t *testing.T) {
			r := engines.Get(t, engines.Process)
			r.Use(t)
			s := newSession(t, r)
			original, copied := filepath.Join(s.dir, "original"), filepath.Join(s.dir, "copied")
			for _, folder := range []string{original, copied} {
				if err := os.Mkdir(folder, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			collect(t, s, original)
			by := s.anonymised(original, copied)
			var ports []string
			if name == "openstack" && !sweep.Whole() {
				ports = []string{"icmp", "tcp/22", "tcp/23", "udp/161"} // of rules that allow, reject, and allow without state
			}
			cells, drift := s.answersOf(original, ports, by)
			gotCells, gotDrift := s.answersOf(copied, ports, nil)
			if len(cells) < 100 {
				t.Errorf("only %d cells", len(cells))
			}
			sameLines(t, gotCells, cells)
			sameLines(t, gotDrift, drift)
			t.Logf("%d cells, %d lines of drift", len(cells), len(drift))
		})
	}
}

// sameLines reports the first lines that one of two lists lacks.
func sameLines(t *testing.T, got, want []string) {
	t.Helper()
	report := func(where string, lines, others []string) {
		only := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(others, line) })
		if len(only) > 0 {
			t.Errorf("only in the %s: %d lines, first %.1500q", where, len(only), only[:min(2, len(only))])
		}
	}
	report("copies", got, want)
	report("originals", want, got)
}
