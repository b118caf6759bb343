package truth

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/e2e/k8s/rigtest"
)

// asked is the answer of trace to one question.
type asked struct {
	From, To, Error string
	Answer          *answered
}

type answered struct {
	Verdict string
	Missing []string
	Return  *answered
}

// verdict returns the verdict about the packet and its reply.
func (a asked) verdict() string {
	switch {
	case a.Answer == nil:
		return "error"
	case a.Answer.Verdict == "REACHABLE" && a.Answer.Return != nil && a.Answer.Return.Verdict == "UNDETERMINED":
		return "undetermined"
	case a.Answer.Verdict == "ONE-WAY": // the sender gets no answer
		return "unreachable"
	}
	return strings.ToLower(a.Answer.Verdict)
}

// CheckAnswers asks ovs-offline all questions by the names that users type, and fails for an
// answer that is wrong, for more than 3 % that are undetermined, and for less questions than
// the rig has.
func CheckAnswers(t *testing.T, p rigtest.Program, nodes string, truths []Truth, atLeast int) {
	t.Helper()
	text, err := json.Marshal(truths)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "questions.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var answers []asked
	p.Run("-w", nodes, "trace", "--file", file, "-o", "json").Read(t, &answers, 1, 3)
	if len(answers) != len(truths) {
		t.Fatalf("%d answers, %d questions", len(answers), len(truths))
	}
	count := map[string]int{}
	for i, a := range answers {
		truth, verdict := truths[i], a.verdict()
		switch {
		case verdict == truth.Expect:
			count["right "+verdict]++
		case verdict == "undetermined":
			count["undetermined"]++
			t.Logf("undetermined: %s to %s, %s", truth.From, truth.To, truth.Protocol)
			if len(a.Answer.Missing) == 0 && (a.Answer.Return == nil || len(a.Answer.Return.Missing) == 0) {
				t.Errorf("%s to %s: no cause", truth.From, truth.To)
			}
		default:
			count["wrong"]++
			t.Errorf("%s to %s, %s: %s, and real packets say %s: %s", truth.From, truth.To, truth.Protocol, verdict, truth.Expect, a.Error)
		}
	}
	t.Logf("%d questions: %v", len(answers), count)
	right := count["right reachable"] + count["right unreachable"] + count["right ambiguous"]
	if right*100 < 97*len(answers) || len(answers) < atLeast {
		t.Errorf("%d of %d questions are answered right", right, len(answers))
	}
}

// CheckReach compares the cells of the pods with real packets.
func CheckReach(t *testing.T, p rigtest.Program, nodes string, truths []Truth, atLeast int) {
	t.Helper()
	var matrix struct {
		Cells []struct {
			Port  string
			Asked []struct{ From, To, Verdict string }
		}
	}
	p.Run("-w", nodes, "reach", "--port", fmt.Sprintf("tcp/%d,icmp", ServerPort), "--all-members", "-o", "json").Read(t, &matrix, 3)
	type cell struct{ from, to, port string }
	truth := map[cell]string{}
	for _, q := range truths {
		to, _ := strings.CutSuffix(q.To, fmt.Sprintf(":%d", ServerPort))
		port := map[string]string{"tcp": fmt.Sprintf("tcp/%d", ServerPort), "icmp": "icmp"}[q.Protocol]
		if q.Family == 0 && q.Network == "" && port != "" {
			truth[cell{q.From, to, port}] = q.Expect
		}
	}
	count := map[string]int{}
	for _, c := range matrix.Cells {
		for _, pair := range c.Asked {
			want, known := truth[cell{pair.From, pair.To, c.Port}]
			if !known {
				continue
			}
			switch verdict := (asked{Answer: &answered{Verdict: pair.Verdict}}).verdict(); verdict {
			case want:
				count["right"]++
			case "undetermined":
				count[verdict]++
			default:
				t.Errorf("%s to %s, %s: %s, and real packets say %s", pair.From, pair.To, c.Port, verdict, want)
			}
		}
	}
	t.Logf("%v", count)
	if total := count["right"] + count["undetermined"]; total < atLeast || count["undetermined"]*100 > total*3 {
		t.Errorf("%v of %d cells", count, len(matrix.Cells))
	}
}

// Flow is a flow as `flows -o json` prints it.
type Flow struct{ Node, Bridge, Cookie, Match, Stage, For, Flow string }

// Flows lists the flows of nodes.
func Flows(t *testing.T, p rigtest.Program, nodes string) []Flow {
	t.Helper()
	var list struct{ Flows []Flow }
	p.Run("-w", nodes, "flows", "-o", "json").Read(t, &list)
	return list.Flows
}

// CheckFlowNames fails for a flow without a name, and for a bridge with less flows than the rig
// makes. Open vSwitch itself makes one: the flow of a bridge without others.
func CheckFlowNames(t *testing.T, p rigtest.Program, nodes string, atLeast map[string]int) {
	t.Helper()
	count, without := map[string]int{}, 0
	for _, flow := range Flows(t, p, nodes) {
		count[flow.Bridge]++
		isDefault := flow.Bridge != "br-int" && flow.Cookie == "0x0" && flow.Match == "" && strings.HasSuffix(flow.Flow, "actions=NORMAL")
		if named := flow.For != "" || flow.Cookie == "0x0" && flow.Stage != ""; !named && !isDefault || flow.For == "no row has its cookie" {
			without++
			t.Logf("no name: %s", flow.Flow)
		}
	}
	for bridge, least := range atLeast {
		if count[bridge] < least {
			t.Errorf("bridge %s has %d flows, less than %d", bridge, count[bridge], least)
		}
	}
	if without > 0 {
		t.Errorf("%d of %v flows have no name", without, count)
	}
}
