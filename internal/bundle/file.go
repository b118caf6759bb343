package bundle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ovs-offline/internal/workdir"
)

// SaveFile is Save to a file, which appears under its name once it is complete.
// An existing file is an error that wraps fs.ErrExist, unless replace is set.
func SaveFile(ctx context.Context, wd *workdir.Dir, program, name string, replace bool) (size int64, remarks []string, err error) {
	if _, err := os.Lstat(name); err == nil && !replace {
		return 0, nil, fmt.Errorf("%s: %w", name, fs.ErrExist)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return 0, nil, err
	}
	defer os.Remove(f.Name()) // fails once the file has its name
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	if remarks, err = Save(ctx, wd, program, out); err == nil {
		err = errors.Join(out.Flush(), f.Sync())
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("saving %s: %w", name, err)
	}
	info, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	return info.Size(), remarks, nil
}
