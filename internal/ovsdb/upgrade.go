package ovsdb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ovs-offline/internal/command"
)

// Upgrade converts the standalone file at path in place to the schema at
// schemaPath when that one is newer, as `ovsdb-tool convert` does: the daemons
// that are installed look for columns an older schema lacks. An equal or older
// schema changes nothing. The remark tells of a conversion; it is empty without
// one. After an error the file is as it was.
func Upgrade(ctx context.Context, path, schemaPath string) (remark string, err error) {
	text, err := os.ReadFile(schemaPath)
	if err != nil {
		return "", fmt.Errorf("reading the installed schema: %w", err)
	}
	var installed schemaHead
	if err := json.Unmarshal(text, &installed); err != nil {
		return "", fmt.Errorf("%s is not a schema: %w", schemaPath, err)
	}
	found, err := head(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if found.Name != installed.Name {
		return "", fmt.Errorf("%s holds %s, but %s is the schema of %s", path, found.Name, schemaPath, installed.Name)
	}
	if found.Form != FormStandalone {
		return "", fmt.Errorf("%s is a %s database: make it standalone first", path, found.Form)
	}
	if compareVersions(found.Version, installed.Version) >= 0 {
		return "", nil
	}
	before, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	_, err = command.Run(ctx, command.Command{Argv: []string{"ovsdb-tool", "convert", path, schemaPath}})
	if command.Missing(err) {
		return "", fmt.Errorf("converting %s: install openvswitch-common, which has ovsdb-tool: %w", path, err)
	}
	if err != nil {
		return "", fmt.Errorf("converting %s from schema %s to %s: %w", path, found.Version, installed.Version, err)
	}
	// The tool writes a new file, readable by the group too, and leaves the
	// lock file of its temporary one.
	if err := os.Chmod(path, before.Mode().Perm()); err != nil {
		return "", err
	}
	os.Remove(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp.~lock~"))
	return fmt.Sprintf("%s: converted from schema %s to %s, that of the installed daemons",
		found.Name, found.Version, installed.Version), nil
}

// head reads what the first record of a file says.
func head(path string) (Info, error) {
	file, err := os.Open(path)
	if err != nil {
		return Info{}, err
	}
	defer file.Close()
	src, err := newSource(file)
	if err != nil {
		return Info{}, err
	}
	return src.info, nil
}

// compareVersions orders schema versions, which are x.y.z (RFC 7047, 3.2). One
// that is not, or that is missing, is older than all others.
func compareVersions(a, b string) int {
	x, y := version(a), version(b)
	return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), cmp.Compare(x[2], y[2]))
}

func version(text string) [3]int {
	var v [3]int
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return [3]int{-1}
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return [3]int{-1}
		}
		v[i] = n
	}
	return v
}
