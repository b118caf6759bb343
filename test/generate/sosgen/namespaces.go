package sosgen

import (
	"embed"
	"path"
	"strings"
)

// namespaceOutputs has what the tools print in two named network namespaces that the agent of Neutron's
// routers makes, and the list of them. Files are named as sos names them, without "ip netns exec NAMESPACE".
//
//go:embed testdata/namespaces
var namespaceOutputs embed.FS

// namespaceNames are the names in namespaceOutputs.
func namespaceNames() []string {
	const router = "5f2bb2e9-3c0d-4a77-9f55-0d1a7f1c2d31"
	return []string{"snat-" + router, "qrouter-" + router}
}

func namespaceOutput(name string) []byte {
	text, err := namespaceOutputs.ReadFile("testdata/namespaces/" + name)
	must(err)
	return text
}

// namespaces adds the outputs of named network namespaces. Those of conntrack have no folder for each.
func (n *Node) namespaces(e Era, r *sosReport) {
	r.add(pluginCommand{"networking", "ip netns"}, namespaceOutput("ip_netns"))
	for _, namespace := range namespaceNames() {
		for _, line := range e.inNamespaces {
			plugin := "networking"
			if strings.HasPrefix(line, "conntrack") {
				plugin = "conntrack"
			} else if e.namespaceFolders {
				plugin += "/namespaces/" + namespace
			}
			r.add(pluginCommand{plugin, "ip netns exec " + namespace + " " + line}, namespaceOutput(path.Join(namespace, mangle(line))))
		}
	}
}

// Namespaces returns what a report of an era has of named network namespaces.
func (n *Node) Namespaces(e Era) (list []MachineFile) {
	files := map[string]string{
		"ip_address_show": "ip.address", "ip_-d_address_show": "ip.address", "ip_route_show_table_all": "ip.route",
		"ip_rule_list": "ip.rule", "ip_-4_rule_list": "ip.rule", "ip_-6_rule_list": "ip.rule.6", "ip_-s_-s_neigh_show": "ip.neigh",
		"iptables-save": "iptables-save", "ip6tables-save": "ip6tables-save", "conntrack_-L_-o_extended": "conntrack", "sysctl_-a": "sysctl",
	}
	for _, namespace := range namespaceNames() {
		for _, line := range e.inNamespaces {
			list = append(list, MachineFile{line, path.Join("recorded/namespaces", namespace, files[mangle(line)]), namespaceOutput(path.Join(namespace, mangle(line)))})
		}
	}
	return list
}
