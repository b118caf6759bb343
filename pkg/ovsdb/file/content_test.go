package file

import (
	"context"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/daemons/ovs"
)

// TestReadReturnsTheRowsOfAServer compares Read with a real server of the file.
func TestReadReturnsTheRowsOfAServer(t *testing.T) {
	file, _ := standalone(t)
	content, remarks, err := Read(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	noRemarks(t, remarks)
	remote := serve(t, file).remote
	for _, table := range []string{"Open_vSwitch", "Bridge", "Port", "Interface"} {
		served := strings.Fields(ovs.Run(t, "ovs-vsctl", "--no-wait", "--db="+remote, "--bare", "--columns=_uuid", "list",
			table))
		slices.Sort(served)
		var have []string
		for _, row := range content.Rows(table) {
			have = append(have, row.UUID)
			if table != "Interface" {
				continue
			}
			for _, column := range []string{"name", "type"} {
				want := strings.TrimSpace(ovs.Run(t, "ovs-vsctl", "--no-wait", "--db="+remote, "--bare", "get", "Interface",
					row.UUID, column))
				if want != row.String(column) && strings.Trim(want, `"`) != row.String(column) {
					t.Errorf("%s of %s is %q, the server has %q", column, row.UUID, row.String(column), want)
				}
			}
			for key, value := range row.Map("options") {
				if want := strings.TrimSpace(ovs.Run(t, "ovs-vsctl", "--no-wait", "--db="+remote, "get", "Interface", row.UUID,
					"options:"+key)); strings.Trim(want, `"`) != value {
					t.Errorf("options:%s of %s is %q, the server has %q", key, row.UUID, value, want)
				}
			}
		}
		if len(served) == 0 || !slices.Equal(have, served) {
			t.Errorf("rows of %s: %v, the server has %v", table, have, served)
		}
	}
}
