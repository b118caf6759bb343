package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"ovs-offline/desired/scratch"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/set"
	"ovs-offline/trace"
)

// trace follows the packet of a question with the flows that are computed now.
func (s *Session) trace(ctx context.Context, q Question, what string) (one side) {
	s.progress("following the packet " + what)
	one.err = s.onReplicas(ctx, q, func(t *trace.Session) (err error) {
		one.answer, err = t.Ask(ctx, *q.Trace)
		return err
	})
	if one.answer != nil {
		one.answer.Trust.Assumed = append(one.answer.Trust.Assumed, s.assumed()...)
	}
	return one
}

// onReplicas asks replicas of the nodes with the flows that are computed now. They end
// before it returns.
func (s *Session) onReplicas(ctx context.Context, q Question, ask func(*trace.Session) error) (err error) {
	var nodes []*set.Node
	var dirs []*workdir.Dir
	var traced []trace.Node
	zone := trace.Zone{}
	defer func() {
		for i, n := range nodes {
			_, stopErr := n.Stop(context.WithoutCancel(ctx), dirs[i])
			dirs[i].Unlock()
			err = errors.Join(err, stopErr)
		}
		err = errors.Join(err, os.RemoveAll(scratch.Replicas(s.options.Dir)))
	}()
	for i, n := range s.options.Nodes {
		path := filepath.Join(scratch.Replicas(s.options.Dir), fmt.Sprintf("node%d", i))
		wd, err := workdir.Lock(path)
		if err != nil {
			return err
		}
		nodes, dirs = append(nodes, set.At(path, q.Version)), append(dirs, wd)
		if err := s.fill(ctx, n, wd); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
		traced = append(traced, trace.Node{Name: n.Name, Dir: wd})
		zone.Nodes = append(zone.Nodes, n.Name)
	}
	zone.NB, zone.SB = dirs[0].Database(workdir.NB), dirs[0].Database(workdir.SB)
	if err := startAll(ctx, nodes, dirs, q.Runtime); err != nil {
		return err
	}
	session, err := trace.Open(ctx, traced, []trace.Zone{zone}, trace.Options{})
	if err != nil {
		return err
	}
	defer session.Close()
	return ask(session)
}

// startAll starts the replicas, a few at a time.
func startAll(ctx context.Context, nodes []*set.Node, dirs []*workdir.Dir, runtime string) error {
	const atOnce = 4
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, n := range nodes {
		group.Go(func() error {
			_, err := n.Start(ctx, dirs[i], set.StartOptions{Runtime: runtime})
			return err
		})
	}
	return group.Wait()
}

// fill makes a workdir like that of a node, with the databases and flows that are computed
// now. Files that stay as they were collected are linked, since no replica changes them.
func (s *Session) fill(ctx context.Context, n Node, wd *workdir.Dir) error {
	m, err := n.Dir.Manifest()
	if err != nil {
		return err
	}
	d, err := s.scratch.Dump(ctx, n.Name, openflow.OpenFlow15)
	if err != nil {
		return err
	}
	replaced := map[string]bool{}
	for _, k := range workdir.Kinds() {
		replaced[wd.Relative(wd.Database(k))] = true
	}
	sessions := s.scratch.Sessions(n.Name)
	interfaces := wd.Recorded(workdir.RecordedListInterface)
	replaced[wd.Relative(interfaces)] = len(sessions) > 0
	dumps := map[workdir.Dump]func(scratch.Dump) string{
		workdir.Flows:  func(d scratch.Dump) string { return d.Flows },
		workdir.Groups: func(d scratch.Dump) string { return d.Groups },
		workdir.Meters: func(d scratch.Dump) string { return d.Meters },
		workdir.TLV:    func(d scratch.Dump) string { return d.TLVMap },
	}
	for kind := range dumps {
		replaced[wd.Relative(wd.DumpFile(d.Bridge, kind))] = true
	}
	if err := s.linkCollected(n.Dir, wd, replaced); err != nil {
		return err
	}
	if len(sessions) > 0 {
		if err := os.MkdirAll(filepath.Dir(interfaces), 0o700); err != nil {
			return err
		}
		if err := scratch.WriteSessions(n.Dir.Recorded(workdir.RecordedListInterface), interfaces, sessions); err != nil {
			return err
		}
	}
	for kind, text := range dumps {
		path := wd.DumpFile(d.Bridge, kind)
		v := cmp.Or(openflow.ParseVersion(m.OpenFlow(wd.Relative(path))), openflow.OpenFlow14)
		if d.Version != v {
			if d, err = s.scratch.Dump(ctx, n.Name, v); err != nil {
				return err
			}
		}
		if err := write(path, text(d)); err != nil {
			return err
		}
	}
	for k, from := range map[workdir.Kind]string{workdir.OVS: s.scratch.Conf(n.Name),
		workdir.NB: s.options.Dir.WorkingCopy(workdir.NB), workdir.SB: s.options.Dir.WorkingCopy(workdir.SB)} {
		if err := os.MkdirAll(filepath.Dir(wd.Database(k)), 0o700); err != nil {
			return err
		}
		if _, _, err := file.Standalone(ctx, from, wd.Database(k)); err != nil {
			return err
		}
	}
	return nil
}

// linkCollected links the collected files of a workdir, but for some, and copies the
// manifest. Bridges forget the MAC addresses of ports that are not where they were.
func (s *Session) linkCollected(from, to *workdir.Dir, without map[string]bool) error {
	files, _, err := from.DataFiles()
	if err != nil {
		return err
	}
	now, err := located(s.now.sb)
	if err != nil {
		return err
	}
	macs := moved(s.first, now)
	for _, name := range files {
		if without[name] {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to.Join(name)), 0o700); err != nil {
			return err
		}
		if filepath.Base(name) == workdir.RecordedFDB && len(macs) > 0 {
			if err := forget(from.Join(name), to.Join(name), macs); err != nil {
				return err
			}
			continue
		}
		if os.Link(from.Join(name), to.Join(name)) == nil {
			continue
		}
		if err := copyFile(from.Join(name), to.Join(name)); err != nil {
			return err
		}
	}
	const manifest = "manifest.json"
	err = copyFile(filepath.Join(from.Path(), manifest), filepath.Join(to.Path(), manifest))
	if errors.Is(err, os.ErrNotExist) {
		return nil // a workdir whose files were put there by hand has none
	}
	return err
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}
