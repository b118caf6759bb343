package ovsdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Tool runs ovsdb-tool, wherever that and the schemas are installed, and returns
// what it printed. Argv[0] is the program.
type Tool func(ctx context.Context, argv ...string) ([]byte, error)

// Upgrade converts the standalone file at path in place to the schema at
// schemaPath, as tool sees both, when that one is newer, as `ovsdb-tool convert`
// does: the daemons that are installed look for columns an older schema lacks.
// An equal or older schema changes nothing. The remark tells of a conversion; it
// is empty without one. After an error the file is as it was.
func Upgrade(ctx context.Context, tool Tool, path, schemaPath string) (remark string, err error) {
	name, err := firstWord(ctx, tool, "schema-name", schemaPath)
	if err != nil {
		return "", err
	}
	version, err := firstWord(ctx, tool, "schema-version", schemaPath)
	if err != nil {
		return "", err
	}
	found, err := head(ctx, path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if found.Name != name {
		return "", fmt.Errorf("%s holds %s, but %s is the schema of %s", path, found.Name, schemaPath, name)
	}
	if found.Form != FormStandalone {
		return "", fmt.Errorf("%s is a %s database: make it standalone first", path, found.Form)
	}
	if compareVersions(found.Version, version) >= 0 {
		return "", nil
	}
	before, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if _, err = tool(ctx, "ovsdb-tool", "convert", path, schemaPath); err != nil {
		return "", fmt.Errorf("converting %s from schema %s to %s: %w", path, found.Version, version, err)
	}
	// The tool writes a new file, readable by the group too, and leaves the
	// lock file of its temporary one.
	if err := os.Chmod(path, before.Mode().Perm()); err != nil {
		return "", err
	}
	os.Remove(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp.~lock~"))
	return fmt.Sprintf("%s: converted from schema %s to %s, that of the installed daemons",
		found.Name, found.Version, version), nil
}

// ErrNoSchema is wrapped where an installed schema can't be read.
var ErrNoSchema = errors.New("the installed schema")

// firstWord asks ovsdb-tool about a schema.
func firstWord(ctx context.Context, tool Tool, command, schemaPath string) (string, error) {
	said, err := tool(ctx, "ovsdb-tool", command, schemaPath)
	if err != nil {
		return "", fmt.Errorf("%w %s: %w", ErrNoSchema, schemaPath, err)
	}
	return strings.TrimSpace(string(said)), nil
}

// head reads what the first record of a file says.
func head(ctx context.Context, path string) (Info, error) {
	file, err := os.Open(path)
	if err != nil {
		return Info{}, err
	}
	defer file.Close()
	src, err := newSource(ctx, file)
	if err != nil {
		return Info{}, err
	}
	defer src.close()
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
