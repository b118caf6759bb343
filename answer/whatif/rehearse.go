package whatif

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"ovs-offline/answer/reach"
	"ovs-offline/answer/trace"
	"ovs-offline/internal/versions"
	"ovs-offline/replica/release"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
)

// Upgrade asks what other releases of OVN and Open vSwitch make of the databases of a deployment.
type Upgrade struct {
	Deployment Deployment
	To         versions.Pair             // or the beginnings of them; OVS can be ""
	Mixed      bool                      // also the phases with ovn-northd of one release and the ovn-controllers of the other
	External   []string                  // addresses outside, which are asked about too
	Runtime    string                    // one of choose.Names
	Runtimes   runtime.Finder            // where programs are looked for
	Replica    func(path string) Replica // the replica of the workdir at path
	Chosen     func(what string)
	Progress   func(text string) // may be nil, as Chosen
}

// Rehearse computes an upgrade on copies: what the programs of the other release refuse, which rows of the NB
// database have an effect in one of the releases only, and which packets fare otherwise. All daemons end before it
// returns.
func Rehearse(ctx context.Context, upgrade Upgrade) (*Rehearsal, error) {
	recorded, err := upgrade.Deployment.release(ctx)
	if err != nil {
		return nil, err
	}
	var result *Rehearsal
	failed := upgrade.Deployment.locked(ctx, upgrade.Runtimes, func(dir *workdir.Dir) (err error) {
		stage := &stage{Upgrade: upgrade, dir: dir}
		defer func() {
			err = errors.Join(err, stage.close(context.WithoutCancel(ctx)), os.RemoveAll(scratch.Replicas(dir)))
		}()
		if err := stage.findPrograms(ctx, recorded); err != nil {
			return err
		}
		result, err = stage.rehearse(ctx)
		return err
	})
	return result, failed
}

// stage is what runs during a rehearsal.
type stage struct {
	Upgrade
	dir      *workdir.Dir
	old, new programs
	phases   []*phase // whose replicas run
}

// programs are the programs of a release.
type programs struct {
	runtime.Runtime
	versions versions.Pair
}

// findPrograms finds the programs of both releases.
func (s *stage) findPrograms(ctx context.Context, recorded versions.Pair) (err error) {
	wd := s.Deployment.Nodes[0].Dir
	options := release.Options{Runtime: s.Runtime, Runtimes: s.Runtimes, Chosen: s.Chosen}
	if s.old.Runtime, s.old.versions, err = release.Programs(ctx, wd, s.dir, recorded, options); err == nil {
		s.new.Runtime, s.new.versions, err = release.Named(ctx, wd, s.dir, s.To, recorded, options)
	}
	if errors.Is(err, release.ErrMissing) || errors.Is(err, release.ErrNotThere) {
		return errors.Join(ErrUndetermined, err)
	}
	return err
}

// rehearse computes the phases and compares them.
func (s *stage) rehearse(ctx context.Context) (*Rehearsal, error) {
	doubts, err := s.doubts(ctx)
	if err != nil {
		return nil, err
	}
	missing, err := absent(ctx, s.Deployment)
	if err != nil {
		return nil, err
	}
	before, err := s.compute(ctx, phaseOf{"old", "the recorded release", s.old, s.old})
	if err != nil {
		return nil, err
	}
	result := &Rehearsal{From: s.old.versions, To: s.new.versions, Doubts: doubts, Remarks: append(missing, s.Deployment.Remarks...)}
	if s.Mixed {
		if result.Mixed, err = s.mixed(ctx, before); err != nil {
			return nil, err
		}
	}
	after, err := s.compute(ctx, phaseOf{"new", "OVN " + s.new.versions.OVN, s.new, s.new})
	if err != nil {
		return nil, err
	}
	result.Remarks = append(result.Remarks, after.remarks...)
	result.Effect, err = s.compare(ctx, before, after)
	return result, err
}

// mixed computes the phases in which ovn-northd and the ovn-controllers are of different releases.
func (s *stage) mixed(ctx context.Context, before *phase) ([]Mixed, error) {
	waiting, err := waiting(ctx, s.Deployment.Nodes)
	if err != nil {
		return nil, err
	}
	if 0 < len(waiting) && len(waiting) < len(s.Deployment.Nodes) {
		return nil, fmt.Errorf("%w: ovn-match-northd-version makes some nodes (%s) wait during the upgrade, and others not: name nodes of one kind", ErrNodes, strings.Join(waiting, ", "))
	}
	all := []Mixed{{First: northdFirst, Waiting: waiting}, {First: controllersFirst, Waiting: waiting}}
	if len(waiting) > 0 {
		return all, nil // they compute nothing
	}
	for i, of := range []phaseOf{
		{"northd", "ovn-northd " + s.new.versions.OVN + " with ovn-controller " + s.old.versions.OVN, s.old, s.new},
		{"nodes", "ovn-controller " + s.new.versions.OVN + " with ovn-northd " + s.old.versions.OVN, s.new, s.old},
	} {
		between, err := s.compute(ctx, of)
		if err != nil {
			return nil, err
		}
		all[i].Effect, err = s.compare(ctx, before, between)
		if err = errors.Join(err, s.end(context.WithoutCancel(ctx), between)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// doubts returns the reasons why the rehearsal may be wrong as a whole.
func (s *stage) doubts(ctx context.Context) ([]string, error) {
	found, err := s.Deployment.doubts(ctx)
	if err != nil {
		return nil, err
	}
	if versions.Compare(s.new.versions.OVN, s.old.versions.OVN) < 0 {
		found = append(found, fmt.Sprintf("OVN %s is older than the nodes' %s: the databases keep the newer schema", s.new.versions.OVN, s.old.versions.OVN))
	}
	return found, nil
}

// compare compares two phases.
func (s *stage) compare(ctx context.Context, before, after *phase) (Effect, error) {
	effect := Effect{Refused: []Refusal{}, Rows: []RowChange{}, Pairs: Pairs{Changed: []reach.Change{}}}
	switch {
	case before.ended != "" && after.ended != "":
		return effect, fmt.Errorf("%w: %s; %s", ErrUndetermined, before.ended, after.ended)
	case before.ended != "" || after.ended != "":
		effect.Ended = []string{before.ended + after.ended}
		return effect, nil
	}
	effect.Refused, effect.Accepted = refused(before, after), refused(after, before)
	effect.Rows = compareRows(before.rows, after.rows)
	var err error
	if effect.Flows, err = compareFlows(s.Deployment.Nodes, before.moment, after.moment); err != nil {
		return effect, err
	}
	if len(effect.Flows) == 0 && versions.Minor(s.old.versions.OVN) == versions.Minor(s.new.versions.OVN) {
		if effect.Logical, err = compareLogical(before.moment, after.moment); err != nil {
			return effect, err
		}
	}
	if effect.Collisions, err = after.moment.collisions(s.Deployment.Nodes); err != nil {
		return effect, err
	}
	s.progress("asking who reaches whom")
	comparison, err := reach.Compare(ctx, before.session, after.session, reach.Options{Services: true, External: s.External, Rules: true})
	if err != nil {
		return effect, err
	}
	changes := comparison.Changes(ctx, func(questions int) {
		s.progress(fmt.Sprintf("asked %d of %d questions of both", questions, comparison.Questions))
	})
	effect.Pairs = pairsOf(changes, effect.Collisions)
	return effect, ctx.Err()
}

func (s *stage) progress(text string) {
	if s.Progress != nil {
		s.Progress(text)
	}
}

// phaseOf is a phase of an upgrade: the programs of the nodes, and those of the databases and ovn-northd.
type phaseOf struct {
	name           string // of its replicas
	title          string
	nodes, central programs
}

// phase is what was computed of a phase, and the replicas with its flows.
type phase struct {
	ended      string // says which daemon ended before the flows were computed, "" for none; if one did, nothing below is known
	moment     moment
	rows       map[rowID]row
	complaints []scratch.Complaint
	remarks    []string
	replicas   *replicas
	session    *trace.Session
}

// compute computes a phase, and starts replicas with its flows.
func (s *stage) compute(ctx context.Context, of phaseOf) (*phase, error) {
	phase, err := s.computeFlows(ctx, of)
	s.phases = append(s.phases, phase)
	if ended := (*scratch.EndedError)(nil); errors.As(err, &ended) {
		phase.ended = of.title + ": " + err.Error()
		return phase, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.title, undetermined(err))
	}
	s.progress("starting replicas with the flows of " + of.title)
	phase.session, err = phase.replicas.open(ctx, s.Runtime, of.nodes.versions)
	return phase, err
}

// computeFlows computes what a phase installs, and makes the workdirs of its replicas. The caller ends the phase, also
// after an error.
func (s *stage) computeFlows(ctx context.Context, of phaseOf) (_ *phase, err error) {
	phase := &phase{replicas: &replicas{}}
	session, err := Open(ctx, Options{Dir: s.dir, Runtime: of.nodes.Runtime, Central: of.central.Runtime, NB: s.Deployment.NB, SB: s.Deployment.SB,
		Nodes: s.Deployment.Nodes, Anew: true, Progress: s.Progress, Task: "computing the flows of " + of.title})
	if err != nil {
		return phase, err
	}
	defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
	phase.remarks = session.remarks
	if phase.complaints, err = session.Complaints(ctx); err != nil {
		return phase, err
	}
	if phase.rows, err = session.now.rows(); err != nil {
		return phase, err
	}
	if phase.replicas, err = session.makeReplicas(ctx, of.name, s.Replica); err != nil {
		return phase, err
	}
	phase.moment, session.now = session.now, moment{} // outlives the session: the databases stay open
	return phase, nil
}

// end ends the replicas of a phase.
func (s *stage) end(ctx context.Context, p *phase) error {
	p.moment.close()
	p.moment = moment{}
	if p.session != nil {
		p.session.Close()
		p.session = nil
	}
	err := p.replicas.close(ctx)
	p.replicas = &replicas{}
	return err
}

// close ends all replicas.
func (s *stage) close(ctx context.Context) error {
	var errs []error
	for _, phase := range s.phases {
		errs = append(errs, s.end(ctx, phase))
	}
	return errors.Join(errs...)
}
