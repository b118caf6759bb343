package anonymise

import (
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
)

// TestNamesOfCommonWordsAreReplaced has names of the northbound database of which each word has a meaning.
func TestNamesOfCommonWordsAreReplaced(t *testing.T) {
	f, stays := newFound(), vocabularyOf(wordList)
	transaction := `{"Logical_Switch":{"x":{"name":"neutron-net-a","other_config":["map",[["mtu","1500"]]]},` +
		`"y":{"name":"net-a-b"},"z":{"name":"ovn_cluster_router"}},"ACL":{"x":{"name":"acl deny-port"}},` +
		`"Logical_Router_Port":{"x":{"name":"lrp-ext"}},"Logical_Switch_Port":{"x":{"type":"router"}}}`
	if err := f.addDatabase(t.Context(), []byte(transaction), string(workdir.NB), stays); err != nil {
		t.Fatal(err)
	}
	f.sortPhrases()
	r := newRenamer(newKey(), f, stays, nil)
	name := func(text string) string {
		t.Helper()
		got := r.name(text)
		if got == text || len(got) != len(text) {
			t.Errorf("%s becomes %s", text, got)
		}
		return got
	}
	router := strings.TrimPrefix(name("lrp-ext"), "lrp-")
	for text, want := range map[string]string{
		"neutron-net-a":       "neutron-" + strings.TrimPrefix(name("neutron-net-a"), "neutron-"),
		"ct-zone-lrp-ext":     "ct-zone-lrp-" + router,
		"cr-lrp-ext":          "cr-lrp-" + router,
		`inport == "lrp-ext"`: `inport == "lrp-` + router + `"`,
		"ovn_cluster_router":  "ovn_cluster_router",
		"type=router,acl":     "type=router,acl",
		"acl deny-port":       name("acl deny-port"),
		"net-a-b":             name("net-a-b"),
		"userdata=00.00.00.07.00.00.00.00.01.06." + octetsOf("acl deny-port"): "userdata=00.00.00.07.00.00.00.00.01.06." + octetsOf(name("acl deny-port")),
	} {
		expect.Equal(t, r.name(text), want, text)
	}
}
