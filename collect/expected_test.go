package collect

import (
	"strings"
	"testing"

	"ovs-offline/test/check/files"
)

// TestMustGatherWithoutADatabaseSaysSo checks that a must-gather is incomplete whose database
// is something else, or is not there, and names the file.
func TestMustGatherWithoutADatabaseSaysSo(t *testing.T) {
	zip := func(text string) string { return string(files.Gzip(t, []byte(text))) }
	whole := zone("OVN_Southbound", "n1")
	const name = "ovnk_database_store/ovnkube-node-aaaaa_sbdb"
	for what, c := range map[string]struct {
		file, content string
		lost          string // "" for none
	}{
		"whole":               {name, whole, ""},
		"gzip":                {name + ".gz", zip(whole), ""},
		"an error message":    {name, "error: unable to upgrade connection: container not found (\"sbdb\")\n", name},
		"an error in gzip":    {name + ".gz", zip("Error from server (NotFound)"), name},
		"gzip in gzip, twice": {name + ".gz", zip(zip(zip("hello"))), name},
		"another program's":   {name, "SQLite format 3\x00", name},
		"cut":                 {name, whole[:len(whole)-20], name},
	} {
		dir := folder(t, map[string]string{"mg.tar.gz": packed(t, map[string]string{
			"mg/quay/version": "openshift/must-gather\n4.14.1\n",
			"mg/quay/namespaces/openshift-ovn-kubernetes/pods/ovnkube-node-aaaaa/ovnkube-node-aaaaa.yaml": "---\nkind: Pod\nmetadata:\n  name: ovnkube-node-aaaaa\nspec:\n  nodeName: n1\n",
			"mg/quay/network_logs/ovnk_database_store.tar.gz": packed(t, map[string]string{
				"ovnk_database_store/ovnkube-node-aaaaa_nbdb": zone("OVN_Northbound", "n1"), c.file: c.content}),
		})})
		got, found, _, err := takeFiles(t, Options{}, dir)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		lost := append([]string{}, found.Lost...)
		for _, written := range got {
			for _, collection := range written.Collections {
				lost = append(lost, collection.Lost...)
			}
		}
		if text := strings.Join(lost, "\n"); !strings.Contains(text, c.lost) || (text == "") != (c.lost == "") {
			t.Errorf("%s: got the losses %q, want %q", what, text, c.lost)
		}
	}
}
