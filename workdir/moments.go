package workdir

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Moment is when a dump was recorded.
type Moment struct {
	What   string    `json:"what"`             // "flows", DatapathFlows or "connections"
	Bridge string    `json:"bridge,omitempty"` // of flows
	At     time.Time `json:"at"`               // when the command began
}

// DatapathFlows is the What of the datapath's flows.
const DatapathFlows = "datapath flows"

// String returns what was recorded: "flows of br-int".
func (m Moment) String() string {
	if m.Bridge != "" {
		return m.What + " of " + m.Bridge
	}
	return m.What
}

// Moments returns when the flows of each bridge, the flows of the datapath and the connections
// were recorded, the earliest first. A trace takes all of them as recorded at one moment. A dump
// whose time is not known is left out.
func (m *Manifest) Moments() (list []Moment) {
	collection := m.Collection(OVS)
	if collection == nil {
		return nil
	}
	for _, file := range collection.Files {
		if moment := file.moment(); moment.What != "" && !moment.At.IsZero() {
			list = append(list, moment)
		}
	}
	slices.SortStableFunc(list, func(a, b Moment) int { return a.At.Compare(b.At) })
	return list
}

// FlowsRecorded returns when the flows of a bridge were recorded, zero if that is not known.
func (m *Manifest) FlowsRecorded(bridge string) time.Time {
	for _, moment := range m.Moments() {
		if moment.Bridge == bridge {
			return moment.At
		}
	}
	return time.Time{}
}

// RecordedText returns when the node was recorded: where only about that is known of the source, when the last of the dumps was, or
// else the day. It returns "" if nothing is known.
func (m *Manifest) RecordedText() string {
	moments := m.Moments()
	for _, c := range m.Collections {
		switch {
		case c.Recorded.IsZero():
		case !c.RecordedAbout:
			return c.Recorded.UTC().Format(time.DateTime)
		case len(moments) > 0:
			return moments[len(moments)-1].At.UTC().Format(time.DateTime)
		default:
			return c.Recorded.Format(time.DateOnly)
		}
	}
	return ""
}

// DatabasesRecorded returns when the first of the databases of the kinds was copied from a live node, zero if
// that is not known.
func (m *Manifest) DatabasesRecorded(kinds ...Kind) (first time.Time) {
	for _, kind := range kinds {
		collection := m.Collection(kind)
		if collection == nil {
			continue
		}
		for _, file := range collection.Files {
			isFirst := first.IsZero() || file.Recorded.Before(first)
			if file.Path == filepath.Join("db", string(kind), databaseName(kind)) && !file.Recorded.IsZero() && isFirst {
				first = file.Recorded
			}
		}
	}
	return first
}

// moment returns when the file was recorded, without What for a file whose content does not
// change from one second to the next.
func (f File) moment() Moment {
	switch {
	case filepath.Dir(f.Path) == "restore_flows" && strings.HasSuffix(f.Path, "."+string(Flows)+".dump"):
		return Moment{What: "flows", Bridge: f.Bridge, At: f.Recorded}
	case f.Path == filepath.Join("recorded", RecordedDatapathFlows):
		return Moment{What: DatapathFlows, At: f.Recorded}
	case f.Path == filepath.Join("recorded", RecordedConntrack):
		return Moment{What: "connections", At: f.Recorded}
	}
	return Moment{}
}
