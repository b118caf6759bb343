//go:build linux

package keeper_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/replica/runtime/process/landlock"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/daemons/takenover"
	"ovs-offline/workdir"
)

// mark stands before the world at the end of a planted program, which has no other way to it.
const mark = "\nthe world of the program: "

// planted has what a namespace has recorded so that a program runs in it, by the program's name.
func planted() map[string]struct{ output, text string } {
	return map[string]struct{ output, text string }{
		"nft":                  {workdir.HostNftables, "table inet t {\n\tchain c {\n\t\tip saddr 1.2.3.4 drop\n\t}\n}\n"},
		"iptables-nft-restore": {workdir.NamespaceFilters, "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -s 1.2.3.4/32 -j DROP\nCOMMIT\n"},
		"ipset":                {workdir.NamespaceSets, "create s hash:ip family inet hashsize 1024 maxelem 65536\nadd s 1.2.3.4\n"},
	}
}

// beTakenOver tries all in the place of a program, and prints what succeeded and should not.
func beTakenOver() int {
	raw, err := os.ReadFile("/proc/self/exe")
	var w takenover.World
	if err == nil {
		err = json.Unmarshal(raw[bytes.LastIndex(raw, []byte(mark))+len(mark):], &w)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var succeeded []string
	got := takenover.TryAll(w, false)
	for _, p := range takenover.All() {
		if got[p.Name] == takenover.Had && !strings.Contains(p.May, "k") && landlock.Version() >= p.Since {
			succeeded = append(succeeded, p.Name)
		}
	}
	fmt.Fprintf(os.Stderr, "of %d attempts succeeded: [%s]\n", len(got), strings.Join(succeeded, "; "))
	return 1
}

// TestTakenOverPrograms restores rules and sets with a program in place of each that restores them, which tries what it should not
// do, for root and for an ordinary user.
func TestTakenOverPrograms(t *testing.T) {
	ovs.Need(t, "nft", "iptables-nft-restore", "ipset", "unshare", "setpriv")
	if os.Geteuid() != 0 {
		t.Skip("only root can put a program in place of another one")
	}
	for name, in := range planted() {
		for _, user := range []string{"0", "12345"} {
			t.Run(name+" of user "+user, func(t *testing.T) { takeOver(t, name, user, in.output, in.text) })
		}
	}
}

// takeOver restores a namespace with an output, for a user and with a planted program in place of the one of a name.
func takeOver(t *testing.T, name, user, output, recorded string) {
	replaced, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	wd := newWorkdir(t)
	simple(t, wd, "qrouter-1")
	write(t, wd.NamespaceRecorded("qrouter-1", output), recorded)
	raw, err := json.Marshal(takenover.Surround(t, wd.Path()))
	self, readErr := os.ReadFile("/proc/self/exe")
	program := filepath.Join(t.TempDir(), name)
	if err = errors.Join(err, readErr, os.Remove(filepath.Join(wd.Path(), "world")),
		os.WriteFile(program, append(append(self, mark...), raw...), 0o755), os.Chmod(filepath.Dir(program), 0o755),
		os.Chmod(filepath.Dir(filepath.Dir(program)), 0o755)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("chown", "-R", user, wd.Path()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for dir := filepath.Dir(wd.Path()); dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("unshare", "-m", "sh", "-c", `mount --bind "$1" "$2"; shift 2; exec "$@"`, "sh", program, replaced,
		"setpriv", "--reuid="+user, "--regid="+user, "--clear-groups", program)
	cmd.Args[len(cmd.Args)-1] = filepath.Join(filepath.Dir(program), "asker")
	if err := os.Link(program, cmd.Args[len(cmd.Args)-1]); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), asAsker+"="+wd.Path())
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || strings.HasPrefix(text, "error:") {
		t.Fatalf("%v: %s", err, text)
	}
	if want := fmt.Sprintf("of %d attempts succeeded: []", len(takenover.All())); !strings.Contains(text, want) {
		t.Errorf("want %s: %s", want, text)
	}
}
