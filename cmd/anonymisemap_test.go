package cmd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// TestBundleAndMapChangeTogether replaces a bundle and its map, kills the command at renames, and lets syncs and renames
// fail for lack of space: the map's file always has the map of the bundle that is there. A power cut can keep a later rename and not
// an earlier one, unless the folder is synced in between.
func TestBundleAndMapChangeTogether(t *testing.T) {
	ovs.Need(t, "strace")
	s := newSession(t, engines.Get(t, engines.Process))
	s.run("collect", "../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz")
	bundle := filepath.Join(s.dir, "case.ovs-offline")
	s.run("save", "--anonymise", bundle)
	maps := map[string]map[string]string{} // of what was replaced, by the sums of the bundles
	remember := func(of savedMap) { maps[of.Bundle["sha256"]] = of.Names }
	remember(readMap(t, bundle))
	log := filepath.Join(s.dir, "power.trace")
	// strace counts the calls of each thread by itself: only a first one is certain to come.
	for _, fault := range [][]string{
		{"-P", bundle + ".map.json", "-e", "inject=renameat,renameat2:signal=KILL:when=1"},
		{"-P", bundle, "-e", "inject=renameat,renameat2:signal=KILL:when=1"},
		{"-e", "inject=fsync:error=ENOSPC:when=1"},
		{"-e", "inject=fsync:error=ENOSPC:when=2"},
		{"-P", bundle, "-e", "inject=renameat,renameat2:error=ENOSPC:when=1"},
		{"-y", "-e", "trace=fsync,renameat,renameat2", "-o", log},
	} {
		strace := s.command("save", "--anonymise", "--force", bundle)
		strace.Args = slices.Concat([]string{"strace", "-f", "-qq", "-o", "/dev/null"}, fault, []string{strace.Path}, strace.Args[1:])
		strace.Path, strace.Err = exec.LookPath("strace")
		before := readMap(t, bundle)
		out, err := strace.CombinedOutput()
		content, errRead := os.ReadFile(bundle)
		if errRead != nil {
			t.Fatal(errRead)
		}
		sum := sha256.Sum256(content)
		is, after := hex.EncodeToString(sum[:]), readMap(t, bundle)
		last := fault[len(fault)-1] == log
		if last && (err != nil || after.Earlier != nil) {
			t.Errorf("%v: %s, and the earlier map is there: %v", err, out, after.Earlier != nil)
		}
		for after.Bundle["sha256"] != is && after.Earlier != nil {
			after = *after.Earlier
		}
		known := maps[is]
		if after.Bundle["sha256"] != is || known != nil && fmt.Sprint(known) != fmt.Sprint(after.Names) {
			t.Errorf("%v: the map is not of the bundle: %v, %s", fault, err, out)
		}
		if failed := err != nil; failed == last && fault[len(fault)-1] != "inject=fsync:error=ENOSPC:when=2" ||
			failed && is != before.Bundle["sha256"] && (before.Earlier == nil || is != before.Earlier.Bundle["sha256"]) {
			t.Errorf("%v: %v, %s", fault, err, out)
		}
		remember(after)
	}
	var renames, names []string // since the folder was synced, and all
	for _, c := range calls(t, log) {
		switch {
		case c.name == "rename" && strings.HasPrefix(c.to, bundle):
			renames, names = append(renames, c.to), append(names, c.to)
		case c.name == "sync" && c.from == s.dir:
			renames = nil
		}
		if len(renames) > 1 {
			t.Errorf("the folder is not synced between the renames to %s", renames)
		}
	}
	expect.Equal(t, names, []string{bundle + ".map.json", bundle, bundle + ".map.json"}, "renames")
}

type savedMap struct {
	Bundle, Names map[string]string
	Earlier       *savedMap
}

func readMap(t *testing.T, bundle string) (of savedMap) {
	t.Helper()
	text, err := os.ReadFile(bundle + ".map.json")
	if err == nil {
		err = json.Unmarshal(text, &of)
	}
	if err != nil {
		t.Fatal(err)
	}
	return of
}
