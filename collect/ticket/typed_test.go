package ticket

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/workdir/recording"
)

// TestTypedCommandsAreReadAsShellsDo checks the words of commands in tickets, scripts and guides, and what of them
// only a shell can carry out.
func TestTypedCommandsAreReadAsShellsDo(t *testing.T) {
	for text, want := range map[string]string{
		"ovs-vsctl add-br br0":                                                  "1 [ovs-vsctl add-br br0]",
		"[root@n1 ~]# ovs-vsctl add-br br0":                                     "1 n1: [ovs-vsctl add-br br0]",
		"$ sudo ovs-vsctl add-br br0 # the bridge":                              "1 [ovs-vsctl add-br br0]",
		"# ovs-vsctl add-br br0":                                                "1 [ovs-vsctl add-br br0]",
		"- `ovs-vsctl add-br br0`":                                              "1 [ovs-vsctl add-br br0]",
		"2. ovs-vsctl add-br br0":                                               "1 [ovs-vsctl add-br br0]",
		"ovs-vsctl add-br a && ovs-vsctl add-br b; ovs-vsctl add-br c":          "1 [ovs-vsctl add-br a] | 1 [ovs-vsctl add-br b] | 1 [ovs-vsctl add-br c]",
		"ovn-nbctl ls-add s \\\n  -- lsp-add s p1 \\\n  -- lsp-add s p2\n\nfoo": "1 [ovn-nbctl ls-add s -- lsp-add s p1 -- lsp-add s p2]",
		`ovs-ofctl add-flow br0 "in_port=1 actions=drop"`:                       "1 [ovs-ofctl add-flow br0 {in_port=1 actions=drop}]",
		`ovs-ofctl add-flow br0 in_port=1,actions='output:2'`:                   "1 [ovs-ofctl add-flow br0 in_port=1,actions=output:2]",
		`ovn-nbctl acl-add s to-lport 1 "inport == \"p1\" && \$as1" drop`:       `1 [ovn-nbctl acl-add s to-lport 1 {inport == "p1" && $as1} drop]`,
		`ovn-nbctl acl-add s to-lport 1 'outport == "p1"' drop`:                 `1 [ovn-nbctl acl-add s to-lport 1 {outport == "p1"} drop]`,
		"kubectl exec -n ovn pod-1 -c ovs -- ovs-vsctl add-br br0":              "1 pod-1: [ovs-vsctl add-br br0]",
		"kubectl ko nbctl ls-add s":                                             "1 [ovn-nbctl ls-add s]",
		`ssh n2 "sudo ovs-vsctl add-br br0"`:                                    "1 n2: [ovs-vsctl add-br br0]",
		"check ovn-nbctl ls-add s":                                              "1 [ovn-nbctl ls-add s]",
		"as hv1\nas hv1 ovs-vsctl add-br br0":                                   "2 hv1: [ovs-vsctl add-br br0]",
		"/usr/bin/ovs-vsctl add-br br0":                                         "1 [ovs-vsctl add-br br0]",
		"microovn.ovn-nbctl ls-add s":                                           "1 [ovn-nbctl ls-add s]",
		"ovs-ofctl add-flows br0 - <<EOF\na\nb c\nEOF\novs-vsctl add-br x":      "1 [ovs-ofctl add-flows br0 -] <2 a,b c> | 5 [ovs-vsctl add-br x]",
		"cat <<'E' | ovs-ofctl add-flows br0 -\na\nE\n":                         "1 [ovs-ofctl add-flows br0 -] <1 a>",
		"cat <<E > flows.txt\nin_port=1\nE\novs-vsctl add-br x":                 "4 [ovs-vsctl add-br x]",
		// Sentences, outputs and logs are none.
		"Then run ovs-vsctl del-br br0 to clean up.":                          "",
		"ovs-vsctl: no bridge named br0":                                      "",
		"ovs-vsctl (Open vSwitch) 3.1.0":                                      "",
		"2026-01-01T00:00:00Z|00001|vsctl|INFO|Called as ovs-vsctl add-br b0": "",
		// What a shell does is named.
		"ovs-vsctl add-br $BR":                                     "1 [ovs-vsctl add-br $BR] needs the variable $BR",
		`ovs-vsctl add-br "br${i}"`:                                "1 [ovs-vsctl add-br br${i}] needs the variable ${i}",
		"ovs-vsctl add-br $(reboot)":                               "1 [ovs-vsctl add-br $(reboot)] needs the output of another command, $(reboot)",
		"ovs-vsctl add-br \"`reboot`\"":                            "1 [ovs-vsctl add-br `reboot`] needs the output of another command, `reboot`",
		"ovs-vsctl add-br br0 > /etc/passwd":                       "1 [ovs-vsctl add-br br0] needs the redirection > /etc/passwd",
		"ovs-ofctl add-flows br0 - < flows":                        "1 [ovs-ofctl add-flows br0 -] needs the redirection < flows",
		"echo x | ovs-ofctl add-flows br0 -":                       "1 [ovs-ofctl add-flows br0 -] needs a pipe",
		"ovs-vsctl list-br | xargs -n1 ovs-vsctl del-br":           "1 [ovs-vsctl list-br] needs a pipe | 1 [ovs-vsctl del-br] needs a pipe",
		"ovs-vsctl add-br br0 | sh":                                "1 [ovs-vsctl add-br br0] needs a pipe",
		"ovs-vsctl br-exists b || ovs-vsctl add-br b":              "1 [ovs-vsctl br-exists b] | 1 [ovs-vsctl add-br b] needs the outcome of the command before it",
		"[ -e /x ] && ovs-vsctl del-br b":                          "1 [ovs-vsctl del-br b] needs the outcome of the command before it",
		"cd /tmp && ovs-vsctl add-br b":                            "1 [ovs-vsctl add-br b]",
		"for i in 1 2; do ovs-vsctl add-br b; done":                "1 [ovs-vsctl add-br b] needs a loop or a condition",
		"for i in 1 2\ndo\n ovs-vsctl add-br b\ndone\novs-vsctl a": "3 [ovs-vsctl add-br b] needs a loop or a condition | 5 [ovs-vsctl a]",
		"if I run this:\n\nthen\novs-vsctl add-br b":               "4 [ovs-vsctl add-br b]",
		"ovs-vsctl add-br b{1,2}":                                  "1 [ovs-vsctl add-br b{1,2}] needs a list outside of quotes, {1,2}",
		"ovs-vsctl add-br 'b":                                      "1 [ovs-vsctl add-br 'b] needs a quotation mark without its end",
		"OVN_NB_DB=tcp:1.1.1.1:6641 ovn-nbctl ls-add s":            "1 [ovn-nbctl ls-add s] needs the variable OVN_NB_DB=tcp:1.1.1.1:6641",
		"ovs-ofctl add-flows br0 - <<EOF\na":                       "1 [ovs-ofctl add-flows br0 -] needs a here-document without its end",
		"ovs-vsctl add-br " + strings.Repeat("x", 70000):           "1 needs more than 64 KiB of arguments",
	} {
		found := ReadTyped(text).Commands
		var list []string
		for _, c := range found {
			list = append(list, typedText(c))
		}
		expect.Equal(t, strings.Join(list, " | "), want, text[:min(len(text), 100)])
	}
}

// typedText writes a command in one line.
func typedText(c recording.Typed) string {
	text := fmt.Sprint(c.Line)
	if c.Host != "" {
		text += " " + c.Host + ":"
	}
	words := c.Words
	for i, word := range words {
		if strings.Contains(word, " ") {
			words[i] = "{" + word + "}"
		}
	}
	if all := strings.Join(words, " "); len(all) < 1000 {
		text += " [" + all + "]"
	}
	if c.Input != nil {
		text += fmt.Sprintf(" <%d %s>", len(c.Input), strings.Join(c.Input, ","))
	}
	if c.Needs != "" {
		text += " needs " + c.Needs
	}
	return text
}

// TestCommentsOfScriptsAreNotTyped checks that "# " is a prompt of root unless other commands have none.
func TestCommentsOfScriptsAreNotTyped(t *testing.T) {
	script := ReadTyped("#!/bin/sh\novs-vsctl add-br br0\n# ovs-vsctl del-br br0\n#ovs-vsctl del-br br1\n")
	if len(script.Commands) != 1 || fmt.Sprint(script.Comments) != "[3 4]" {
		t.Errorf("got %v, want the first command, and the lines 3 and 4 as comments", script)
	}
	script = ReadTyped("# ovs-vsctl add-br br0\n# ovs-vsctl add-br br1\n")
	if len(script.Commands) != 2 || len(script.Comments) != 0 {
		t.Errorf("got %v, want both commands", script)
	}
}

// TestManyLinesAreReadInTime checks that what a text repeats costs no more each time.
func TestManyLinesAreReadInTime(t *testing.T) {
	for _, part := range []string{"ovs-vsctl x <<E%d\n", "ovs-vsctl x {{{{{{{{{{{{{{ ${${${${${${${ %d \\\n",
		"ovs-vsctl x \"`$(\" '\"` %d\n", "[root@n%d ~]# ovs-vsctl x ;;;; | | ovs-vsctl y\n",
		"for i in x\ndo ovs-vsctl %d\n"} {
		var text strings.Builder
		for i := range 10000 {
			fmt.Fprintf(&text, part, i)
		}
		ReadTyped(text.String())
	}
}

// FuzzReadTyped checks that each command that is read has a tool and a line of the text.
func FuzzReadTyped(f *testing.F) {
	for _, seed := range []string{"# ovs-vsctl add-br a\n", "cat <<E | ovs-ofctl add-flows br0 -\na\nE\n",
		"for i in 1\ndo ovs-vsctl add-br \"$i\" \\\n && x; done", "ssh n 'ovn-nbctl ls-add {a,b}'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		script := ReadTyped(text)
		for _, c := range script.Commands {
			if len(c.Words) == 0 || toolTyped(c.Words[0]) != c.Words[0] || c.Line < 1 || c.Line > strings.Count(text, "\n")+1 &&
				!isHTML(text) {
				t.Errorf("%+v", c)
			}
		}
	})
}
