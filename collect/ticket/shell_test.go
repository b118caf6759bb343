package ticket

import (
	"fmt"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestCommandLinesAreSplitAsShellsDo checks the words of command lines, and the programs behind them.
func TestCommandLinesAreSplitAsShellsDo(t *testing.T) {
	one := func(words ...string) statement { return statement{words: words} }
	for line, want := range map[string][]statement{
		"ovs-vsctl show; ovs-ofctl dump-flows br0": {one("ovs-vsctl", "show"),
			one("ovs-ofctl", "dump-flows", "br0")},
		"ovs-vsctl show && echo ok || true": {one("ovs-vsctl", "show"), one("echo", "ok"), one("true")},
		"ovs-ofctl dump-flows 'br 0' 2>&1 | tee -a out.txt": {{words: []string{"ovs-ofctl", "dump-flows", "br 0"},
			pipe: [][]string{{"tee", "-a", "out.txt"}}}},
		"ovs-ofctl show br0 > /tmp/x 2>/dev/null": {{words: []string{"ovs-ofctl", "show", "br0"},
			file: "/tmp/x"}},
		"x exec $(ps | grep a | awk '{print $1}') ovs-vsctl show": {one("x", "exec", "$(ps | grep a | awk '{print $1}')",
			"ovs-vsctl", "show")},
		"ovs-ofctl dump-flows `ovs-vsctl list-br`":      {one("ovs-ofctl", "dump-flows", "`ovs-vsctl list-br`")},
		"ovs-ofctl dump-flows br0 # the bridge":         {one("ovs-ofctl", "dump-flows", "br0")},
		`ssh n1 "ovs-ofctl dump-flows br0 | grep drop"`: {one("ssh", "n1", "ovs-ofctl dump-flows br0 | grep drop")},
		"it's; a":           {one("it's"), one("a")},
		"a&>b":              {{words: []string{"a"}, file: "b"}},
		"a |& b":            {{words: []string{"a"}, pipe: [][]string{{"b"}}}},
		"a <(b c) > >(d e)": {{words: []string{"a", "<(b c)"}, file: ">(d e)"}},
		"a &":               {one("a")},
		"| | ;; &":          nil,
		"":                  nil,
		"a \\":              {one("a", `\`)},
		"$(":                {one("$(")},
	} {
		expect.Equal(t, fmt.Sprintf("%q", statements(line)), fmt.Sprintf("%q", want), line)
	}
}
