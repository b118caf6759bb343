package lab

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
)

// install makes what was built the collections of the workdir. Of commands of OVN alone, ovn-northd makes the southbound
// database when the switches are synthesised.
func (l *lab) install(ctx context.Context) error {
	staging, err := l.wd.Stage()
	if err != nil {
		return err
	}
	defer staging.Discard()
	var collections []workdir.Collection
	for _, kind := range l.kinds() {
		if kind == workdir.SB && !l.hasSwitch() {
			continue
		}
		collection := workdir.Collection{Kind: kind, Host: l.script.host, Node: l.script.host, Collected: time.Now().UTC().Truncate(time.Second), OVSVersion: l.running.OVS, OVNVersion: l.running.OVN,
			Source: workdir.Source{Kind: SourceKind, Name: l.options.Name, Tool: "ovs-offline " + l.options.Version}}
		if len(collections) == 0 {
			collection.Built = l.script.built
		}
		if err := staging.Replace(kind, false); err != nil {
			return err
		}
		if err := addFile(ctx, staging, &collection, l.result(kind), staging.Database(kind)); err != nil {
			return err
		}
		if kind == workdir.OVS {
			if err := l.addDumps(ctx, staging, &collection); err != nil {
				return err
			}
		}
		collections = append(collections, collection)
	}
	return staging.Install(collections...)
}

// addDumps stages the dumps of the bridges.
func (l *lab) addDumps(ctx context.Context, staging *workdir.Staging, into *workdir.Collection) error {
	for _, dump := range l.bridges {
		for kind, text := range map[workdir.Dump]string{workdir.Flows: dump.Flows, workdir.Groups: dump.Groups, workdir.Meters: dump.Meters, workdir.TLV: dump.TLVMap} {
			if text == "" {
				continue
			}
			part := dump.Dump
			if _, version := openflow.Identify([]byte(text)); version > 0 {
				part.Version = version // of groups and meters, it may be another one
			}
			if err := add(ctx, staging, into, strings.NewReader(text), staging.DumpFile(dump.Bridge, kind), part); err != nil {
				return err
			}
		}
		for name, text := range dump.recorded {
			if err := add(ctx, staging, into, strings.NewReader(text), staging.BridgeRecorded(dump.Bridge, name), scratch.Dump{Bridge: dump.Bridge}); err != nil {
				return err
			}
		}
		into.Bridges = append(into.Bridges, dump.Bridge)
	}
	slices.Sort(into.Bridges)
	slices.SortFunc(into.Files, func(a, b workdir.File) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// addFile stages a copy of a file.
func addFile(ctx context.Context, staging *workdir.Staging, into *workdir.Collection, from, to string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	return add(ctx, staging, into, file, to, scratch.Dump{})
}

// add stages a text as a file; dump is the one that the file is a part of.
func add(ctx context.Context, staging *workdir.Staging, into *workdir.Collection, text io.Reader, path string, dump scratch.Dump) error {
	file, err := staging.Copy(ctx, text, path)
	if err != nil {
		return err
	}
	file.Origin, file.Bridge, file.OpenFlow = SourceKind, dump.Bridge, dump.Version.String()
	into.Files = append(into.Files, file)
	return nil
}
