package cmd

import (
	"testing"
	"unicode"
)

func harmless(t *testing.T, printed string) {
	t.Helper()
	for _, r := range printed {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%q has %U", printed, r)
		}
	}
}

// TestShellWord: what show prints can be pasted, whatever a bridge is called.
func TestShellWord(t *testing.T) {
	for path, want := range map[string]string{
		"/wd/var-run/ovs/br-int.mgmt": "/wd/var-run/ovs/br-int.mgmt",
		"/wd/a;touch b.mgmt":          "'/wd/a;touch b.mgmt'",
		"/wd/$(id)'`id`.mgmt":         `'/wd/$(id)'\''` + "`id`.mgmt'",
		"/wd/\x1b[31m\n.mgmt":         `'/wd/\x1b[31m\n.mgmt'`,
	} {
		if got := shellWord(path); got != want {
			t.Errorf("%q is printed as %q", path, got)
		}
	}
}
