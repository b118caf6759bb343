package whatif

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/reach"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/image"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
)

// releases are the root file systems of scripts/roots that the tests upgrade to.
func releases() []string { return []string{"trixie", "sid"} }

// addReleases makes images of other releases, and returns their versions of OVN by root file system.
func addReleases(t *testing.T) map[string]string {
	t.Helper()
	fidelity.NeedScratch(t)
	roots := os.Getenv("OVS_OFFLINE_ROOTS")
	if roots == "" {
		t.Skip("OVS_OFFLINE_ROOTS names no folder with root file systems of other releases: make test-versions makes them")
	}
	t.Setenv("XDG_DATA_HOME", ovs.Dir(t))
	store, err := image.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, release := range releases() {
		root := filepath.Join(roots, release)
		if _, err := os.Stat(root); err != nil {
			t.Skip(err)
		}
		added, err := store.Add(t.Context(), "dir:"+root, image.AddOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found[release] = added.Versions().OVN
	}
	return found
}

// recordedSet returns the nodes of a recorded set as a deployment.
func recordedSet(t *testing.T, name string, nodes ...string) Deployment {
	t.Helper()
	folder := ovs.Dir(t)
	if _, err := sets.Recorded(t, "../../scripts/lab/lab", name).Workdirs(t.Context(), folder, sets.Native); err != nil {
		t.Fatal(err)
	}
	selected, err := snapshot.Open(folder, nodes)
	if err != nil {
		t.Fatal(err)
	}
	deployment, err := Of(t.Context(), selected)
	if err != nil {
		t.Fatal(err)
	}
	return deployment
}

// replicaAt returns the replica of the workdir at path.
func replicaAt(path string) Replica { return set.At(path, "test") }

func rehearsed(t *testing.T, upgrade Upgrade) *Rehearsal {
	t.Helper()
	upgrade.Runtime, upgrade.Runtimes, upgrade.Replica = choose.Process, choose.Finder("test"), replicaAt
	result, err := Rehearse(t.Context(), upgrade)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(upgrade.Deployment.Nodes[0].Dir.Path(), ".scratch")); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
	return result
}

// changed describes the pairs that changed.
func changed(list []reach.Change) (all []string) {
	for _, c := range list {
		all = append(all, strings.Join([]string{c.From, c.To, c.Port.String(), string(c.Before.Verdict), c.Before.Reason,
			c.Before.Rule, "->", string(c.After.Verdict), c.After.Reason, c.After.Rule}, " "))
	}
	return all
}

// TestAnUpgradeOfUnchangedFeaturesChangesNothing rehearses upgrades of deployments whose real packets come out alike in
// all these releases.
func TestAnUpgradeOfUnchangedFeaturesChangesNothing(t *testing.T) {
	to := addReleases(t)
	for name, nodes := range map[string][]string{"openstack": nil, "kubernetes-ic": {"worker2"}} {
		deployment := recordedSet(t, name, nodes...)
		for _, release := range releases() {
			t.Run(name+" "+release, func(t *testing.T) {
				result := rehearsed(t, Upgrade{Deployment: deployment, To: versions.Pair{OVN: to[release]},
					External: []string{"198.51.100.9"}})
				if result.To.OVN != to[release] || result.From.OVN == result.To.OVN {
					t.Errorf("from %s to %s", result.From, result.To)
				}
				if result.Differs() || len(result.Pairs.Unknown) > 0 || len(result.Doubts) > 0 {
					t.Errorf("refused %+v, rows %+v, changed %q, unknown %q, doubts %q", result.Refused, result.Rows,
						changed(result.Pairs.Changed), changed(result.Pairs.Unknown), result.Doubts)
				}
				if text := strings.Join(result.Remarks, "\n"); strings.Contains(text, "these chassis are not computed") {
					t.Error(text)
				}
				t.Logf("%d cells, %d of them undetermined", result.Pairs.Compared, result.Pairs.Undetermined)
				if result.Pairs.Compared-result.Pairs.Undetermined < 50 {
					t.Error("few pairs were compared")
				}
			})
		}
	}
}

// withNB returns a deployment with another NB database.
func (d Deployment) withNB(path string) Deployment {
	d.NB = path
	return d
}

// planted returns a copy of an NB database, changed by ovn-nbctl.
func planted(t *testing.T, nb string, args ...string) string {
	t.Helper()
	path := filepath.Join(ovs.Dir(t), "nb.db")
	if _, _, err := file.Standalone(t.Context(), nb, path); err != nil {
		t.Fatal(err)
	}
	server := ovs.Serve(t, path)
	ovs.Run(t, append([]string{"ovn-nbctl", "--db=" + server.Remote}, args...)...)
	server.Stop()
	return path
}

// TestAnUpgradeNamesWhatItChanges plants an ACL whose match only the later releases know: these drop what it matches,
// and the recorded one refuses it. No other pair changes.
func TestAnUpgradeNamesWhatItChanges(t *testing.T) {
	to := addReleases(t)
	deployment := recordedSet(t, "openstack")
	nb := planted(t, deployment.NB, "--name=late", "acl-add", blue, "to-lport", "3000",
		fmt.Sprintf("outport == %q && icmp4.type == 8 && ct_mark.allow_established == 0", vm1), "drop")
	for _, release := range releases() {
		t.Run(release, func(t *testing.T) {
			result := rehearsed(t, Upgrade{Deployment: deployment.withNB(nb), To: versions.Pair{OVN: to[release]}})
			if len(result.Rows) != 1 || result.Rows[0].Table != "ACL" || result.Rows[0].Before != 0 ||
				!strings.Contains(result.Rows[0].What, "late") || len(result.Refused) > 0 {
				t.Errorf("rows %+v, refused %+v", result.Rows, result.Refused)
			}
			if !slices.ContainsFunc(result.Accepted, func(r Refusal) bool {
				return r.Program == "ovn-controller" && strings.HasPrefix(r.Problem, "error parsing match") &&
					strings.Contains(r.Example, "allow_established")
			}) {
				t.Errorf("accepted %+v", result.Accepted)
			}
			for _, c := range result.Pairs.Changed {
				if c.Port.Protocol != "icmp" || c.Witness.To != "vm1" || c.After.Verdict != answer.Unreachable ||
					!strings.Contains(c.After.Rule, "late") || !strings.Contains(c.Witness.Packet, "icmp") {
					t.Errorf("%q", changed([]reach.Change{c}))
				}
			}
			if len(result.Pairs.Changed) < 3 {
				t.Errorf("changed: %q", changed(result.Pairs.Changed))
			}
			t.Logf("%d cells changed of %d", len(result.Pairs.Changed), result.Pairs.Compared)
		})
	}
}

// TestWithoutTheProgramsOfAReleaseNothingIsRehearsed asks for a release that is not there.
func TestWithoutTheProgramsOfAReleaseNothingIsRehearsed(t *testing.T) {
	fidelity.NeedScratch(t)
	t.Setenv("XDG_DATA_HOME", ovs.Dir(t))
	_, err := Rehearse(t.Context(), Upgrade{Deployment: recordedSet(t, "openstack"), To: versions.Pair{OVN: "99.03"},
		Runtime: choose.Process, Runtimes: choose.Finder("test"), Replica: replicaAt})
	if !errors.Is(err, ErrUndetermined) || !strings.Contains(err.Error(), "OVN 99.03 was asked for") ||
		!strings.Contains(err.Error(), "ovs-offline image add") {
		t.Error(err)
	}
}
