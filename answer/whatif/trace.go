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

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/scratch"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// trace follows the packet of a question with the flows that are computed now.
func (s *Session) trace(ctx context.Context, q Question, what string) (found side) {
	s.progress("following the packet " + what)
	found.answer, found.err = s.Trace(ctx, q)
	if found.answer != nil {
		found.answer.Trust.Assumed = append(found.answer.Trust.Assumed, s.assumed()...)
	}
	return found
}

// Trace follows the packet of a question with the flows that are computed now.
func (s *Session) Trace(ctx context.Context, question Question) (found *answer.Answer, err error) {
	err = s.onReplicas(ctx, question, func(t *trace.Session) error {
		found, err = t.Ask(ctx, *question.Trace)
		return err
	})
	return found, err
}

// Verdict follows the packet of a question with the flows that are computed now, and returns the verdict, or what the
// databases lack for the question, such as one of its endpoints: then there is no answer. when names the moment for Progress.
func (s *Session) Verdict(ctx context.Context, question Question, when string) (verdict string, found *answer.Answer, err error) {
	side := s.trace(ctx, question, when)
	if side.err != nil && side.lacks() == "" {
		return "", nil, side.err
	}
	return side.verdict(), side.answer, nil
}

// onReplicas asks replicas of the nodes with the flows that are computed now. They end
// before it returns.
func (s *Session) onReplicas(ctx context.Context, question Question, ask func(*trace.Session) error) (err error) {
	made, err := s.makeReplicas(ctx, "node", question.Replica)
	defer func() {
		err = errors.Join(err, made.close(context.WithoutCancel(ctx)), os.RemoveAll(scratch.Replicas(s.options.Dir)))
	}()
	if err != nil {
		return err
	}
	session, err := made.open(ctx, question.Runtime, versions.Pair{})
	if err != nil {
		return err
	}
	defer session.Close()
	return ask(session)
}

// Replica is the replica of a workdir.
type Replica interface {
	// Run starts it in a runtime, one of choose.Names, with programs of these versions; empty for those nearest to the
	// node's.
	Run(ctx context.Context, wd *workdir.Dir, runtime string, programs versions.Pair) error
	// Stop stops it, and reports whether it was started.
	Stop(ctx context.Context, wd *workdir.Dir) (started bool, err error)
}

// replicas are replicas that run for the duration of a command. Their workdirs are locked.
type replicas struct {
	nodes []Replica
	dirs  []*workdir.Dir
	zone  *snapshot.Deployment
}

// makeReplicas makes the workdirs of replicas with the flows that are computed now. name begins the names of their
// folders. The caller closes them, also after an error.
func (s *Session) makeReplicas(ctx context.Context, name string, replicaAt func(path string) Replica) (*replicas, error) {
	made := &replicas{zone: &snapshot.Deployment{}}
	for i, node := range s.options.Nodes {
		path := filepath.Join(scratch.Replicas(s.options.Dir), fmt.Sprint(name, i))
		wd, err := workdir.Lock(path)
		if err != nil {
			return made, err
		}
		made.nodes, made.dirs = append(made.nodes, replicaAt(path)), append(made.dirs, wd)
		if err := s.fill(ctx, node, wd); err != nil {
			return made, fmt.Errorf("node %s: %w", node.Name, err)
		}
		made.zone.Nodes = append(made.zone.Nodes, snapshot.Member{Name: node.Name, Dir: wd})
	}
	return made, nil
}

// open starts the replicas in a runtime, with programs of these versions, and opens a session on them.
func (r *replicas) open(ctx context.Context, runtime string, programs versions.Pair) (*trace.Session, error) {
	if err := r.start(ctx, runtime, programs); err != nil {
		return nil, err
	}
	if err := openDatabases(ctx, r.zone); err != nil {
		r.zone.Close()
		return nil, err
	}
	return trace.Open(ctx, []*snapshot.Deployment{r.zone}, trace.Options{Computed: true})
}

// close ends the replicas.
func (r *replicas) close(ctx context.Context) (err error) {
	for i, n := range r.nodes {
		_, stopErr := n.Stop(ctx, r.dirs[i])
		r.dirs[i].Unlock()
		err = errors.Join(err, stopErr)
	}
	return err
}

// openDatabases opens the databases of a deployment whose nodes have copies of the same.
func openDatabases(ctx context.Context, deployment *snapshot.Deployment) (err error) {
	of := deployment.Nodes[0].Dir
	if deployment.NB, err = file.OpenIndex(ctx, of.Database(workdir.NB)); err != nil {
		return err
	}
	if deployment.SB, err = file.OpenIndex(ctx, of.Database(workdir.SB)); err != nil {
		return err
	}
	for i := range deployment.Nodes {
		n := &deployment.Nodes[i]
		if n.OVS, err = file.OpenIndex(ctx, n.Dir.Database(workdir.OVS)); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// start starts the replicas, a few at a time.
func (r *replicas) start(ctx context.Context, runtime string, programs versions.Pair) error {
	const atOnce = 4
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, n := range r.nodes {
		group.Go(func() error { return n.Run(ctx, r.dirs[i], runtime, programs) })
	}
	return group.Wait()
}

// fill makes a workdir like the node's, with the databases and flows that are computed
// now. Files that stay as they were collected are linked, since no replica changes them.
func (s *Session) fill(ctx context.Context, node snapshot.Member, wd *workdir.Dir) error {
	manifest, err := node.Dir.Manifest()
	if err != nil {
		return err
	}
	dump, err := s.scratch.Dump(ctx, node.Name, openflow.OpenFlow15)
	if err != nil {
		return err
	}
	replaced := map[string]bool{}
	for _, k := range workdir.Kinds() {
		replaced[wd.Relative(wd.Database(k))] = true
	}
	sessions := s.scratch.Sessions(node.Name)
	interfaces := wd.Recorded(workdir.RecordedListInterface)
	replaced[wd.Relative(interfaces)] = len(sessions) > 0
	dumps := map[workdir.Dump]func(scratch.Dump) string{
		workdir.Flows:  func(d scratch.Dump) string { return d.Flows },
		workdir.Groups: func(d scratch.Dump) string { return d.Groups },
		workdir.Meters: func(d scratch.Dump) string { return d.Meters },
		workdir.TLV:    func(d scratch.Dump) string { return d.TLVMap },
	}
	for kind := range dumps {
		replaced[wd.Relative(wd.DumpFile(dump.Bridge, kind))] = true
	}
	if err := s.linkCollected(node.Dir, wd, replaced); err != nil {
		return err
	}
	if len(sessions) > 0 {
		if err := os.MkdirAll(filepath.Dir(interfaces), 0o700); err != nil {
			return err
		}
		if err := scratch.WriteSessions(node.Dir.Recorded(workdir.RecordedListInterface), interfaces, sessions); err != nil {
			return err
		}
	}
	for kind, text := range dumps {
		path := wd.DumpFile(dump.Bridge, kind)
		v := cmp.Or(openflow.ParseVersion(manifest.OpenFlow(wd.Relative(path))), openflow.OpenFlow14)
		if dump.Version != v {
			if dump, err = s.scratch.Dump(ctx, node.Name, v); err != nil {
				return err
			}
		}
		if err := write(path, text(dump)); err != nil {
			return err
		}
	}
	for database, from := range map[workdir.Kind]string{workdir.OVS: s.scratch.Conf(node.Name),
		workdir.NB: s.options.Dir.WorkingCopy(workdir.NB), workdir.SB: s.options.Dir.WorkingCopy(workdir.SB)} {
		if err := os.MkdirAll(filepath.Dir(wd.Database(database)), 0o700); err != nil {
			return err
		}
		if _, _, err := file.Standalone(ctx, from, wd.Database(database)); err != nil {
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
