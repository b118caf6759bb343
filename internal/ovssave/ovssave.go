// Package ovssave reads the script that ovs-save writes (save-flows): a list of
// ovs-ofctl commands that would restore a switch. It is read, never run.
package ovssave

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
)

// Part is one command of the script.
type Part struct {
	Bridge   string
	Command  string // "add-tlv-map", "add-groups", "add-flows", "replace-flows"
	OpenFlow string // "" where the script doesn't tell
	File     string // the dump's name, without its folder; "" where Text holds it
	Text     string // of a here-document (ovs-save of OVS 2.8 and before)
	// Mappings are those of add-tlv-map, as ovs-ofctl takes them one by one:
	// "{class=0x102,type=0x80,len=4}->tun_metadata0".
	Mappings []string
}

// command matches a line of the script (ovs-save of OVS 2.0 to 3.7).
var command = regexp.MustCompile(`^\s*ovs-ofctl\s+(.*?)\b(add-tlv-map|add-groups|add-flows|replace-flows)\s+(.*)$`)

var (
	version = regexp.MustCompile(`(?:^|\s)-O\s*(OpenFlow1[0-5])\b`)
	hereDoc = regexp.MustCompile(`<<-?\s*['"\\]?([A-Za-z_]+)['"]?\s*$`)
)

// Is tells whether the first bytes of a file are of such a script.
func Is(start []byte) bool {
	for line := range strings.Lines(string(start)) {
		if command.MatchString(strings.TrimRight(line, "\n")) {
			return true
		}
	}
	return false
}

// What is read of a script: ovs-save writes three commands for a bridge.
const (
	mostCommands = 10000
	mostText     = 64 << 20 // bytes of a here-document
	mostLine     = 16 << 20
)

// Read reads the script. Where it ends within a here-document, or has more than
// any switch's has, cut says so: what follows is not known.
func Read(r io.Reader) (parts []Part, cut string, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, mostLine)
	for lines.Scan() {
		m := command.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		if len(parts) == mostCommands {
			return parts, fmt.Sprintf("has more than %d commands", mostCommands), nil
		}
		p := Part{Command: m[2]}
		if v := version.FindStringSubmatch(m[1] + " " + m[3]); v != nil {
			p.OpenFlow = v[1]
		}
		var words []string
		for _, w := range strings.Fields(m[3]) {
			if !strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "OpenFlow1") {
				words = append(words, strings.Trim(w, `"'`))
			}
		}
		if len(words) == 0 {
			continue
		}
		p.Bridge = words[0]
		if p.Command == "add-tlv-map" {
			p.Mappings = mappings(strings.Join(words[1:], " "))
		} else if end := hereDoc.FindStringSubmatch(m[3]); end != nil {
			var whole bool
			if p.Text, whole = body(lines, end[1]); !whole {
				return append(parts, p), "has a here-document that is too long or has no end", nil
			}
		} else if len(words) > 1 {
			p.File = path.Base(words[len(words)-1])
		}
		parts = append(parts, p)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return parts, fmt.Sprintf("has a line of over %d bytes", mostLine), nil
	}
	return parts, "", lines.Err()
}

// mappings splits "{...}->tun_metadataN,{...}->tun_metadataM".
func mappings(text string) []string {
	var list []string
	for _, part := range strings.SplitAfter(text, ",{") {
		part = strings.TrimSuffix(part, ",{")
		if part == "" {
			continue
		}
		if !strings.HasPrefix(part, "{") {
			part = "{" + part
		}
		list = append(list, part)
	}
	return list
}

// body reads a here-document.
func body(lines *bufio.Scanner, end string) (text string, whole bool) {
	var b strings.Builder
	for b.Len() < mostText && lines.Scan() {
		if strings.TrimLeft(lines.Text(), "\t") == end {
			return b.String(), true
		}
		b.WriteString(lines.Text())
		b.WriteByte('\n')
	}
	return b.String(), false
}
