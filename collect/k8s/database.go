package k8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"ovs-offline/internal/versions"
	"ovs-offline/internal/workdir"
)

// backup is the backup of a database.
type backup struct {
	frame
	target  Target
	version string // of OVN
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
func (s *nodeSource) askOVN(ctx context.Context, k workdir.Kind) error {
	b, err := s.ovnBackup(ctx, k)
	if err != nil {
		return err
	}
	s.node.OVNVersion = cmp.Or(b.version, s.node.OVNVersion)
	s.node.Image = cmp.Or(b.target.image, s.node.Image) // on some clusters, OVS is the host's own
	s.database(b.target, b.frame, k)
	return nil
}

func (s *nodeSource) ovnBackup(ctx context.Context, k workdir.Kind) (backup, error) {
	members := func(ctx context.Context, again bool) ([]Target, error) {
		if again {
			if err := s.survey.listAgain(ctx, s.layout, s.layout.databaseContainer(k)); err != nil {
				return nil, err
			}
		}
		return s.survey.databases(s.layout, k, s.node.Host, s.target.Namespace)
	}
	if s.layout.perNode || s.shared == nil {
		return s.transfer.backup(ctx, members, k)
	}
	once, _ := s.shared.taken.LoadOrStore(databaseKey{k, s.layout.name, s.target.Namespace},
		sync.OnceValues(func() (backup, error) { return s.shared.backup(ctx, members, k) }))
	b, err := once.(func() (backup, error))()
	if err != nil {
		return backup{}, err
	}
	// Collected files are never written again, so all workdirs can have the same
	// file on the disk.
	mine := filepath.Join(s.spool, string(k))
	if err := os.Link(b.Spooled, mine); err != nil {
		return backup{}, fmt.Errorf("%w: %w", errLocal, err)
	}
	b.Spooled = mine
	return b, nil
}

// backup tries the members of the database's cluster in turn until one returns the
// database. It tries them again as long as any of them may still answer.
func (t *transfer) backup(ctx context.Context, members func(ctx context.Context, again bool) ([]Target, error), k workdir.Kind) (b backup, err error) {
	err = t.patience.persist(ctx, func(again bool) error {
		targets, err := members(ctx, again)
		if err != nil {
			return judged{err, !again}
		}
		var errs []error
		final := true
		for _, target := range targets {
			if b, err = t.backupFrom(ctx, target, k); err == nil {
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
func (t *transfer) backupFrom(ctx context.Context, target Target, k workdir.Kind) (backup, error) {
	b := backup{target: target}
	frames, err := t.once(ctx, target, databaseText, append([]string{k.Schema(), "ovn" + short(k) + "_db.sock"}, socketFolders()...))
	if err != nil {
		t.drop(frames)
		return b, err
	}
	for _, f := range frames {
		switch f.name {
		case "version":
			b.version = f.version(versions.PrintedOVN)
		case "disconnected":
			return b, judged{errors.New("this member has lost its cluster"), true}
		case "backup":
			b.frame = f
		}
	}
	if b.code != 0 {
		err := fmt.Errorf("ovsdb-client backup: %s (looked for the socket in %s)", b.failure(), strings.Join(socketFolders(), ", "))
		return b, judged{err, !b.noConnection() || !t.patience.mayRestart()}
	}
	return b, nil
}
