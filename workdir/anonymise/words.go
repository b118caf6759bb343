package anonymise

import (
	_ "embed"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// wordList has the words with a meaning for Open vSwitch, OVN, Kubernetes, OpenStack and the tools of Linux whose
// output is collected: of database schemas, flows, logical flows, settings and conventions for names.
//
//go:embed words.txt
var wordList string

// proseList has further words of messages, which are read by people.
//
//go:embed prose.txt
var proseList string

// vocabulary is words that stay, in lower case.
type vocabulary map[string]bool

func vocabularyOf(lists ...string) vocabulary {
	v := vocabulary{}
	for _, list := range lists {
		for line := range strings.Lines(list) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			for _, word := range strings.Fields(line) {
				v[word] = true
			}
		}
	}
	return v
}

// has reports whether a word stays: it has a meaning, it is a number, perhaps with a unit, a part of a time, or it is
// one letter.
func (v vocabulary) has(text string) bool {
	return len(text) == 1 || v[strings.ToLower(text)] || isQuantity(text) || timePart.MatchString(text)
}

// timePart matches the day and the hour of a time as RFC 3339 has it.
var timePart = lazyregexp.New(`^[0-3][0-9]T[0-2][0-9]$`)

// isQuantity reports whether a word is a number, or one with a unit.
func isQuantity(text string) bool {
	units := []string{"", "s", "ms", "us", "ns", "m", "h", "d", "k", "kb", "mb", "gb", "kib", "mib", "gib", "b", "bps", "kbps", "mbps", "gbps", "t", "z", "th", "x"}
	unit := strings.TrimLeft(text, "0123456789")
	if len(unit) == len(text) {
		return false
	}
	for _, known := range units {
		if strings.EqualFold(unit, known) {
			return true
		}
	}
	return false
}
