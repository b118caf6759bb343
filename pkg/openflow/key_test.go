package openflow

import (
	"maps"
	"strings"
	"testing"

	"ovs-offline/test/oracle/captures"
)

// TestQuotedNamesAreNoFields reads flows of ovs-ofctl --names whose port is called as a field.
func TestQuotedNamesAreNoFields(t *testing.T) {
	for text, want := range map[string]Key{
		`cookie=0x2a, table=8, priority=50,in_port="a,table=9" actions=drop`: {0x2a, 8, 50,
			`in_port="a,table=9"`},
		`table=8,in_port="x actions=",metadata=0x3 actions=resubmit(,9)`: {0, 8, 32768,
			`in_port="x actions=",metadata=0x3`},
		`table=8,priority=1,ip,metadata=0x7 actions=learn(table=9,priority=2,metadata=0x1)`: {0, 8, 1, "ip,metadata=0x7"},
	} {
		if got, err := ParseKey(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestFieldsOfKeys(t *testing.T) {
	k, err := ParseKey(`table=8,in_port="reg14=0x9,x",xreg14=0x2,reg14=0x5,reg15=0x7/0xff,tcp,metadata=0x3 actions=drop`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{"reg14": 5, "reg15": 0, "metadata": 3, "tcp": 0, "reg1": 0, "table": 0} {
		if got := k.Number(name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
	if value, ok := k.Field("reg15"); !ok || value != "0x7/0xff" {
		t.Errorf("reg15: got %q %v", value, ok)
	}
	if _, ok := k.Field("tcp"); !ok {
		t.Error("the match has no tcp")
	}
}

// TestUnreadableNumbersStayInTheMatch reads flows of a switch with names of tables.
func TestUnreadableNumbersStayInTheMatch(t *testing.T) {
	for text, want := range map[string]Key{
		"cookie=0x1, table=acl, priority=5,ip actions=drop": {0x1, 0, 5, "table=acl,ip"},
		"cookie=x,table=1,ip actions=drop":                  {0, 1, 32768, "cookie=x,ip"},
		"priority=-,udp actions=drop":                       {0, 0, 0, "priority=-,udp"},
	} {
		if got, err := ParseKey(text); err == nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v and an error", text, got, err, want)
		}
	}
}

func TestClauses(t *testing.T) {
	for actions, want := range map[string]map[uint32]string{
		"conjunction(7,1/2)":                     {7: "1/2"},
		"conjunction(7,1/2),conjunction(9,2/3)":  {7: "1/2", 9: "2/3"},
		"conjunction(x,1/2),conjunction(0x9,2/3": {9: "2/3"},
		"drop":                                   {},
		"":                                       {},
	} {
		if got := maps.Collect(Clauses(actions)); !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", actions, got, want)
		}
	}
}

func TestCutLearn(t *testing.T) {
	for text, want := range map[string][3]string{
		"resubmit(,9)": {"resubmit(,9)", "", ""},
		"learn(table=9,load:0x1->reg0[]),load:0x2->reg1[]": {"", "table=9,load:0x1->reg0[]", ",load:0x2->reg1[]"},
		"output:1,learn(table=9,output(max_len=(0))),drop": {"output:1,", "table=9,output(max_len=(0))", ",drop"},
		"learn(table=9": {"", "table=9", ""},
	} {
		before, arguments, after, found := CutLearn(text)
		if got := [3]string{before, arguments, after}; got != want || found != strings.Contains(text, "learn") {
			t.Errorf("%s: got %q, %v; want %q", text, got, found, want)
		}
	}
}

// FuzzKey checks that the key of a flow's own text has the same fields.
func FuzzKey(f *testing.F) {
	captures.Captured(f, "ovs-ofctl_-O_OpenFlow15_dump-flows_br-int", 1<<12, func(content []byte) {
		for line := range strings.Lines(string(content)) {
			f.Add(line)
		}
	})
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ParseKey(text)
		if err != nil {
			return
		}
		again, err := ParseKey("priority=7," + k.Match)
		if again.Match != k.Match || err != nil {
			t.Errorf("%q has the match %q, and that reads as %q (%v)", text, k.Match, again.Match, err)
		}
	})
}
