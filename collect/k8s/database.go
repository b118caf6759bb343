package k8s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"ovs-offline/internal/workdir"
)

// backup is a database as it was taken.
type backup struct {
	frame
	target  Target
	version string // of OVN
}

// shared are the databases of a central cluster: taken once for all nodes.
type shared struct {
	transfer
	mu    sync.Mutex
	taken map[source]func() (backup, error)
}

// source tells databases apart: a cluster may have several clouds.
type source struct {
	kind              workdir.Kind
	layout, namespace string
}

// take gets a database for the first who asks, and gives it to all.
func (s *shared) take(from source, get func(t *transfer) (backup, error)) (backup, error) {
	s.mu.Lock()
	once := s.taken[from]
	if once == nil {
		once = sync.OnceValues(func() (backup, error) { return get(&s.transfer) })
		s.taken[from] = once
	}
	s.mu.Unlock()
	return once()
}

// askOVN takes the node's NB or SB database.
func (v *visit) askOVN(ctx context.Context, k workdir.Kind) error {
	b, err := v.ovnBackup(ctx, k)
	if err != nil {
		return err
	}
	if b.version != "" {
		v.told.OVNVersion = b.version
	}
	v.database(b.target, b.frame, k)
	return nil
}

func (v *visit) ovnBackup(ctx context.Context, k workdir.Kind) (backup, error) {
	targets, err := v.survey.databases(v.layout, k, v.told.Host, v.target.Namespace)
	if err != nil {
		return backup{}, err
	}
	if v.layout.perNode || v.shared == nil {
		return v.transfer.backup(ctx, targets, k)
	}
	b, err := v.shared.take(source{k, v.layout.name, v.target.Namespace}, func(t *transfer) (backup, error) { return t.backup(ctx, targets, k) })
	if err != nil {
		return backup{}, err
	}
	// Each workdir is whole by itself; nobody writes to a collected file, so
	// they may be one on the disk.
	mine, err := os.CreateTemp(v.spool, "shared-*")
	if err != nil {
		return backup{}, fmt.Errorf("%w: %w", errLocal, err)
	}
	mine.Close()
	if err := errors.Join(os.Remove(mine.Name()), os.Link(b.file, mine.Name())); err != nil {
		return backup{}, fmt.Errorf("%w: %w", errLocal, err)
	}
	b.file = mine.Name()
	return b, nil
}

var ovnVersion = regexp.MustCompile(`(?m)^ovn-nbctl ([0-9]\S*)`)

// backup asks the containers in turn until one gives the database.
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
	frames, err := t.run(ctx, target, databaseText, append([]string{schema(k), "ovn" + short(k) + "_db.sock"}, socketFolders()...)...)
	if err != nil {
		return b, err
	}
	for _, f := range frames {
		switch f.name {
		case "version":
			if text, err := os.ReadFile(f.file); err == nil {
				if m := ovnVersion.FindStringSubmatch(string(text)); m != nil {
					b.version = m[1]
				}
			}
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
