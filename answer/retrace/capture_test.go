package retrace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/answer/retrace"
	"ovs-offline/collect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/trace"
	"ovs-offline/workdir"
)

// pastedPerNode is how many of the traces of each captured node are pasted.
const pastedPerNode = 16

// TestTracesOfCapturedNodes pastes what live nodes with OVN printed beside their sos reports: the datapath actions
// tell the truth. A replica of the node is asked the same, and says the same.
func TestTracesOfCapturedNodes(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "xz")
	for _, node := range captures.Nodes(t) {
		t.Run(node.Name, func(t *testing.T) {
			folder := filepath.Join(ovs.Dir(t), "wd")
			texts := collectCapture(t, folder, node)
			checkLogical(t, folder, fidelity.Started(t, folder))
			read := readFolder(t, folder)
			if len(read.Traces) != len(texts) {
				t.Fatalf("%d traces, want %d", len(read.Traces), len(texts))
			}
			named, verdicts := 0, map[retrace.Verdict]int{}
			for i, got := range read.Traces {
				if want := truthOf(texts[i]); want != "" && got.Verdict != want {
					t.Errorf("%s, want %s: %v\n%s", got.Verdict, want, got.Missing, texts[i])
				}
				verdicts[got.Verdict]++
				if got.Again.Result != retrace.Same {
					t.Errorf("%+v\n%s", got.Again, texts[i])
				}
				if got.Where != nil && got.Where.Stage != "" && got.Where.Rule != "" {
					named++
				}
				if got.Verdict == retrace.Dropped && got.Reason == "" {
					t.Errorf("no reason\n%s", texts[i])
				}
			}
			t.Logf("%v, %d of %d with a rule", verdicts, named, len(texts))
			if named*10 < len(texts)*6 {
				t.Errorf("only %d of %d ends have a rule", named, len(texts))
			}
		})
	}
}

// collectCapture collects the report of a node and a ticket with its traces, and returns these.
func collectCapture(t *testing.T, folder string, node captures.Node) (texts []string) {
	t.Helper()
	in, err := os.Open(node.Packets)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	packets, err := trace.ReadPackets(in)
	if err != nil {
		t.Fatal(err)
	}
	ticket := ""
	for i, packet := range packets {
		text, err := os.ReadFile(filepath.Join(node.Traces, fmt.Sprintf("%03d", i+1)))
		if err != nil || !strings.Contains(string(text), "Datapath actions: ") {
			continue
		}
		if len(texts) == pastedPerNode {
			break
		}
		plain := string(text[strings.Index(string(text), "Flow: "):])
		ticket += fmt.Sprintf("$ ovs-appctl ofproto/trace --names %s '%s' %s\n%s\n\n", packet.Bridge, packet.Flow,
			strings.Join(packet.Options, " "), plain)
		texts = append(texts, plain)
	}
	path := filepath.Join(t.TempDir(), "ticket.md")
	if err := os.WriteFile(path, []byte(ticket), 0o600); err != nil {
		t.Fatal(err)
	}
	wd, err := workdir.Lock(folder)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = collect.Collect(t.Context(), wd,
		collect.Files{Paths: []string{captures.Report(t, "captures/"+node.Name), path}}, collect.Options{})
	wd.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// truthOf returns what the datapath actions of a trace plainly say, "" if they don't.
func truthOf(text string) retrace.Verdict {
	var actions []string
	for line := range strings.Lines(text) {
		if list, ok := strings.CutPrefix(line, "Datapath actions: "); ok {
			actions = append(actions, strings.TrimSpace(list))
		}
	}
	for _, list := range actions[:len(actions)-1] {
		if !strings.Contains(list, "recirc(") {
			return ""
		}
	}
	last := actions[len(actions)-1]
	switch {
	case last == "drop":
		return retrace.Dropped
	case !strings.ContainsAny(last, "(,"):
		return retrace.Delivered
	}
	return ""
}

// checkLogical asks ovn-trace beside the replica about packets of logical ports, keeps what it prints as a person
// would add it, and checks what is read: as it is, and after a verdict was altered.
func checkLogical(t *testing.T, folder string, n *fidelity.Replica) {
	t.Helper()
	list, err := n.Tool(t.Context(), "ovn-sbctl", "--bare", "--columns=logical_port", "find", "Port_Binding", `type=""`)
	if err != nil {
		t.Fatal(err)
	}
	ports := strings.Fields(list)
	if len(ports) < 2 {
		t.Fatalf("the ports are %q", ports)
	}
	text, want := "", []bool{}
	for _, port := range ports[:2] {
		for _, destination := range []string{"00:00:00:00:00:99", "ff:ff:ff:ff:ff:ff"} {
			microflow := fmt.Sprintf("inport == %q && eth.src == 00:00:00:00:00:01 && eth.dst == %s", port, destination)
			printed, err := n.Tool(t.Context(), "ovn-trace", microflow)
			if err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			text += fmt.Sprintf("$ ovn-trace '%s'\n%s\n", microflow, printed)
			want = append(want, strings.Contains(printed, "/* output to"))
		}
	}
	for altered, replaced := range map[bool][2]string{false: {}, true: {"priority 50,", "priority 51,"}} {
		content := text
		if altered {
			content = strings.ReplaceAll(content, replaced[0], replaced[1])
		}
		path := filepath.Join(folder, "recorded", workdir.RecordedLogicalTraces)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		read := readFolder(t, folder)
		logical := 0
		for _, got := range read.Traces {
			if got.Tool != "ovn-trace" {
				continue
			}
			if (got.Verdict == retrace.Delivered) != want[logical] || got.Where == nil || got.Where.Rule == "" && !altered {
				t.Errorf("%s %+v\n%s", got.Verdict, got.Where, text)
			}
			if (got.Again.Result == retrace.Differs) != (altered && strings.Contains(text, "priority 50,")) {
				t.Errorf("altered %t: %+v", altered, got.Again)
			}
			logical++
		}
		if logical != len(want) {
			t.Errorf("%d traces of ovn-trace, want %d", logical, len(want))
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
