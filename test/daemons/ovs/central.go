package ovs

import (
	"os"
	"path/filepath"
	"testing"
)

// Central is an ovsdb-server with the databases of an OVN deployment.
type Central struct {
	NB, SB string // files; what is in them is complete once the server was stopped
	*Server
}

// StartCentral starts a server on empty databases. Northd starts the ovn-northd.
func StartCentral(tb testing.TB) *Central {
	tb.Helper()
	Need(tb, "ovsdb-tool", "ovsdb-server", "ovn-northd", "ovn-nbctl", "ovn-sbctl")
	dir := Dir(tb)
	c := &Central{NB: filepath.Join(dir, "nb.db"), SB: filepath.Join(dir, "sb.db")}
	Run(tb, "ovsdb-tool", "create", c.NB, NBSchema)
	Run(tb, "ovsdb-tool", "create", c.SB, SBSchema)
	c.Server = ServeIn(tb, dir, c.NB, c.SB)
	return c
}

// Resume starts a server again that Stop has ended, on its databases. A missing southbound
// database is made again.
func (c *Central) Resume() {
	c.tb.Helper()
	if _, err := os.Stat(c.SB); err != nil {
		Run(c.tb, "ovsdb-tool", "create", c.SB, SBSchema)
	}
	c.Server = ServeIn(c.tb, c.Dir, c.NB, c.SB)
}

// Nbctl runs ovn-nbctl.
func (c *Central) Nbctl(args ...string) string {
	c.tb.Helper()
	return c.Run(append([]string{"ovn-nbctl", Timeout(), "--db=" + c.Remote}, args...)...)
}

// Sbctl runs ovn-sbctl.
func (c *Central) Sbctl(args ...string) string {
	c.tb.Helper()
	return c.Run(append([]string{"ovn-sbctl", Timeout(), "--db=" + c.Remote}, args...)...)
}
