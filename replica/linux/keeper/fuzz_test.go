//go:build linux

package keeper

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/replica/report"
)

// FuzzGate gives any text to what stands between a report and the programs that restore rules: what passes is one
// line, and names no program or file.
func FuzzGate(f *testing.F) {
	for _, seed := range []string{"-A INPUT -m comment --comment \"a \\\" b\" -j ACCEPT",
		"-A INPUT --modprobe=/bin/sh -j ACCEPT", "-A INPUT --help -j ACCEPT", "create s hash:ip hashsize 16777216",
		"table inet t {\n\tchain c {\n\t\tip saddr { 1.2.3.4,\n 1.2.3.5 } drop # handle 5\n\t}\n}\n",
		"add s 1.2.3.4 timeout 5", "ipv4 2 tcp 6 5 ESTABLISHED src=1.1.1.1 dst=2.2.2.2 sport=1 dport=2 src=2.2.2.2 dst=1.1.1.1 sport=2 dport=1 [ASSURED] mark=1", "from 1.2.3.4/8 fwmark 0x1/0xff lookup 5 suppress_prefixlength 0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &space{kernel: &kernel{all: true}, report: report.NewNamespace("")}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if rule, refused := s.checkRule("filter", line, map[string]bool{"INPUT": true}); refused == "" {
				words, _ := splitWords(rule.text)
				for i, word := range words {
					if i > 0 && slices.Contains(strings.Fields("--comment -s -d -i -o -p --log-prefix --nflog-prefix --string --hex-string"), words[i-1]) {
						continue
					}
					name, _, _ := strings.Cut(word, "=")
					for _, own := range []string{"--modprobe", "--help", "--version", "--ipv6"} {
						if len(name) > len("--mode") && strings.HasPrefix(own, name) {
							t.Errorf("%q passes", line)
						}
					}
				}
				if strings.ContainsAny(rule.text, "\n\r\x00") {
					t.Errorf("%q has several lines", rule.text)
				}
			}
			if c, err := parseConnection(line); err == nil && (c.key() == "" || len(c.String()) == 0) {
				t.Errorf("connection %q", line)
			}
			if words := strings.Fields(line); len(words) > 0 {
				_ = s.badSet(words)
			}
			if path, err := settingPath(line); err == nil && !strings.HasPrefix(path, "/proc/sys/net/") {
				t.Errorf("setting %q is %s", line, path)
			}
		}
		set, err := readRuleset(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		s.passGate(set)
		input := set.input()
		if lines := strings.Count(input.text.String(), "\n"); lines != len(input.places) {
			t.Errorf("%d lines, %d places", lines, len(input.places))
		}
		for line := range strings.Lines(input.text.String()) {
			plain, _ := unquoted(line)
			for _, word := range strings.Fields(plain) {
				if word == "include" || word == "define" {
					t.Errorf("%q passes", line)
				}
			}
		}
	})
}
