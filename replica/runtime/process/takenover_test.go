//go:build linux

package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process/landlock"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/daemons/takenover"
)

// takenOver starts the program that tries all as an ovs-vswitchd, as a tool or, as the control, by itself, and
// returns what it got.
func takenOver(t *testing.T, options Options, control, asTool bool) map[string]string {
	t.Helper()
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	program := filepath.Join(own, "bin", "ovs-vswitchd")
	raw, err := os.ReadFile("/proc/self/exe")
	if err = errors.Join(err, os.MkdirAll(filepath.Dir(program), 0o700), os.WriteFile(program, raw, 0o700)); err != nil {
		t.Fatal(err)
	}
	takenover.Surround(t, own)
	if control {
		cmd := exec.Command(program, triesAll, own)
		cmd.Env = append(os.Environ(), "control=yes")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	} else if options.Folders = []string{own}; asTool {
		if _, err := New(options).Tool(t.Context(), own, nil, program, triesAll, own); err != nil {
			t.Fatal(err)
		}
	} else {
		err := New(options).Start(t.Context(), runtime.Daemon{Role: "ovs-vswitchd", Program: program, RunDir: own,
			Log: filepath.Join(own, "log"), Args: []string{triesAll, own}})
		if err == nil || !strings.Contains(err.Error(), "it detached, but does not hold") {
			t.Fatalf("the program has not ended: %v", err)
		}
	}
	return takenover.Outcomes(t, own)
}

// TestTakenOverDaemon starts a program in place of ovs-vswitchd that tries what a daemon should not do: in namespaces,
// and under the filter, where tools of this host run, too. Without both it shows which attempts would succeed here. What
// only Landlock stops may succeed on a kernel that lacks it, and the list of what succeeded says so.
func TestTakenOverDaemon(t *testing.T) {
	ovs.Need(t)
	root := os.Getenv(rootVariant)
	free := takenOver(t, Options{}, true, false)
	for _, name := range []string{"read a file of the user", "append to a file of the user", "remove a file of the user",
		"connect to a unix socket of the user", "connect to an abstract unix socket", "connect by TCP", "signal a process",
		"read a process's memory", "change the mode of an open file", "write a file of 20 GiB"} {
		if free[name] != takenover.Had {
			t.Errorf("nothing stops it, and it can't %s: %s", name, free[name])
		}
	}
	for _, place := range []struct {
		letter  string
		options Options
	}{{"n", Options{}}, {"f", Options{NoNamespaces: true}}, {"t", Options{}}} {
		if ok, why := New(place.options).Isolated(t.Context()); place.letter == "n" && (!ok || why != "") {
			t.Logf("no namespaces here: %s", why)
			continue
		}
		if root != "" {
			place.letter, place.options.Root = "i", root
		}
		got := takenOver(t, place.options, false, place.letter == "t")
		tried, succeeded := 0, []string{}
		for _, p := range takenover.All() {
			tried++
			outcome := got[p.Name]
			may := strings.Contains(p.May, place.letter) || place.letter == "t" && strings.Contains(p.May, "f") ||
				landlock.Version() < p.Since
			if outcome == takenover.Had {
				succeeded = append(succeeded, p.Name)
			}
			if outcome == takenover.Had && !may || outcome != takenover.Had && strings.HasSuffix(p.May, "!") || outcome == "" {
				t.Errorf("%+v: %s: %q", place, p.Name, outcome)
			}
		}
		t.Logf("Landlock %d, user %d, %+v: of %d attempts %d succeeded: %s", landlock.Version(), os.Getuid(),
			place.options, tried, len(succeeded), strings.Join(succeeded, "; "))
	}
}
