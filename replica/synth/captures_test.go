package synth_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica"
	"ovs-offline/replica/synth"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/trace"
	"ovs-offline/workdir"
)

// TestTracesOfSynthesisedSwitches compares the datapath actions of ofproto/trace on
// captured nodes, whose datapath was the kernel's, with those on switches that were made
// from their OVN databases alone. Ports are compared by name and conntrack zones by owner.
func TestTracesOfSynthesisedSwitches(t *testing.T) {
	fidelity.NeedScratch(t)
	for _, c := range []struct{ capture, chassis string }{{"ovn-openstack-compute", "compute1"},
		{"ovn-kubernetes-worker", "ovn-worker"}} {
		t.Run(c.capture, func(t *testing.T) {
			r, err := fidelity.Capture(t.Context(), "../../testdata/captures/"+c.capture, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			live := collected.Report(t, r.Report)
			wd := databases(t, live.Path(), filepath.Join(ovs.Dir(t), "node"), both()...)
			if _, err := synth.Make(t.Context(), wd, options(c.chassis)); err != nil {
				t.Fatal(err)
			}
			wd.Unlock()
			n, err := fidelity.Adopt(t.Context(), wd.Path(), replica.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close(context.WithoutCancel(t.Context()))
			x := exchange{live: switchOf(t, live), made: switchOf(t, wd)}
			x.compareAll(t, n, r)
		})
	}
}

// vswitch is an OVS database, for finding the same thing in another one.
type vswitch struct {
	ids     map[string]string // of an interface: its iface-id, or what it leads to
	numbers map[string]string // of an interface
	zones   map[string]string // owners of conntrack zones, by number
	bridges map[string]string // of an interface
}

func switchOf(t *testing.T, wd *workdir.Dir) vswitch {
	t.Helper()
	content, _, err := file.Read(t.Context(), wd.Database(workdir.OVS), "Interface", "Port", "Bridge")
	if err != nil {
		t.Fatal(err)
	}
	s := vswitch{map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}}
	ports := map[string]string{}
	for _, row := range content.Rows("Port") {
		ports[row.UUID] = row.String("name") // these nodes have no bonds
	}
	for _, row := range content.Rows("Interface") {
		name, number := row.String("name"), 0
		number, _ = row.Int("ofport")
		s.numbers[name] = strconv.Itoa(number)
		s.ids[name] = name
		for _, id := range []string{row.Map("external_ids")["iface-id"], row.Map("options")["remote_ip"]} {
			if id != "" {
				s.ids[name] = id
			}
		}
	}
	for _, row := range content.Rows("Bridge") {
		for _, port := range row.UUIDs("ports") {
			s.bridges[ports[port]] = row.String("name")
		}
		for key, zone := range row.Map("external_ids") {
			if owner, ok := strings.CutPrefix(key, "ct-zone-"); ok {
				s.zones[zone] = owner
			}
		}
	}
	return s
}

// exchange translates what a live switch said into the terms of a synthesised one.
type exchange struct{ live, made vswitch }

// port returns the number of the synthesised interface that a live one of the integration
// bridge, named by its name or number, stands for.
func (x exchange) port(in string) (number string, known bool) {
	for live, n := range x.live.numbers {
		for made, id := range x.made.ids {
			if (n == in && x.live.bridges[live] == "br-int" || live == in) && id == x.live.ids[live] {
				return x.made.numbers[made], true
			}
		}
	}
	return in, false
}

var (
	inPort = regexp.MustCompile(`\bin_port=([^,]+)`)
	zone   = regexp.MustCompile(`\bzone=([0-9]+)`)
	word   = regexp.MustCompile(`[A-Za-z0-9_.~-]+`)
)

// results returns the datapath actions of a trace, with the owners of zones for their
// numbers and the logical ports for the names of interfaces.
func (s vswitch) results(text string) (actions []string) {
	for _, line := range trace.Normalise(text) {
		if line, ok := strings.CutPrefix(line, "Datapath actions: "); ok {
			line = zone.ReplaceAllStringFunc(line,
				func(found string) string { return "zone=" + s.zones[strings.TrimPrefix(found, "zone=")] })
			actions = append(actions, word.ReplaceAllStringFunc(line, func(name string) string {
				if id := s.ids[name]; id != "" {
					return id
				}
				return name
			}))
		}
	}
	return actions
}

func (x exchange) compareAll(t *testing.T, n *fidelity.Replica, r fidelity.Recording) {
	t.Helper()
	f, err := os.Open(r.Packets)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packets, err := trace.ReadPackets(f)
	if err != nil {
		t.Fatal(err)
	}
	all, right := map[string]int{}, map[string]int{}
	for i, p := range packets {
		raw, err := os.ReadFile(filepath.Join(r.Live, fmt.Sprintf("%03d", i+1)))
		if err != nil {
			t.Fatal(err)
		}
		m := inPort.FindStringSubmatch(p.Flow)
		kind := known
		if len(m) < 2 || p.Bridge != "br-int" {
			kind = outside
		} else if number, ok := x.port(m[1]); ok {
			p.Flow = strings.Replace(p.Flow, m[0], "in_port="+number, 1)
		} else {
			kind = outside
		}
		have, err := n.Tool(t.Context(), "ovs-appctl", p.Args()...)
		if err != nil {
			have = err.Error()
		}
		want, got := x.live.results(string(raw)), x.made.results(have)
		if strings.Contains(strings.Join(want, " "), "eth0") || strings.Contains(strings.Join(want, " "), "breth0") {
			kind = outside
		}
		all[kind]++
		if slices.Equal(want, got) {
			right[kind]++
		} else {
			t.Logf("%s: packet %d: %s %s %v\n  live: %s\n  here: %s", kind, i+1, p.Bridge, p.Flow, p.Options,
				strings.Join(want, "\n        "), strings.Join(got, "\n        "))
		}
	}
	for kind := range all {
		t.Logf("%s: %d of %d right", kind, right[kind], all[kind])
	}
	if right[known]*100 < all[known]*95 {
		t.Errorf("%d of %d packets between known ports are right: it has to be 95 %%", right[known], all[known])
	}
}
