package appctl

import (
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"

	"ovs-offline/internal/lines"
)

// Megaflow is a flow of dpctl/dump-flows (lib/dpctl.c and lib/dpif.c, dpif_flow_stats_format) or of dpif/dump-flows.
type Megaflow struct {
	UFID    string // "" without -m
	Key     string // the match: "recirc_id(0),in_port(2),eth(...)..."
	Packets uint64
	Bytes   uint64
	Used    string // "never", or how long ago: "2.3s"
	// Offloaded is "yes", or "partial" where the hardware only marks the packets; "" for a flow that is
	// not offloaded, and without -m.
	Offloaded string
	Layer     string // "ovs", "tc" or "dpdk"; "" without -m
	Actions   string
}

// Megaflows yields the flows of dpctl/dump-flows, and ErrMegaflow for a line that looks like a flow
// and can't be read. It ends with the first other error, which it yields.
func Megaflows(r io.Reader) iter.Seq2[Megaflow, error] {
	return func(yield func(Megaflow, error) bool) {
		skipped, err := lines.Read(r, func(raw []byte) error {
			line := strings.TrimSpace(string(raw))
			if !strings.Contains(line, "recirc_id(") && !strings.Contains(line, "in_port(") {
				return nil // a heading
			}
			megaflow, ok := readMegaflow(line)
			var err error
			if !ok {
				err = ErrMegaflow
			}
			if !yield(megaflow, err) {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			return
		}
		for range skipped {
			if !yield(Megaflow{}, ErrMegaflow) {
				return
			}
		}
		if err != nil {
			yield(Megaflow{}, err)
		}
	}
}

// ErrMegaflow is the error of a line that looks like a flow and can't be read, or that is too long.
var ErrMegaflow = errors.New("not a flow of the datapath")

// errEnough ends reading.
var errEnough = errors.New("enough")

func readMegaflow(line string) (megaflow Megaflow, ok bool) {
	key, rest, ok := strings.Cut(line, ", packets:")
	if !ok {
		return megaflow, false
	}
	if id, after, found := strings.Cut(key, " "); found && strings.HasPrefix(id, "ufid:") { // dpif/dump-flows prints no comma
		megaflow.UFID, key = strings.TrimSuffix(strings.TrimPrefix(id, "ufid:"), ","), after
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
		case "offloaded":
			megaflow.Offloaded = value
		case "dp":
			megaflow.Layer = value
		}
		if err != nil {
			return megaflow, false
		}
	}
	megaflow.Actions = strings.TrimSpace(megaflow.Actions)
	return megaflow, megaflow.Actions != ""
}
