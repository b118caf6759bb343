package show_test

import (
	"testing"

	"ovs-offline/internal/show"
)

func TestWordQuotesPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/wd/var-run/ovs/br-int.mgmt": "/wd/var-run/ovs/br-int.mgmt",
		"/wd/a;touch b.mgmt":          "'/wd/a;touch b.mgmt'",
		"/wd/$(id)'`id`.mgmt":         `'/wd/$(id)'\''` + "`id`.mgmt'",
		"/wd/\x1b[31m\n.mgmt":         `'/wd/\x1b[31m\n.mgmt'`,
	} {
		if got := show.Word(path); got != want {
			t.Errorf("%q is printed as %q", path, got)
		}
	}
}
