package file

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Tool runs ovsdb-tool where it and the schemas are installed, and returns its
// standard output. argv[0] is the program.
type Tool func(ctx context.Context, argv ...string) ([]byte, error)

// Upgrade converts the standalone file at path in place to the schema at
// schemaPath with `ovsdb-tool convert`, where that schema is newer: the installed
// daemons need its columns. Schema is the head of the one at schemaPath, from
// ReadSchemaHead or AskSchemaHead. An equal or older schema changes nothing, and
// the remark is empty then. After an error the file is as it was.
func Upgrade(ctx context.Context, tool Tool, path, schemaPath string, schema SchemaHead) (remark string, err error) {
	found, err := identify(ctx, path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if found.Name != schema.Name {
		return "", fmt.Errorf("%s holds %s, but %s is the schema of %s", path, found.Name, schemaPath, schema.Name)
	}
	if found.Form != FormStandalone {
		return "", fmt.Errorf("%s is a %s database: make it standalone first", path, found.Form)
	}
	if compareVersions(found.Version, schema.Version) >= 0 {
		return "", nil
	}
	before, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if _, err = tool(ctx, "ovsdb-tool", "convert", path, schemaPath); err != nil {
		return "", fmt.Errorf("converting %s from schema %s to %s: %w", path, found.Version, schema.Version, err)
	}
	// ovsdb-tool writes a new file that the group can read too, and leaves the
	// lock file of its temporary file.
	if err := os.Chmod(path, before.Mode().Perm()); err != nil {
		return "", err
	}
	os.Remove(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp.~lock~"))
	return fmt.Sprintf("%s: converted from schema %s to %s, that of the installed daemons",
		found.Name, found.Version, schema.Version), nil
}

// identify reads the first record of a database file.
func identify(ctx context.Context, path string) (Info, error) {
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

// compareVersions orders schema versions, which are x.y.z (RFC 7047, 3.2). A
// version in another form, or a missing one, is older than all others.
func compareVersions(a, b string) int {
	x, y := parseVersion(a), parseVersion(b)
	return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), cmp.Compare(x[2], y[2]))
}

func parseVersion(text string) [3]int {
	var version [3]int
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return [3]int{-1}
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return [3]int{-1}
		}
		version[i] = n
	}
	return version
}
