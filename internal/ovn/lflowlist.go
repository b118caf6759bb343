package ovn

import (
	"encoding/json"
	"fmt"
	"io"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/lines"
	"ovs-offline/pkg/ovsdb"
)

var (
	listedDatapath = lazyregexp.New(`^Datapath: .*\(([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\) +Pipeline: (ingress|egress)$`)
	listedFlow     = lazyregexp.New(`^ +(?:uuid=0x([0-9a-f]{8}), *)?table=(\d+) *\( *(\w*) *\), priority=(\d+) *, match=\((.*)\), action=\((.*)\)$`)
)

// LogicalFlowRows writes the logical flows that `ovn-sbctl lflow-list` prints as rows of the table
// Logical_Flow, as `ovn-sbctl list` prints them. It does not print UUIDs, but for the first eight
// digits where it is asked for them (--uuid): those of the rows are made from their content. The
// columns controller_meter, tags and most of external_ids are not printed either. lost is the
// number of lines that are no logical flows.
func LogicalFlowRows(out io.Writer, in io.Reader) (flows, lost int, err error) {
	datapath, pipeline := "", ""
	skipped, err := lines.Read(in, func(line []byte) error {
		if match := listedDatapath.FindSubmatch(line); match != nil {
			datapath, pipeline = string(match[1]), string(match[2])
			return nil
		}
		match := listedFlow.FindSubmatch(line)
		switch {
		case match != nil && datapath != "":
			flows++
			return writeFlow(out, datapath, pipeline, match)
		case len(line) > 0:
			lost++
		}
		return nil
	})
	return flows, lost + skipped, err
}

// writeFlow writes a logical flow, of which match has the parts.
func writeFlow(out io.Writer, datapath, pipeline string, match [][]byte) error {
	id := ovsdb.UUIDOf(fmt.Sprintf("%s %s %s", datapath, pipeline, match[0]))
	if len(match[1]) > 0 {
		id = string(match[1]) + id[8:]
	}
	_, err := fmt.Fprintf(out, "_uuid : %s\nlogical_datapath : %s\npipeline : %s\ntable_id : %s\npriority : %s\nmatch : %s\nactions : %s\nexternal_ids : {stage-name=%s}\n",
		id, datapath, pipeline, match[2], match[4], quote(match[5]), quote(match[6]), quote(match[3]))
	return err
}

// quote returns a string in quotes, as the tools of OVSDB print it.
func quote(text []byte) string {
	quoted, _ := json.Marshal(string(text)) // a string can always be written
	return string(quoted)
}
