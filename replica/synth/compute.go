package synth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/ovn"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica"
	"ovs-offline/replica/release"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
)

// run is a run of the programs for some chassis.
type run struct {
	*maker
	dir     *workdir.Dir // of scratch
	runtime runtime.Runtime
	ovn     string // the version of OVN
	schema  file.Schema
}

// compute makes the switches of chassis, a few at a time: each takes four daemons.
func (m *maker) compute(ctx context.Context, targets []chassisWorkdir) (err error) {
	dir, err := scratch.Lock(m.wd)
	if err != nil {
		return err
	}
	defer scratch.Release(dir)
	defer os.RemoveAll(scratch.Replicas(dir))
	run := run{maker: m, dir: dir}
	if err := run.choose(ctx); err != nil {
		return fmt.Errorf("%s: %w", switchesOf(targets), err)
	}
	if run.schema, err = replica.Schema(ctx, run.runtime, workdir.OVS); err != nil {
		return err
	}
	done := 0
	for chunk := range slices.Chunk(targets, 2*goruntime.NumCPU()) {
		m.progress("synthesising the switch of %d of %d chassis", done+1, len(targets))
		if err := run.chunk(ctx, chunk); err != nil {
			return err
		}
		done += len(chunk)
	}
	return nil
}

// choose chooses the programs of the release that wrote the databases.
func (r *run) choose(ctx context.Context) error {
	likely, err := release.Likely(ctx, r.wd)
	if err != nil {
		return err
	}
	if len(likely) == 0 {
		return fmt.Errorf("%w: the databases do not contain it", release.ErrMissing)
	}
	var running versions.Pair
	r.runtime, running, err = release.Programs(ctx, r.wd, r.dir, likely[0], r.options.Release)
	r.ovn = running.OVN
	return err
}

// switchesOf names the switches of chassis in an error.
func switchesOf(targets []chassisWorkdir) string {
	var all []ovn.Chassis
	for _, target := range targets {
		all = append(all, target.Chassis)
	}
	if len(all) == 1 {
		return "the switch of " + titles(all) + " can't be synthesised from the southbound database"
	}
	return "the switches of " + titles(all) + " can't be synthesised from the southbound database"
}

// computedSwitch is the switch of a chassis with all that ovn-controller has added.
type computedSwitch struct {
	*node
	conf       string // path of its OVS database
	interfaces string // path of what `ovs-vsctl list interface` would print; "" for nothing
	dump       scratch.Dump
	// remarks are about the databases and the programs.
	remarks []string
}

// chunk makes the switches of a few chassis, and installs them.
func (r *run) chunk(ctx context.Context, targets []chassisWorkdir) error {
	// This is where scratch.Clean finds what a killed command has left.
	if err := os.MkdirAll(scratch.Replicas(r.dir), 0o700); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(scratch.Replicas(r.dir), "conf-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var nodes []*node
	var confs []scratch.Recorded
	for i, target := range targets {
		node := r.southbound.buildSwitch(target.Chassis)
		conf := filepath.Join(folder, fmt.Sprint(i, ".db"))
		if err := node.write(ctx, r.schema, conf); err != nil {
			return err
		}
		nodes = append(nodes, node)
		confs = append(confs, scratch.Recorded{Name: target.Name, Conf: conf})
	}
	results, err := r.controllers(ctx, nodes, confs, folder)
	if err != nil {
		return err
	}
	for i, target := range targets {
		if err := r.install(ctx, target.path, results[i]); err != nil {
			return err
		}
	}
	return nil
}

// controllers runs the ovn-controllers of nodes until they have installed their flows, and
// keeps the OVS databases in a folder.
func (r *run) controllers(ctx context.Context, nodes []*node, confs []scratch.Recorded, folder string) (results []computedSwitch, err error) {
	s, err := scratch.Start(ctx, scratch.Options{Dir: r.dir, Runtime: r.runtime, SB: r.wd.Database(workdir.SB), Nodes: confs, AssumeSessions: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx))) }()
	if err := s.Wait(ctx); err != nil {
		return nil, err
	}
	for i, node := range nodes {
		one := computedSwitch{node: node, conf: filepath.Join(folder, fmt.Sprint("kept-", i, ".db")), remarks: remarksOn(node, s.Remarks())}
		if one.dump, err = s.Dump(ctx, node.Name, openflow.OpenFlow15); err != nil {
			return nil, err
		}
		if err := s.Keep(ctx, node.Name, node.identity(), one.conf); err != nil {
			return nil, err
		}
		if sessions := s.Sessions(node.Name); len(sessions) > 0 {
			node.assume("%s", scratch.DescribeSessions(sessions))
			one.interfaces = filepath.Join(folder, fmt.Sprint("kept-", i, ".interfaces"))
			if err := scratch.WriteSessions("", one.interfaces, sessions); err != nil {
				return nil, err
			}
		}
		results = append(results, one)
	}
	return results, nil
}

// remarksOn returns the remarks that are not about other nodes.
func remarksOn(node *node, all []string) []string {
	return slices.DeleteFunc(all, func(remark string) bool {
		return strings.HasPrefix(remark, "node ") && !strings.HasPrefix(remark, "node "+node.Name+": ")
	})
}

// install makes the collection of a chassis in its workdir.
func (r *run) install(ctx context.Context, path string, made computedSwitch) error {
	wd, unlock, err := r.lock(path)
	if err != nil {
		return err
	}
	defer unlock()
	staging, err := wd.Stage()
	if err != nil {
		return err
	}
	defer staging.Discard()
	var collections []workdir.Collection
	if wd != r.wd {
		if collections, err = r.central(ctx, staging, made.Chassis); err != nil {
			return err
		}
	}
	ovs, err := r.collection(ctx, staging, made)
	if err != nil {
		return err
	}
	return staging.Install(append(collections, ovs)...)
}

// collection stages the files of a chassis.
func (r *run) collection(ctx context.Context, staging *workdir.Staging, made computedSwitch) (collection workdir.Collection, err error) {
	manifest, err := r.wd.Manifest()
	if err != nil {
		return collection, err
	}
	if err := staging.Replace(workdir.OVS, false); err != nil {
		return collection, err
	}
	collection = workdir.Collection{Kind: workdir.OVS, Host: made.Hostname, Node: made.Title(), Collected: time.Now().UTC().Truncate(time.Second),
		Source: workdir.Source{Kind: "OVN SB database", Name: r.wd.Database(workdir.SB), Tool: r.tool()}, Lost: made.lost, Remarks: made.remarks,
		Synthesised: &workdir.Synthesis{Chassis: made.Name, Hostname: made.Hostname, SHA256: r.sum, OVN: r.ovn, Assumptions: made.assumed}}
	if sb := manifest.Collection(workdir.SB); sb != nil {
		collection.Source.Name, collection.Image, collection.LoadedImage = sb.Source.Name, sb.Image, sb.LoadedImage
		if sb.MadeUp() {
			collection.Synthesised.From = workdir.FromNorthbound
		}
		if sb.Synthesised != nil {
			collection.Synthesised.Assumptions = append(slices.Clone(sb.Synthesised.Assumptions), made.assumed...)
		}
	}
	stager := stager{ctx, staging, &collection}
	if err := stager.addFile(made.conf, staging.Database(workdir.OVS)); err != nil {
		return collection, err
	}
	if made.interfaces != "" {
		if err := stager.addFile(made.interfaces, staging.Recorded(workdir.RecordedListInterface)); err != nil {
			return collection, err
		}
	}
	return collection, stager.addDumps(made)
}

// stager stages files of a collection.
type stager struct {
	ctx     context.Context
	staging *workdir.Staging
	into    *workdir.Collection
}

// normal is the only flow of a bridge whose flows are not known, as ovs-ofctl prints it.
const normal = "OFPST_FLOW reply (OF1.5) (xid=0x2):\n cookie=0x0, duration=0s, table=0, n_packets=0, n_bytes=0, priority=0 actions=NORMAL\n"

func (s stager) addDumps(made computedSwitch) error {
	for _, bridge := range made.bridges {
		texts := map[workdir.Dump]string{workdir.Flows: normal}
		if bridge.name == made.dump.Bridge {
			texts = map[workdir.Dump]string{workdir.Flows: made.dump.Flows, workdir.Groups: made.dump.Groups, workdir.Meters: made.dump.Meters, workdir.TLV: made.dump.TLVMap}
		}
		for dump, text := range texts {
			if err := s.add(strings.NewReader(text), s.staging.DumpFile(bridge.name, dump), bridge.name); err != nil {
				return err
			}
		}
		s.into.Bridges = append(s.into.Bridges, bridge.name)
	}
	slices.Sort(s.into.Bridges)
	slices.SortFunc(s.into.Files, func(a, b workdir.File) int { return strings.Compare(a.Path, b.Path) })
	return nil
}
