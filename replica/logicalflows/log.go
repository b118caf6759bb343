package logicalflows

import (
	"bufio"
	"os"

	"ovs-offline/internal/lazyregexp"
)

// warning matches the end of a line of ovn-trace's log about a text that it can't parse:
// the mark, the part of the flow that the text is, and the reason, which a text with a
// template has not (parse_lflow_for_datapath in utilities/ovn-trace.c).
var warning = lazyregexp.New(markPattern + `: parsing (?:expression|actions) failed(?: \((.*)\))?$`)

// maxLine is the maximum number of bytes of a line that are read. The texts of logical
// flows have up to some hundred KB, where an ACL names many addresses.
const maxLine = 64 << 20

// readLog returns the reason for each flow, by UUID, that ovn-trace, as its log reports, can't
// parse.
func readLog(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	found := map[string]string{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if match := warning.FindSubmatch(lines.Bytes()); match != nil {
			found[string(match[1])] = string(match[2])
		}
	}
	return found, lines.Err()
}
