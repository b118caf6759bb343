package k8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ovs-offline/internal/versions"
	"ovs-offline/workdir"
)

// backup is the backup of a database.
type backup struct {
	frame
	target  Target
	version string  // of OVN
	daemons []frame // what the server, and programs beside it, print about themselves
}

// shared holds the databases of a central OVN cluster, which are backed up once for all nodes.
type shared struct {
	transfer
	taken sync.Map // maps a databaseKey to a func() (backup, error), which makes the backup once
}

// databaseKey identifies a database: a cluster may run several OVN deployments.
type databaseKey struct {
	kind              workdir.Kind
	layout, namespace string
}

// askOVN adds the node's NB or SB database.
func (s *nodeSource) askOVN(ctx context.Context, kind workdir.Kind) error {
	backup, err := s.ovnBackup(ctx, kind)
	if err != nil {
		return err
	}
	s.node.OVNVersion = cmp.Or(backup.version, s.node.OVNVersion)
	s.node.Image = cmp.Or(backup.target.image, s.node.Image) // on some clusters, OVS is the host's own
	s.database(backup.target, backup.frame, kind)
	s.outputsOf(backup.target, backup.daemons, "")
	return nil
}

func (s *nodeSource) ovnBackup(ctx context.Context, kind workdir.Kind) (backup, error) {
	members := func(ctx context.Context, again bool) ([]Target, error) {
		if again {
			if err := s.survey.listAgain(ctx, s.layout, s.layout.databaseContainer(kind)); err != nil {
				return nil, err
			}
		}
		return s.survey.databases(s.layout, kind, s.node.Host, s.target.Namespace)
	}
	if s.layout.perNode || s.shared == nil {
		return s.transfer.backup(ctx, members, kind)
	}
	once, _ := s.shared.taken.LoadOrStore(databaseKey{kind, s.layout.name, s.target.Namespace},
		sync.OnceValues(func() (backup, error) { return s.shared.backup(ctx, members, kind) }))
	b, err := once.(func() (backup, error))()
	if err != nil {
		return backup{}, err
	}
	// Collected files are never written again, so all workdirs can have the same
	// file on the disk.
	b.daemons = slices.Clone(b.daemons)
	for i := range b.daemons {
		if b.daemons[i].Spooled, err = s.link(b.daemons[i].Spooled); err != nil {
			return backup{}, err
		}
	}
	b.Spooled, err = s.link(b.Spooled)
	return b, err
}

// link gives a file that several nodes get a name in the spool folder of this one.
func (s *nodeSource) link(shared string) (mine string, err error) {
	mine = filepath.Join(s.spool, filepath.Base(shared))
	if err := os.Link(shared, mine); err != nil {
		return "", fmt.Errorf("%w: %w", errLocal, err)
	}
	return mine, nil
}

// backup tries the members of the database's cluster in turn until one returns the
// database. It tries them again as long as any of them may still answer.
func (t *transfer) backup(ctx context.Context, members func(ctx context.Context, again bool) ([]Target, error), kind workdir.Kind) (b backup, err error) {
	err = t.patience.persist(ctx, func(again bool) error {
		targets, err := members(ctx, again)
		if err != nil {
			return judged{err, !again}
		}
		var errs []error
		final := true
		for _, target := range targets {
			if b, err = t.backupFrom(ctx, target, kind); err == nil {
				return nil
			}
			errs = append(errs, fmt.Errorf("%s: %w", target, err))
			if ctx.Err() != nil || errors.Is(err, errLocal) {
				break
			}
			final = final && isFinal(err)
		}
		return judged{errors.Join(errs...), final}
	})
	return b, err
}

// backupFrom tries one member once.
func (t *transfer) backupFrom(ctx context.Context, target Target, kind workdir.Kind) (backup, error) {
	backup := backup{target: target}
	frames, err := t.runOnce(ctx, target, databaseText(kind), append([]string{kind.Schema(), "ovn" + short(kind) + "_db.sock"}, socketFolders()...))
	if err != nil {
		t.drop(frames)
		return backup, err
	}
	for _, frame := range frames {
		switch frame.name {
		case "version":
			backup.version = frame.version(versions.PrintedOVN)
		case "disconnected":
			return backup, judged{errors.New("this member has lost its cluster"), true}
		case "backup":
			backup.frame = frame
		default:
			backup.daemons = append(backup.daemons, frame)
		}
	}
	if backup.code != 0 {
		err := fmt.Errorf("ovsdb-client backup: %s (looked for the socket in %s)", backup.failure(), strings.Join(socketFolders(), ", "))
		return backup, judged{err, !backup.noConnection() || !t.patience.mayRestart()}
	}
	return backup, nil
}
