package appctl

import (
	"bufio"
	"io"
	"iter"
	"strconv"
	"strings"
)

// Megaflow is a flow of dpctl/dump-flows (lib/dpctl.c and lib/dpif.c, dpif_flow_stats_format).
type Megaflow struct {
	UFID    string // "" without -m
	Key     string // the match: "recirc_id(0),in_port(2),eth(...)..."
	Packets uint64
	Bytes   uint64
	Used    string // "never", or how long ago: "2.3s"
	Actions string
}

// maxMegaflow bounds a line in bytes.
const maxMegaflow = 1 << 20

// Megaflows yields the flows of dpctl/dump-flows. ok is false for a line that looks like a
// flow and can't be read. It ends with the first error of reading, which it yields.
func Megaflows(r io.Reader) iter.Seq2[Megaflow, error] {
	return func(yield func(Megaflow, error) bool) {
		in := bufio.NewScanner(r)
		in.Buffer(nil, maxMegaflow)
		for in.Scan() {
			line := strings.TrimSpace(in.Text())
			if !strings.Contains(line, "recirc_id(") && !strings.Contains(line, "in_port(") {
				continue // a heading
			}
			megaflow, ok := readMegaflow(line)
			var err error
			if !ok {
				err = errMegaflow
			}
			if !yield(megaflow, err) {
				return
			}
		}
		if err := in.Err(); err != nil {
			yield(Megaflow{}, err)
		}
	}
}

// errMegaflow is the error of a line that looks like a flow and can't be read.
var errMegaflow = strconv.ErrSyntax

func readMegaflow(line string) (megaflow Megaflow, ok bool) {
	key, rest, ok := strings.Cut(line, ", packets:")
	if !ok {
		return megaflow, false
	}
	if id, after, found := strings.Cut(key, ", "); found && strings.HasPrefix(id, "ufid:") {
		megaflow.UFID, key = strings.TrimPrefix(id, "ufid:"), after
	}
	megaflow.Key = key
	stats, actions, ok := strings.Cut("packets:"+rest, "actions:")
	if !ok {
		return megaflow, false
	}
	megaflow.Actions, _, _ = strings.Cut(actions, ", dp-extra-info:")
	for field := range strings.SplitSeq(stats, ", ") {
		name, value, _ := strings.Cut(field, ":")
		var err error
		switch name {
		case "packets":
			megaflow.Packets, err = strconv.ParseUint(value, 10, 64)
		case "bytes":
			megaflow.Bytes, err = strconv.ParseUint(value, 10, 64)
		case "used":
			megaflow.Used = value
		}
		if err != nil {
			return megaflow, false
		}
	}
	megaflow.Actions = strings.TrimSpace(megaflow.Actions)
	return megaflow, megaflow.Actions != ""
}
