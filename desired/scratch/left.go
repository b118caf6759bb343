package scratch

import (
	"context"
	"errors"
	"os"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime/choose"
)

// EndLeft ends what a killed program has left running in the scratch folder of a workdir, in
// any runtime, and removes the folder. version is the version of ovs-offline.
func EndLeft(ctx context.Context, wd *workdir.Dir, version string) error {
	if _, err := os.Stat(wd.Scratch()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	dir, err := workdir.Lock(wd.Scratch())
	if err != nil {
		return err
	}
	defer dir.Unlock()
	if err := End(ctx, dir, choose.For(dir, version).All(ctx)...); err != nil {
		return err
	}
	return os.RemoveAll(dir.Path())
}
