package workdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ovs-offline/internal/lazyregexp"
)

// sharedName is the name of the folder, beside the workdirs of several nodes, with the
// homes of the database servers that their replicas share. Below leaves it out, as it
// does every hidden folder.
const sharedName = ".shared"

// Shared returns the folder with the homes of the servers that the workdir's replica can share
// with the replicas of the workdirs beside it. It need not exist.
func (d *Dir) Shared() string {
	path, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		path = d.path
	}
	return SharedIn(filepath.Dir(path))
}

// SharedIn returns the folder of these homes for the workdirs in a folder.
func SharedIn(folder string) string { return filepath.Join(folder, sharedName) }

// Home returns the path of the home of a server of a database: of the kind, with that
// digest, run by the programs in root. A home has the layout of a workdir.
func (d *Dir) Home(kind Kind, digest, root string) string {
	sum := sha256.Sum256([]byte(digest + "\x00" + root))
	return filepath.Join(d.Shared(), string(kind)+"-"+hex.EncodeToString(sum[:8]))
}

var homeName = lazyregexp.New(`^(ovn_nb|ovn_sb)-[0-9a-f]{16}$`)

// Homes returns the paths of the homes in a folder that Shared returned, by the kind of
// the database. There are none in a folder that another user owns or can write to.
func Homes(shared string) map[string]Kind {
	found := map[string]Kind{}
	info, err := os.Lstat(shared)
	if err != nil || !info.IsDir() || checkOwner(shared) != nil {
		return found
	}
	entries, _ := os.ReadDir(shared) // without them nothing is shared
	for _, entry := range entries {
		if match := homeName.FindStringSubmatch(entry.Name()); match != nil && entry.IsDir() {
			found[filepath.Join(shared, entry.Name())] = Kind(match[1])
		}
	}
	return found
}

// LockHome works like Lock for a home, but waits while another start or stop has it
// locked.
func LockHome(ctx context.Context, path string) (*Dir, error) {
	const pause = 5 * time.Millisecond
	shared := filepath.Dir(path)
	for {
		if err := makeShared(shared); err != nil {
			return nil, err
		}
		home, err := Lock(path)
		// A stop that ends a server removes its home.
		if err == nil || !errors.Is(err, ErrInUse) && !errors.Is(err, os.ErrNotExist) {
			return home, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// makeShared makes the folder of the homes and checks who can write to it.
func makeShared(shared string) error {
	if err := os.Mkdir(shared, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("the folder for shared database servers: %w", err)
	}
	if info, err := os.Lstat(shared); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder, so no database servers can be shared there: remove it", shared)
	}
	if err := checkOwner(shared); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
