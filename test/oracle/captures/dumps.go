package captures

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// dumpOf matches the recorded output of a command on a bridge, with the version of OpenFlow.
var dumpOf = regexp.MustCompile(`^ovs-ofctl_(?:-O_(OpenFlow1[0-5])_)?(dump-flows|dump-groups|dump-meters|meter-stats)_`)

// KeepDumps removes the dumps of an unpacked report but those in some versions of OpenFlow, by
// the command that printed them: other versions of sos run other commands.
func KeepDumps(tb testing.TB, report string, versions map[string]string) {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(report, "sos_commands/*/ovs-ofctl_*"))
	if err != nil {
		tb.Fatal(err)
	}
	kept := 0
	for _, file := range files {
		m := dumpOf.FindStringSubmatch(filepath.Base(file))
		switch {
		case m == nil:
		case m[1] != "" && versions[m[2]] == m[1]:
			kept++
		default:
			if err := os.Remove(file); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if kept < len(versions) {
		tb.Errorf("%d dumps of %v", kept, versions)
	}
}
