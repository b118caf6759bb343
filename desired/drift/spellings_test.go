package drift

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/internal/workdir"
	"ovs-offline/test/captures"
)

// dumpOf matches the recorded output of a command on a bridge, with the version of OpenFlow.
var dumpOf = regexp.MustCompile(`^ovs-ofctl_(?:-O_(OpenFlow1[0-5])_)?(dump-flows|dump-groups|dump-meters|meter-stats)_`)

// TestDumpsOfEachVersionAreCompared checks a captured node, which had no drift, by its dumps
// of one version of OpenFlow each, as versions of sos have them: groups in OpenFlow 1.0 have
// selection methods and bucket ids, and those in OpenFlow 1.3 do not.
func TestDumpsOfEachVersionAreCompared(t *testing.T) {
	need(t, "23.03")
	found, err := filepath.Glob("../../testdata/captures/ovn-kubernetes-worker/sosreport-*.tar.xz")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	for name, keep := range map[string]map[string]string{
		"OpenFlow 1.0":                           {"dump-flows": "OpenFlow10", "dump-groups": "OpenFlow10"},
		"OpenFlow 1.3":                           {"dump-flows": "OpenFlow13", "dump-groups": "OpenFlow13", "dump-meters": "OpenFlow13"},
		"flows in OpenFlow 1.5, groups in 1.0":   {"dump-flows": "OpenFlow15", "dump-groups": "OpenFlow10", "dump-meters": "OpenFlow13"},
		"flows in OpenFlow 1.0, groups in 1.3":   {"dump-flows": "OpenFlow10", "dump-groups": "OpenFlow13", "dump-meters": "OpenFlow13"},
		"flows in OpenFlow 1.3, without a group": {"dump-flows": "OpenFlow13"},
	} {
		t.Run(name, func(t *testing.T) {
			report := captures.Unpack(t, found[0], "--strip-components=1")
			keepOnly(t, report, keep)
			wd := collectReport(t, report)
			r := check(t, wd, Options{})
			if r.Verdict != None || r.Compared.Flows < 1000 {
				t.Errorf("%s %s: %d flows compared\n%s", r.Verdict, r.Why, r.Compared.Flows, strings.Join(lists(r), "\n"))
			}
			if keep["dump-groups"] == "OpenFlow10" {
				plant{workdir.Groups, "group_id=5,", "selection_method=dp_hash", "selection_method=hash",
					"altered 1 group of load balancer Service_dns_UDP, stage lr_in_dnat of router GR_ovn-worker"}.check(t, wd)
			}
		})
	}
}

// keepOnly removes the dumps of a report but those in some versions of OpenFlow.
func keepOnly(t *testing.T, report string, versions map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(report, "sos_commands/*/ovs-ofctl_*"))
	if err != nil {
		t.Fatal(err)
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
				t.Fatal(err)
			}
		}
	}
	if kept < len(versions) {
		t.Errorf("%d dumps of %v", kept, versions)
	}
}
