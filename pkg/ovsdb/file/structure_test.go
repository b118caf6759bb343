package file

import (
	"slices"
	"testing"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

// TestStructureIsThatOfTheSchema checks columns of the northbound schema.
func TestStructureIsThatOfTheSchema(t *testing.T) {
	x, err := OpenIndex(t.Context(), ovndb.Create(t, ovs.NBSchema).Close())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if !slices.Contains(x.Tables(), "Logical_Switch") || len(x.Columns("nosuch")) > 0 {
		t.Errorf("tables: %q", x.Tables())
	}
	found := map[string]Column{}
	for _, table := range []string{"Logical_Switch", "Logical_Switch_Port", "Connection"} {
		for _, c := range x.Columns(table) {
			found[table+"."+c.Name] = c
		}
	}
	for name, want := range map[string]Column{
		"Logical_Switch.ports":         {Name: "ports", Optional: true, Owns: "Logical_Switch_Port"},
		"Logical_Switch.load_balancer": {Name: "load_balancer", Optional: true}, // a weak reference
		"Logical_Switch.name":          {Name: "name"},
		"Logical_Switch_Port.enabled":  {Name: "enabled", Optional: true},
		"Connection.is_connected":      {Name: "is_connected", Ephemeral: true},
	} {
		if found[name] != want {
			t.Errorf("%s: %+v, want %+v", name, found[name], want)
		}
	}
	if got := x.Identity("Logical_Switch_Port"); !slices.Equal(got, []string{"name"}) || x.Identity("ACL") != nil {
		t.Errorf("identity: %q", got)
	}
}
