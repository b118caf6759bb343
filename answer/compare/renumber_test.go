package compare_test

import (
	"crypto/rand"
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// renumber ends all daemons, gives each row of the northbound database and of the OVS
// databases another UUID, and each port and each conntrack zone another number, removes the
// southbound database, and starts all daemons again.
func (l *lab) renumber(up ...string) {
	l.tb.Helper()
	for _, s := range l.nodes {
		s.Stop()
	}
	l.central.Stop()
	uuids := map[string]string{}
	rewrite(l.tb, l.central.NB, uuids)
	if err := os.Remove(l.central.SB); err != nil {
		l.tb.Fatal(err)
	}
	l.central.Resume()
	l.central.Northd()
	l.otherKeys()
	for _, s := range l.nodes {
		rewrite(l.tb, filepath.Join(s.Dir, "conf.db"), uuids)
		s.Resume()
		s.Controller()
	}
	l.settle(up...)
}

// otherKeys makes ovn-northd choose other tunnel keys. It keeps them when they are no longer
// requested.
func (l *lab) otherKeys() {
	l.tb.Helper()
	key := 500
	for _, wanted := range []bool{true, false} {
		for _, t := range []struct{ table, column string }{{"Logical_Switch", "other_config"}, {"Logical_Router", "options"},
			{"Logical_Switch_Port", "options"}, {"Logical_Router_Port", "options"}} {
			for _, name := range strings.Fields(l.central.Nbctl("--bare", "--columns=name", "list", t.table)) {
				if key--; wanted {
					l.central.Nbctl("set", t.table, name, fmt.Sprintf("%s:requested-tnl-key=%d", t.column, key))
				} else {
					l.central.Nbctl("remove", t.table, name, t.column, "requested-tnl-key")
				}
			}
		}
		l.central.Nbctl("--wait=sb", "sync")
	}
}

var (
	uuidText   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	ofportText = regexp.MustCompile(`"ofport":([0-9]{1,3})\b`)
	zoneText   = regexp.MustCompile(`(\["ct-zone-[^"]+",)"([0-9]+)"`)
)

// rewrite gives the rows and the numbers in a database file other values.
func rewrite(tb testing.TB, path string, uuids map[string]string) {
	tb.Helper()
	compact := path + ".compact"
	ovs.Run(tb, "ovsdb-tool", "compact", path, compact)
	text, err := os.ReadFile(compact)
	if err != nil {
		tb.Fatal(err)
	}
	var out strings.Builder
	for rest := string(text); rest != ""; {
		head, after, _ := strings.Cut(rest, "\n")
		length, err := strconv.Atoi(strings.Fields(head)[2])
		if err != nil {
			tb.Fatal(err)
		}
		body := uuidText.ReplaceAllStringFunc(after[:length], func(old string) string {
			if uuids[old] == "" {
				raw := make([]byte, 16)
				_, _ = rand.Read(raw)
				uuids[old] = fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
			}
			return uuids[old]
		})
		body = ofportText.ReplaceAllStringFunc(body, func(old string) string { return `"ofport":` + other(old[9:], 1000) })
		body = zoneText.ReplaceAllStringFunc(body, func(old string) string {
			m := zoneText.FindStringSubmatch(old)
			return m[1] + `"` + other(m[2], 200) + `"`
		})
		fmt.Fprintf(&out, "OVSDB JSON %d %x\n%s", len(body), sha1.Sum([]byte(body)), body)
		rest = after[length:]
	}
	if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// other returns another number for a number below most.
func other(text string, most int) string {
	n, _ := strconv.Atoi(text)
	return strconv.Itoa(most - n)
}

// TestNewNumbersAreNoChange compares a lab with itself after every number in it changed.
func TestNewNumbersAreNoChange(t *testing.T) {
	l := newLab(t)
	before := l.capture()
	l.renumber("vm1", "vm2", "vm3", "vm4", "vm7", "vm8")
	after := l.capture()
	for _, node := range []string{"compute1", "compute2"} {
		if equal := sameFlows(t, before, after, node); equal > 0.1 {
			t.Errorf("node %s: %.0f %% of the flows have the text that they had, so few numbers are others", node, equal*100)
		}
	}
	c := compared(t, before, after)
	if show(t, c); !c.Same || len(c.Missing) > 0 {
		t.Errorf("%d differences, not compared: %q", len(c.Findings), c.Missing)
	}
}

// sameFlows returns the share of the flows of br-int that have the same text in two captures,
// but for the cookies.
func sameFlows(tb testing.TB, older, newer, node string) float64 {
	tb.Helper()
	cookie := regexp.MustCompile(`cookie=\S+ |n_packets=\S+ |n_bytes=\S+ |duration=\S+ |idle_age=\S+ `)
	flows := func(folder string) map[string]bool {
		wd, err := workdir.Find(filepath.Join(folder, node))
		if err != nil {
			tb.Fatal(err)
		}
		text, err := os.ReadFile(wd.DumpFile("br-int", workdir.Flows))
		if err != nil {
			tb.Fatal(err)
		}
		found := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			found[cookie.ReplaceAllString(line, "")] = true
		}
		return found
	}
	a, b := flows(older), flows(newer)
	equal := 0
	for line := range a {
		if b[line] {
			equal++
		}
	}
	tb.Logf("node %s: %d flows, %d of them with the same text", node, len(a), equal)
	return float64(equal) / float64(len(a))
}
