package sos

import (
	"fmt"
	"os"
	"strings"

	"ovs-offline/collect"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/sosreport"
)

func (c *collector) collectOVS() (workdir.Collection, error) {
	out := c.begin(workdir.OVS)
	out.OVSVersion = c.report.OVSVersion
	if err := c.staging.Replace(workdir.OVS, false); err != nil {
		return out, err
	}
	if _, there := c.databases[workdir.OVS]; there {
		if err := c.takeDatabase(workdir.OVS, &out); err != nil {
			return out, err
		}
	} else {
		out.Remarks = append(out.Remarks, noDatabase)
		out.Lost = append(out.Lost, c.broken...)
		c.broken = nil
	}
	for _, bridge := range c.report.Bridges {
		if err := c.collectBridge(bridge, &out); err != nil {
			return out, err
		}
	}
	if len(out.Files) == 0 {
		return out, fmt.Errorf("%w: the report lists bridges (%s) but has neither a flow dump nor conf.db of theirs", collect.ErrNothing, strings.Join(c.report.Bridges, ", "))
	}
	return out, c.collectNode(&out)
}

const noDatabase = "no conf.db in the report: the bridges and their ports are made from ovs-ofctl show; " +
	"traces through flows can be replayed, but port types, tunnels, bonds, VLAN settings, patch ports and external_ids can't be known"

// collectBridge takes the dumps and the recorded state of one bridge.
func (c *collector) collectBridge(bridge string, out *workdir.Collection) error {
	found := false
	for _, d := range []struct {
		meaning sosreport.Meaning
		dump    workdir.Dump
	}{{sosreport.Flows, workdir.Flows}, {sosreport.Groups, workdir.Groups}, {sosreport.Meters, workdir.Meters}, {sosreport.TLVMap, workdir.TLV}} {
		files, err := c.takeDumps(bridge, d.meaning, d.dump)
		if err != nil {
			return err
		}
		found = found || len(files) > 0
		out.Files = append(out.Files, files...)
	}
	if !found {
		out.Remarks = append(out.Remarks, fmt.Sprintf("bridge %q: the report holds no dump of it (a fake bridge has none)", bridge))
		return nil
	}
	out.Bridges = append(out.Bridges, bridge)
	for _, m := range []sosreport.Meaning{sosreport.MeterStats, sosreport.Show, sosreport.BridgeFlows, sosreport.Features,
		sosreport.FDB, sosreport.MDB, sosreport.RSTP, sosreport.STP} {
		if err := c.takeRecorded(m, bridge, c.staging.BridgeRecorded(bridge, string(m)), out); err != nil {
			return err
		}
	}
	return nil
}

// collectNode takes the recorded state that is not about one bridge.
func (c *collector) collectNode(out *workdir.Collection) error {
	for _, m := range []sosreport.Meaning{sosreport.BFD, sosreport.Bond, sosreport.CFM, sosreport.LACP, sosreport.Routes,
		sosreport.Neighbours, sosreport.Tunnels, sosreport.DpifShow, sosreport.TunnelPorts, sosreport.DatapathShow,
		sosreport.DatapathFlows, sosreport.Conntrack, sosreport.ListOVS, sosreport.ListBridge, sosreport.ListDatapath,
		sosreport.ListInterface, sosreport.ListPort} {
		if err := c.takeRecorded(m, "", c.staging.Recorded(string(m)), out); err != nil {
			return err
		}
	}
	return nil
}

// takeRecorded keeps the first output of a meaning that is no error message.
func (c *collector) takeRecorded(m sosreport.Meaning, bridge, path string, out *workdir.Collection) error {
	for _, o := range c.report.Outputs(m, bridge) {
		bad, err := isError(c.where(o.File))
		if err != nil {
			return err
		}
		if bad {
			continue
		}
		file, err := c.move(o.File, path, o.Origin)
		if err != nil {
			return err
		}
		file.Bridge, file.OpenFlow = bridge, o.OpenFlow
		if o.Truncated {
			file.Remarks = append(file.Remarks, "cut by sos: only its end is there")
		}
		out.Files = append(out.Files, file)
		return nil
	}
	return nil
}

func isError(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return openflow.HasError(f), nil
}

// judged is one dump and what its content is worth.
type judged struct {
	sosreport.Output
	entries int
	lost    int // lines that were data and can't be used
	first   openflow.Problem
	failed  bool // an error message, or nothing, in place of the dump
}

// takeDumps keeps the best version of a dump in restore_flows, and the others
// in recorded for what the best can't say.
func (c *collector) takeDumps(bridge string, meaning sosreport.Meaning, dump workdir.Dump) ([]workdir.File, error) {
	var usable []judged
	for _, o := range c.report.Outputs(meaning, bridge) {
		j, err := judge(o, c.where(o.File), dump)
		if err != nil {
			return nil, err
		}
		if !j.failed && !sameVersion(usable, j.OpenFlow) {
			usable = append(usable, j)
		}
	}
	best := pick(usable)
	var files []workdir.File
	for i, j := range usable {
		path := c.staging.OtherDump(bridge, dump, j.OpenFlow)
		if i == best {
			path = c.staging.DumpFile(bridge, dump)
		}
		file, err := c.move(j.File, path, j.Origin)
		if err != nil {
			return nil, err
		}
		file.Bridge, file.OpenFlow = bridge, j.OpenFlow
		if i == best {
			file.Remarks = dumpRemarks(j, dump)
		}
		files = append(files, file)
	}
	return files, nil
}

// judge reads a dump once. A dump without -O is OpenFlow 1.0 text, as ovs-ofctl speaks it by default.
func judge(o sosreport.Output, path string, dump workdir.Dump) (judged, error) {
	j := judged{Output: o}
	if j.OpenFlow == "" {
		j.OpenFlow = "OpenFlow10"
	}
	f, err := os.Open(path)
	if err != nil {
		return j, err
	}
	defer f.Close()
	var problems []openflow.Problem
	var entries []openflow.Entry
	switch dump {
	case workdir.Flows:
		for _, p := range openflow.Flows(f) {
			if p == nil {
				j.entries++
			} else {
				problems = append(problems, *p)
			}
		}
	case workdir.Groups:
		entries, problems = openflow.Groups(f)
	case workdir.Meters:
		entries, problems = openflow.Meters(f)
	case workdir.TLV:
		entries, problems = openflow.TLVMap(f)
	}
	j.entries += len(entries)
	for _, p := range problems {
		if p.Lost {
			if j.lost == 0 {
				j.first = p
			}
			j.lost++
		}
	}
	// A command that was killed before it printed its header leaves an empty file: that says nothing.
	j.failed = j.entries == 0 && (len(problems) > 0 || o.Size == 0)
	return j, nil
}

func sameVersion(list []judged, version string) bool {
	for _, j := range list {
		if j.OpenFlow == version {
			return true
		}
	}
	return false
}

// pick returns the index of the best dump: of the highest OpenFlow version that
// lost nothing, or else the one that lost least for what it holds. The list
// comes with the highest version first.
func pick(list []judged) int {
	best := -1
	for i, j := range list {
		if !j.Truncated && j.lost == 0 {
			return i
		}
		if best < 0 || j.entries > list[best].entries {
			best = i
		}
	}
	return best
}

func dumpRemarks(j judged, dump workdir.Dump) []string {
	var remarks []string
	if j.Truncated {
		remarks = append(remarks, "cut by sos (--log-size): only its end is there")
	}
	if j.lost > 0 {
		remarks = append(remarks, fmt.Sprintf("%d lines can't be used; the first: %s", j.lost, j.first))
	}
	if j.OpenFlow == "OpenFlow10" && dump == workdir.Flows {
		remarks = append(remarks, "only an OpenFlow 1.0 dump could be used: meters and OpenFlow 1.3+ actions are not in its text")
	}
	return remarks
}
