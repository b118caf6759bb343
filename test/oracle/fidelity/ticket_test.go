package fidelity

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/collect"
	"ovs-offline/internal/command"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// TestTicketsReplayAsFarAsTheyGo replays what a person pastes into a ticket of each capture:
// ovs-vsctl show and the flows, with names or numbers of ports, and then also what has the numbers of
// ports, groups, meters and options. Without the numbers, hardly a packet enters by the right port, and
// the report says so. Outside of a sweep, flows with names are those of the compute node, where most packets can be
// traced by names, and so are those without the numbers; all outputs are those of the worker.
func TestTicketsReplayAsFarAsTheyGo(t *testing.T) {
	needTools(t)
	few := []string{"ovs-vsctl show", "ovs-ofctl -O OpenFlow14 dump-flows"}
	more := append(few, "ovs-ofctl -O OpenFlow14 show", "ovs-ofctl -O OpenFlow14 dump-groups",
		"ovs-ofctl -O OpenFlow14 dump-meters",
		"ovs-ofctl -O OpenFlow14 dump-tlv-map", "ovs-appctl fdb/show")
	// In the packets of the worker, ports have numbers, which flows with names do not tell.
	for name, least := range map[string]struct {
		named float64
		by    [2]float64
	}{"ovn-openstack-compute": {80, [2]float64{20, 100}}, "ovn-kubernetes-worker": {25, [2]float64{15, 90}}} {
		r, err := Capture(context.Background(), "../../../testdata/captures/"+name, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		extracted := t.TempDir()
		if _, err := command.Run(t.Context(), command.Command{Argv: []string{"tar", "-C", extracted, "--strip-components=1",
			"-xf", r.Report}}); err != nil {
			t.Fatal(err)
		}
		t.Run(name+"/flows with names", func(t *testing.T) {
			if name != "ovn-openstack-compute" {
				sweep.Only(t, "the same test of ovn-openstack-compute")
			}
			whole, err := Replay(t.Context(), r.Report, t.TempDir(), replica.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer whole.Close(context.WithoutCancel(t.Context()))
			n := startTicket(t, writeNamedTicket(t, extracted, whole))
			f := compare(t, n, r)
			if got := Percent(f.Results, f.Packets); got < least.named {
				t.Errorf("%.1f %% of the results are right, want %.1f %%", got, least.named)
			}
		})
		for i, commands := range [][]string{few, more} {
			t.Run(fmt.Sprintf("%s/%d outputs", name, len(commands)), func(t *testing.T) {
				if (name == "ovn-openstack-compute") != (i == 0) {
					sweep.Only(t, "the same outputs of the other capture")
				}
				n := startTicket(t, writeTicket(t, extracted, commands))
				f := compare(t, n, r)
				if got := Percent(f.Results, f.Packets); got < least.by[i] {
					t.Errorf("%.1f %% of the results are right, want %.1f %%", got, least.by[i])
				}
				unknown := slices.ContainsFunc(n.Report.Steps, func(step report.Result) bool {
					return step.Step == "port numbers" && step.Status == report.Unknown
				})
				expect.Equal(t, unknown, i == 0, "the report names ports without a number")
			})
		}
	}
}

// writeTicket writes a page of Markdown with the outputs of commands in an extracted report. If a
// command takes a bridge, the page has its output for each bridge.
func writeTicket(t *testing.T, extracted string, commands []string) string {
	t.Helper()
	folder := filepath.Join(extracted, "sos_commands/openvswitch")
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString("# A packet is lost\n\nSee below, and please help.\n")
	for _, line := range commands {
		mangled := strings.NewReplacer(" ", "_", "/", ".").Replace(line)
		mangled = strings.Replace(mangled, "ovs-vsctl_show", "ovs-vsctl_-t_5_show", 1)
		for _, entry := range entries {
			rest, ok := strings.CutPrefix(entry.Name(), mangled)
			if !ok || rest != "" && rest[0] != '_' {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&page, "\n```\n[root@node ~]# %s %s\n%s```\n", line, strings.TrimPrefix(rest, "_"), text)
		}
	}
	path := filepath.Join(t.TempDir(), "ticket.md")
	if err := os.WriteFile(path, []byte(page.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeNamedTicket writes what a terminal shows of a node: ovs-vsctl show, and flows with the names of
// ports, which ovs-ofctl prints on terminals.
func writeNamedTicket(t *testing.T, extracted string, whole *Replica) string {
	t.Helper()
	path := writeTicket(t, extracted, []string{"ovs-vsctl show"})
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bridges, err := whole.Tool(t.Context(), "ovs-vsctl", "list-br")
	if err != nil {
		t.Fatal(err)
	}
	for _, bridge := range strings.Fields(bridges) {
		words := []string{"-O", "OpenFlow14", "--names", "dump-flows", bridge}
		flows, err := whole.Tool(t.Context(), "ovs-ofctl", words...)
		if err != nil {
			t.Fatal(err)
		}
		page = fmt.Appendf(page, "\n```\n[root@node ~]# ovs-ofctl %s\n%s```\n", strings.Join(words, " "), flows)
	}
	if err := os.WriteFile(path, page, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func startTicket(t *testing.T, path string) *Replica {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wd")
	wd, err := workdir.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = collect.Collect(t.Context(), wd, collect.Files{Paths: []string{path}}, collect.Options{})
	wd.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	return Started(t, dir)
}
