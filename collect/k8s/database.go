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
	s.node.Image = cmp.Or(s.survey.imageOf(b.target), s.node.Image) // on some clusters, OVS is the host's own
	s.database(b.target, b.frame, k)
	return nil
}

func (s *nodeSource) ovnBackup(ctx context.Context, k workdir.Kind) (backup, error) {
	targets, err := s.survey.databases(s.layout, k, s.node.Host, s.target.Namespace)
	if err != nil {
		return backup{}, err
	}
	if s.layout.perNode || s.shared == nil {
		return s.transfer.backup(ctx, targets, k)
	}
	once, _ := s.shared.taken.LoadOrStore(databaseKey{k, s.layout.name, s.target.Namespace},
		sync.OnceValues(func() (backup, error) { return s.shared.backup(ctx, targets, k) }))
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

// backup tries the containers in turn until one returns the database.
func (t *transfer) backup(ctx context.Context, targets []Target, k workdir.Kind) (backup, error) {
	var errs []error
	for _, target := range targets {
		b, err := t.backupFrom(ctx, target, k)
		if err == nil {
			return b, nil
		}
		if errs = append(errs, fmt.Errorf("%s: %w", target, err)); ctx.Err() != nil {
			break
		}
	}
	return backup{}, errors.Join(errs...)
}

func (t *transfer) backupFrom(ctx context.Context, target Target, k workdir.Kind) (backup, error) {
	b := backup{target: target}
	frames, err := t.run(ctx, target, databaseText, append([]string{k.Schema(), "ovn" + short(k) + "_db.sock"}, socketFolders()...)...)
	if err != nil {
		return b, err
	}
	for _, f := range frames {
		switch f.name {
		case "version":
			b.version = f.version(versions.PrintedOVN)
		case "disconnected":
			return b, errors.New("this member has lost its cluster")
		case "backup":
			b.frame = f
		}
	}
	if b.code != 0 {
		return b, fmt.Errorf("ovsdb-client backup: %s (looked for the socket in %s)", b.failure(), strings.Join(socketFolders(), ", "))
	}
	return b, nil
}
