package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/version"
)

// Tool runs ovsdb-tool where it and the schemas are installed, and returns its
// standard output. argv[0] is the program.
type Tool func(ctx context.Context, argv ...string) ([]byte, error)

// Upgrade converts the standalone file at path in place to a schema with
// `ovsdb-tool convert`, if that schema is newer: the installed daemons need its columns.
// Only the owner can read the result. With an equal or older schema, Upgrade changes
// nothing and the remark is empty. An error leaves the file unchanged.
func Upgrade(ctx context.Context, tool Tool, path string, schema Schema) (remark string, err error) {
	src, err := openSource(ctx, nil, path)
	if err != nil {
		return "", err
	}
	src.close()
	found := src.info
	if found.Name != schema.Name {
		return "", fmt.Errorf("%s holds %s, but %s is the schema of %s", path, found.Name, schema.path, schema.Name)
	}
	if !isOlder(found.Version, schema.Version) {
		return "", nil
	}
	if _, err = tool(ctx, "ovsdb-tool", "convert", path, schema.path); err != nil {
		return "", fmt.Errorf("converting %s from schema %s to %s: %w", path, found.Version, schema.Version, err)
	}
	// ovsdb-tool writes a new file that the group can read too, and leaves the
	// lock file of its temporary file.
	if err := os.Chmod(path, 0o600); err != nil {
		return "", err
	}
	os.Remove(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp.~lock~"))
	return fmt.Sprintf("%s: converted from schema %s to %s, which the installed daemons have",
		found.Name, found.Version, schema.Version), nil
}

// isOlder reports whether schema version a is older than b. Versions are x.y.z (RFC
// 7047, 3.2); one in another form, or a missing one, is older than all others.
func isOlder(a, b string) bool {
	x, invalidA := version.ParseSemantic(a)
	y, invalidB := version.ParseSemantic(b)
	return invalidB == nil && (invalidA != nil || x.LessThan(y))
}
