package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"ovs-offline/internal/phrase"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// killsVariable has the number of moments at which each command is killed, instead of 1 in its middle.
const killsVariable = "OVS_OFFLINE_KILLS"

// TestKilledWritingCommands kills each command that writes at moments from its beginning to its
// end. The next command works each time, in the workdir of a node, in the folder of several, and
// with images; after stop --purge, nothing is left of a workdir, nor in TMPDIR.
func TestKilledWritingCommands(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-nbctl", "ovn-northd", "ovn-controller")
	moments := 1
	if text := os.Getenv(killsVariable); text != "" {
		var err error
		if moments, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newSession(t, engines.Get(t, engines.Process))
	one, other := capture(t, "ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz"),
		capture(t, "ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz")
	s.run("collect", one)
	saved := filepath.Join(s.dir, "saved")
	s.run("save", saved)
	s.run("-w", filepath.Join(s.dir, "set"), "collect", one, other)
	savedSet := filepath.Join(s.dir, "saved-set")
	s.run("-w", filepath.Join(s.dir, "set"), "save", savedSet)
	image := filepath.Join(s.dir, "image.tar")
	engines.HostArchive(t, image)
	image = "docker-archive:" + image
	for _, c := range sweep.Rows(writingCommands(one, other, saved, savedSet, image, s.wd()),
		func(c writing) bool { return c.shape }) {
		t.Run(c.name, func(t *testing.T) {
			k := newKilling(t, filepath.Join(s.dir, "ovs-offline"))
			k.all(c.before)
			begin := time.Now()
			k.all([][]string{c.command})
			whole := time.Since(begin)
			k.all(c.next)
			k.purge("not killed")
			for i := range moments {
				k.all(c.before)
				when := whole * time.Duration(2*i+1) / time.Duration(2*moments)
				k.kill(c.command, when)
				k.all(c.next)
				k.purge("killed after " + when.String())
			}
		})
	}
}

// writing is a command that writes.
type writing struct {
	name    string
	shape   bool       // whether it is the first of its way to write: what else writes so, or is killed by another test, is for the sweep
	before  [][]string // commands that make what it works on
	command []string
	next    [][]string // commands that work after it
}

// writingCommands returns all of them, for two reports, what was saved of one and of both, an image and a collected
// workdir.
func writingCommands(one, other, saved, savedSet, image, wd string) []writing {
	conf, nb, sb := filepath.Join(wd, "db/ovs/conf.db"), filepath.Join(wd, "db/ovn_nb/ovnnb_db.db"),
		filepath.Join(wd, "db/ovn_sb/ovnsb_db.db")
	return []writing{
		{"collect", false, nil, []string{"collect", one}, [][]string{{"collect", "--force", one}, {"start"}, {"status"}}},
		{"collect of several", true, nil, []string{"collect", one, other},
			[][]string{{"collect", "--force", one, other}, {"list"}}},
		{"collect into a set", false, [][]string{{"collect", one, other}}, []string{"collect", "--force", one},
			[][]string{{"collect", "--force", one}, {"list"}}},
		{"load", true, nil, []string{"load", saved}, [][]string{{"load", "--force", saved}, {"start"}}},
		{"load of several", false, nil, []string{"load", savedSet}, [][]string{{"load", "--force", savedSet}, {"list"}}},
		{"start", false, [][]string{{"collect", one}}, []string{"start"}, [][]string{{"start"}, {"trace", "p-vm1", "p-vm2"}}},
		{"stop", true, [][]string{{"collect", one}, {"start"}}, []string{"stop"}, [][]string{{"start"}, {"status"}}},
		{"stop --purge", false, [][]string{{"collect", one}}, []string{"stop", "--purge"},
			[][]string{{"collect", "--force", one}, {"list"}}},
		{"save", true, [][]string{{"collect", one}}, []string{"save", "--force", "OUT"},
			[][]string{{"save", "--force", "OUT"}, {"load", "--force", "OUT"}}},
		{"history --save", true, [][]string{{"collect", one}},
			[]string{"history", "--at", "2026-11-21T08:52:50Z", "--save", "NEW"}, [][]string{{"collect", "--force", one}}},
		{"what-if", false, [][]string{{"collect", one}}, []string{"what-if", "--", "ovn-nbctl", "ls-add", "new"},
			[][]string{{"what-if", "--", "ovn-nbctl", "ls-add", "new"}}},
		{"drift", false, [][]string{{"collect", one}}, []string{"drift"}, [][]string{{"drift"}}},
		{"compare", false, nil, []string{"compare", one, other}, [][]string{{"compare", one, one}}},
		{"inspect", false, nil, []string{"inspect", one}, [][]string{{"inspect", one}}},
		{"collect-sos", false, nil, []string{"collect-sos", one}, [][]string{{"collect-sos", "--force", one}, {"list"}}},
		{"collect-db-ovs", false, nil, []string{"collect-db-ovs", conf},
			[][]string{{"collect-db-ovs", "--force", conf}, {"start"}}},
		{"collect-db-ovn-nb", false, nil, []string{"collect-db-ovn-nb", nb},
			[][]string{{"collect-db-ovn-nb", "--force", nb}, {"start"}}},
		{"collect-db-ovn-sb", true, nil, []string{"collect-db-ovn-sb", sb},
			[][]string{{"collect-db-ovn-sb", "--force", sb}, {"start"}}},
		{"image add", true, nil, []string{"image", "add", image, "-t", "mine"},
			[][]string{{"image", "add", image, "-t", "mine"}, {"image", "rm", "mine"}}},
		{"image rm", false, [][]string{{"image", "add", image, "-t", "mine"}}, []string{"image", "rm", "mine"},
			[][]string{{"image", "add", image, "-t", "mine"}, {"image", "rm", "mine"}}},
	}
}

// killing is a folder in which a command is killed.
type killing struct {
	t        *testing.T
	bin, dir string
}

func newKilling(t *testing.T, bin string) *killing {
	t.Helper()
	k := &killing{t, bin, ovs.Dir(t)}
	if err := os.Mkdir(filepath.Join(k.dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = k.run("stop") })
	return k
}

// command returns a command line in which OUT and NEW are paths in the folder.
func (k *killing) command(args []string) *exec.Cmd {
	var words []string
	for _, a := range args {
		if a == "OUT" || a == "NEW" {
			a = filepath.Join(k.dir, a)
		}
		words = append(words, a)
	}
	c := exec.Command(k.bin, words...)
	c.Env = append(os.Environ(), "OVS_OFFLINE_RUNTIME=process", "OVS_DBG_WORKDIR="+filepath.Join(k.dir, "wd"),
		"TMPDIR="+filepath.Join(k.dir, "tmp"), "XDG_DATA_HOME="+filepath.Join(k.dir, "data"))
	return c
}

// run runs a command, again while a child of a killed one still holds the lock.
func (k *killing) run(args ...string) (code int, printed string) {
	return unlocked(func() *exec.Cmd { return k.command(args) })
}

// all runs commands that have to succeed; a set of two deployments may lack a database, and captures differ.
func (k *killing) all(list [][]string) {
	k.t.Helper()
	for _, args := range list {
		if code, printed := k.run(args...); code != exitDone && code != exitIncomplete && code != exitFound {
			k.t.Errorf("%q: exit code %d:\n%s", args, code, printed)
		}
	}
}

// kill starts a command and kills it some time later.
func (k *killing) kill(args []string, after time.Duration) {
	k.t.Helper()
	_, _ = watched(k.command(args), func(pid int, ended <-chan struct{}) {
		// Here time itself says at which moment: any is right.
		timer := time.AfterFunc(after, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		<-ended
		timer.Stop()
	})
}

// purge checks that stop --purge leaves no file and no process.
func (k *killing) purge(when string) {
	k.t.Helper()
	k.all([][]string{{"stop", "--purge"}})
	_ = os.Remove(filepath.Join(k.dir, "OUT")) // the user's
	_ = os.RemoveAll(filepath.Join(k.dir, "NEW"))
	for _, empty := range []string{"images/.lock", "images", "",
		".."} { // the folder of images; none is removed that holds more
		_ = os.Remove(filepath.Join(k.dir, "data/ovs-offline", empty))
	}
	if left := pathsIn(k.t, k.dir); len(left) != 2 { // the folder, and tmp
		k.t.Errorf("%s: left: %s", when, phrase.Shorten(fmt.Sprintf("%q", left), 2000))
	}
	for pid, line := range running(k.t, k.dir) {
		if isDaemon(line) {
			k.t.Errorf("%s: process %d is left: %q", when, pid, line)
		}
	}
}
