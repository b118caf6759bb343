package openflow

import (
	"fmt"
	"io"
	"path"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// SaveCommand is one command of the script that ovs-save writes.
type SaveCommand struct {
	Bridge   string
	Command  string  // "add-tlv-map", "add-groups", "add-flows", "replace-flows"
	OpenFlow Version // 0 if the command does not name one
	File     string  // the base name of the dump; "" if Text holds it
	Text     string  // the here-document (ovs-save of OVS 2.8 and before)
	// Mappings are the arguments of add-tlv-map, one mapping each:
	// "{class=0x102,type=0x80,len=4}->tun_metadata0".
	Mappings []string
}

var (
	// saveCommand matches a line of the script (ovs-save of OVS 2.0 to 3.7).
	saveCommand = lazyregexp.New(`^\s*ovs-ofctl\s+(.*?)\b(add-tlv-map|add-groups|add-flows|replace-flows)\s+(.*)$`)
	saveVersion = lazyregexp.New(`(?:^|\s)-O\s*(OpenFlow1[0-5])\b`)
	hereDoc     = lazyregexp.New(`<<-?\s*['"\\]?([A-Za-z_]+)['"]?\s*$`)
)

// IsSaveScript reports whether a file that starts with these bytes is a script
// that ovs-save (save-flows) wrote.
func IsSaveScript(start []byte) bool {
	for line := range strings.Lines(string(start)) {
		if saveCommand.MatchString(strings.TrimRight(line, "\n")) {
			return true
		}
	}
	return false
}

// Limits for reading a script: ovs-save writes three commands for each bridge.
const (
	maxCommands = 10000
	maxHereDoc  = 64 << 20 // bytes
)

// ReadSaveScript reads the script that ovs-save (save-flows) writes, a list of
// ovs-ofctl commands, without running it. If the script ends within a here-document or
// exceeds a limit, cut gives the reason, and the commands from there on are missing.
func ReadSaveScript(r io.Reader) (commands []SaveCommand, cut string, err error) {
	var text strings.Builder
	end := "" // the line that ends the here-document of the last command; "" outside of one
	for _, l := range lines(r) {
		switch {
		case l.err != nil:
			return commands, "", l.err
		case l.tooLong:
			return commands, fmt.Sprintf("has a line of over %d bytes", maxLine), nil
		case end != "" && strings.TrimLeft(l.text, "\t") == end:
			commands[len(commands)-1].Text, end = text.String(), ""
			text.Reset()
		case end != "":
			text.WriteString(l.text + "\n")
		default:
			c, delimiter, ok := readSaveCommand(l.text)
			if !ok {
				continue
			}
			if len(commands) == maxCommands {
				return commands, fmt.Sprintf("has more than %d commands", maxCommands), nil
			}
			commands, end = append(commands, c), delimiter
		}
		if text.Len() > maxHereDoc {
			break
		}
	}
	if end != "" {
		commands[len(commands)-1].Text = text.String()
		return commands, "has a here-document that is too long or has no end", nil
	}
	return commands, "", nil
}

// readSaveCommand reads a line of the script. delimiter is the end of the
// here-document that begins there, "" for none.
func readSaveCommand(line string) (c SaveCommand, delimiter string, ok bool) {
	m := saveCommand.FindStringSubmatch(line)
	if m == nil {
		return c, "", false
	}
	c.Command = m[2]
	if v := saveVersion.FindStringSubmatch(m[1] + " " + m[3]); v != nil {
		c.OpenFlow = ParseVersion(v[1])
	}
	var words []string
	for _, w := range strings.Fields(m[3]) {
		if !strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "OpenFlow1") {
			words = append(words, strings.Trim(w, `"'`))
		}
	}
	if len(words) == 0 {
		return c, "", false
	}
	c.Bridge = words[0]
	if c.Command == "add-tlv-map" {
		c.Mappings = splitMappings(strings.Join(words[1:], " "))
	} else if end := hereDoc.FindStringSubmatch(m[3]); end != nil {
		delimiter = end[1]
	} else if len(words) > 1 {
		c.File = path.Base(words[len(words)-1])
	}
	return c, delimiter, true
}

// splitMappings splits "{...}->tun_metadataN,{...}->tun_metadataM".
func splitMappings(text string) []string {
	var list []string
	for _, part := range strings.Split(text, ",{") {
		if part = strings.TrimPrefix(part, "{"); part != "" {
			list = append(list, "{"+part)
		}
	}
	return list
}
