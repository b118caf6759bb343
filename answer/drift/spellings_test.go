package drift

import (
	"strings"
	"testing"

	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/workdir"
)

// TestDumpsOfEachVersionAreCompared checks a captured node, which had no drift, by its dumps
// of one version of OpenFlow each, as versions of sos have them: groups in OpenFlow 1.0 have
// selection methods and bucket ids, and those in OpenFlow 1.3 do not.
func TestDumpsOfEachVersionAreCompared(t *testing.T) {
	need(t, "23.03")
	worker := captures.Report(t, "captures/ovn-kubernetes-worker")
	for name, keep := range map[string]map[string]string{
		"OpenFlow 1.0": {"dump-flows": "OpenFlow10", "dump-groups": "OpenFlow10"},
		"OpenFlow 1.3": {"dump-flows": "OpenFlow13", "dump-groups": "OpenFlow13",
			"dump-meters": "OpenFlow13"},
		"flows in OpenFlow 1.5, groups in 1.0": {"dump-flows": "OpenFlow15", "dump-groups": "OpenFlow10",
			"dump-meters": "OpenFlow13"},
		"flows in OpenFlow 1.0, groups in 1.3": {"dump-flows": "OpenFlow10", "dump-groups": "OpenFlow13",
			"dump-meters": "OpenFlow13"},
		"flows in OpenFlow 1.3, without a group": {"dump-flows": "OpenFlow13"},
	} {
		t.Run(name, func(t *testing.T) {
			report := captures.Unpack(t, worker, "--strip-components=1")
			captures.KeepDumps(t, report, keep)
			wd := collected.Report(t, report)
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
