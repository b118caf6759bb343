package ovn

import (
	"bufio"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
)

var (
	listedDatapath = regexp.MustCompile(`^Datapath: .*\(([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\) +Pipeline: (ingress|egress)$`)
	listedFlow     = regexp.MustCompile(`^ +(?:uuid=0x([0-9a-f]{8}), *)?table=(\d+) *\( *(\w*) *\), priority=(\d+) *, match=\((.*)\), action=\((.*)\)$`)
)

// maxListedFlow is the maximum length of a line of `ovn-sbctl lflow-list`, in bytes.
const maxListedFlow = 16 << 20

// LogicalFlowRows writes the logical flows that `ovn-sbctl lflow-list` prints as rows of the table
// Logical_Flow, as `ovn-sbctl list` prints them. It does not print UUIDs, but for the first eight
// digits where it is asked for them (--uuid): those of the rows are made from their content. The
// columns controller_meter, tags and most of external_ids are not printed either. lost is the
// number of lines that are no logical flows.
func LogicalFlowRows(out io.Writer, in io.Reader) (flows, lost int, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxListedFlow)
	datapath, pipeline := "", ""
	for lines.Scan() {
		line := lines.Text()
		if match := listedDatapath.FindStringSubmatch(line); match != nil {
			datapath, pipeline = match[1], match[2]
			continue
		}
		match := listedFlow.FindStringSubmatch(line)
		if match == nil || datapath == "" {
			if line != "" {
				lost++
			}
			continue
		}
		sum := sha1.Sum([]byte(datapath + pipeline + line))
		id := fmt.Sprintf("%x", sum[:16])
		if match[1] != "" {
			id = match[1] + id[8:]
		}
		_, err := fmt.Fprintf(out, "_uuid : %s-%s-%s-%s-%s\nlogical_datapath : %s\npipeline : %s\ntable_id : %s\npriority : %s\nmatch : %s\nactions : %s\nexternal_ids : {stage-name=%s}\n",
			id[:8], id[8:12], id[12:16], id[16:20], id[20:], datapath, pipeline, match[2], match[4], quote(match[5]), quote(match[6]), quote(match[3]))
		if err != nil {
			return flows, lost, err
		}
		flows++
	}
	return flows, lost, lines.Err()
}

// quote returns a string in quotes, as the tools of OVSDB print it.
func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string can always be written
	return string(quoted)
}
