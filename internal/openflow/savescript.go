package openflow

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
)

// SaveCommand is one command of the script that ovs-save writes.
type SaveCommand struct {
	Bridge   string
	Command  string // "add-tlv-map", "add-groups", "add-flows", "replace-flows"
	OpenFlow string // "" where the script doesn't tell
	File     string // the dump's name, without its folder; "" where Text holds it
	Text     string // of a here-document (ovs-save of OVS 2.8 and before)
	// Mappings are those of add-tlv-map, as ovs-ofctl takes them one by one:
	// "{class=0x102,type=0x80,len=4}->tun_metadata0".
	Mappings []string
}

// saveCommand matches a line of the script (ovs-save of OVS 2.0 to 3.7).
var saveCommand = regexp.MustCompile(`^\s*ovs-ofctl\s+(.*?)\b(add-tlv-map|add-groups|add-flows|replace-flows)\s+(.*)$`)

var (
	saveVersion = regexp.MustCompile(`(?:^|\s)-O\s*(OpenFlow1[0-5])\b`)
	hereDoc     = regexp.MustCompile(`<<-?\s*['"\\]?([A-Za-z_]+)['"]?\s*$`)
)

// IsSaveScript reports whether the first bytes of a file are of a script that
// ovs-save (save-flows) wrote.
func IsSaveScript(start []byte) bool {
	for line := range strings.Lines(string(start)) {
		if saveCommand.MatchString(strings.TrimRight(line, "\n")) {
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

// ReadSaveScript reads the script that ovs-save (save-flows) writes, a list of
// ovs-ofctl commands, without running it. If the script ends within a
// here-document or exceeds a limit, cut says how, and what follows is unknown.
func ReadSaveScript(r io.Reader) (parts []SaveCommand, cut string, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, mostLine)
	for lines.Scan() {
		m := saveCommand.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		if len(parts) == mostCommands {
			return parts, fmt.Sprintf("has more than %d commands", mostCommands), nil
		}
		p := SaveCommand{Command: m[2]}
		if v := saveVersion.FindStringSubmatch(m[1] + " " + m[3]); v != nil {
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
