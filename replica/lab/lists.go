package lab

import "slices"

// access is what a subcommand does.
type access int

const (
	unlisted access = iota
	reads           // it only prints something, and is left out
	writes
)

// databaseTool is what a lab lets a tool do that writes a database: ovs-vsctl, ovn-nbctl or ovn-sbctl.
type databaseTool struct {
	name     string
	dropped  map[string]bool // options of the tool that change nothing here: whether the next word is the value
	commands map[string]access
	options  []string // of subcommands; what does not belong to one, the tool refuses
}

// vsctl returns what a lab lets ovs-vsctl do.
func vsctl() databaseTool {
	return databaseTool{
		name:    "ovs-vsctl",
		dropped: map[string]bool{"--no-wait": false, "-t": true, "--timeout": true, "--oneline": false, "--retry": false},
		commands: listed(
			[]string{"show", "list", "find", "br-exists", "list-br", "list-ports", "list-ifaces", "port-to-br", "iface-to-br", "br-to-vlan", "br-to-parent",
				"get-fail-mode", "get-controller", "get-manager", "get-ssl", "br-get-external-id", "init", "wait-until", "comment", "get-aa-mapping", "list-zone-tp", "list-dp-cap", "get"},
			[]string{"add-br", "del-br", "add-port", "del-port", "add-bond", "add-bond-iface", "del-bond-iface", "set-fail-mode", "del-fail-mode", "set-controller",
				"del-controller", "br-set-external-id", "set", "add", "remove", "clear", "create", "destroy"}),
		options: []string{"--may-exist", "--if-exists", "--fake-iface", "--with-iface", "--id", "--all", "--bare", "--columns", "--format", "--inactivity-probe"},
	}
}

// nbctl returns what a lab lets ovn-nbctl do: all that writes the logical network.
func nbctl() databaseTool {
	return databaseTool{
		name: "ovn-nbctl",
		dropped: map[string]bool{"--no-wait": false, "--wait": false, "--leader-only": false, "--no-leader-only": false, "--shuffle-remotes": false,
			"--no-shuffle-remotes": false, "--print-wait-time": false, "-t": true, "--timeout": true, "--oneline": false},
		commands: listed(
			[]string{"show", "list", "find", "init", "sync", "wait-until", "comment", "ls-list", "acl-list", "qos-list", "meter-list", "pg-get-type", "lsp-list", "lsp-get-parent",
				"lsp-get-tag", "lsp-get-addresses", "lsp-get-port-security", "lsp-get-up", "lsp-get-enabled", "lsp-get-type", "lsp-get-options",
				"lsp-get-dhcpv4-options", "lsp-get-dhcpv6-options", "lsp-get-ls", "lr-list", "lrp-list", "lrp-get-enabled", "lrp-get-gateway-chassis",
				"lrp-get-redirect-type", "lr-route-list", "lr-policy-list", "lr-nat-list", "lb-list", "lr-lb-list", "ls-lb-list", "dhcp-options-list",
				"dhcp-options-get-options", "get-connection", "get-ssl", "copp-list", "bfd-list", "fwd-group-list", "mirror-list", "ha-chassis-group-list", "get"},
			[]string{"ls-add", "ls-del", "acl-add", "acl-del", "qos-add", "qos-del", "meter-add", "meter-del", "pg-add", "pg-set-ports", "pg-del",
				"mirror-add", "mirror-del", "mirror-rule-add", "mirror-rule-del", "lsp-attach-mirror", "lsp-detach-mirror", "lsp-add", "lsp-del", "lsp-set-addresses", "lsp-set-port-security", "lsp-set-enabled",
				"lsp-set-type", "lsp-set-options", "lsp-set-dhcpv4-options", "lsp-set-dhcpv6-options", "lsp-add-router-port", "lsp-add-localnet-port",
				"fwd-group-add", "fwd-group-del", "lr-add", "lr-del", "lrp-add", "lrp-del", "lrp-set-enabled", "lrp-set-gateway-chassis", "lrp-del-gateway-chassis",
				"lrp-set-redirect-type", "lrp-set-options", "lr-route-add", "lr-route-del", "lr-policy-add", "lr-policy-del", "lr-nat-add", "lr-nat-del", "lr-nat-update-ext-ip",
				"lb-add", "lb-del", "lr-lb-add", "lr-lb-del", "ls-lb-add", "ls-lb-del", "dhcp-options-create", "dhcp-options-del", "dhcp-options-set-options",
				"ha-chassis-group-add", "ha-chassis-group-del", "ha-chassis-group-add-chassis", "ha-chassis-group-remove-chassis",
				"copp-add", "copp-del", "ls-copp-add", "ls-copp-del", "lr-copp-add", "lr-copp-del", "static-mac-binding-add", "static-mac-binding-del",
				"set", "add", "remove", "clear", "create", "destroy"}),
		options: []string{"--may-exist", "--if-exists", "--id", "--all", "--bare", "--columns", "--format", "--add-duplicate", "--add-route", "--log", "--severity", "--name", "--meter", "--label", "--type", "--tier",
			"--apply-after-lb", "--sample-new", "--sample-est", "--bfd", "--ecmp", "--ecmp-symmetric-reply", "--policy", "--route-table", "--stateless", "--portrange", "--gateway-port",
			"--match", "--priority", "--reject", "--event", "--liveness", "--fair", "--discard", "--next-group", "--chain", "--wait"},
	}
}

// sbctl returns what a lab lets ovn-sbctl do: add other chassis than its own.
func sbctl() databaseTool {
	return databaseTool{
		name: "ovn-sbctl",
		dropped: map[string]bool{"--no-wait": false, "--leader-only": false, "--no-leader-only": false, "--shuffle-remotes": false, "--no-shuffle-remotes": false,
			"-t": true, "--timeout": true, "--oneline": false},
		commands: listed(
			[]string{"show", "list", "find", "get", "init", "wait-until", "comment", "lflow-list", "dump-flows", "count-flows", "get-connection", "get-ssl"},
			[]string{"chassis-add", "chassis-del"}),
		options: []string{"--may-exist", "--if-exists", "--bare", "--columns", "--format", "--all", "--ovs", "--vflows", "--stats", "--uuid"},
	}
}

func listed(reading, writing []string) map[string]access {
	all := map[string]access{}
	for _, name := range reading {
		all[name] = reads
	}
	for _, name := range writing {
		all[name] = writes
	}
	return all
}

// switchCommand is what a lab lets ovs-ofctl do with a subcommand that changes a bridge.
type switchCommand struct {
	least, most int  // operands behind the bridge
	file        bool // the operand is a file; a lab has only standard input
}

// ofctl returns the subcommands with which ovs-ofctl changes a bridge.
func ofctl() map[string]switchCommand {
	one, list, upToOne := switchCommand{1, 1, false}, switchCommand{1, 1, true}, switchCommand{0, 1, false}
	return map[string]switchCommand{
		"add-flow": one, "add-flows": list, "replace-flows": list, "mod-flows": one, "del-flows": upToOne,
		"add-group": one, "add-groups": list, "mod-group": one, "del-groups": upToOne, "insert-buckets": one, "remove-buckets": one,
		"add-meter": one, "mod-meter": one, "del-meter": one, "del-meters": {}, "add-tlv-map": one, "del-tlv-map": upToOne,
		"mod-port": {2, 2, false},
	}
}

// ofctlOptions are the options of ovs-ofctl that a lab takes, without -O.
func ofctlOptions() []string {
	return []string{"--strict", "--bundle", "--names", "--no-names", "--may-create", "--readd"}
}

// table is what a lab lets ovs-vsctl write in a table.
type table struct {
	name    string
	columns []string
}

// tables are the tables of Open vSwitch that a lab lets ovs-vsctl write.
func tables() []table {
	return []table{
		{"Open_vSwitch", []string{"external_ids", "other_config"}},
		{"Bridge", []string{"name", "external_ids", "other_config", "fail_mode", "protocols", "stp_enable", "rstp_enable", "mcast_snooping_enable", "flood_vlans", "mirrors", "datapath_type", "ports"}},
		{"Port", []string{"name", "external_ids", "other_config", "tag", "trunks", "cvlans", "vlan_mode", "lacp", "mac", "qos", "interfaces", "protected", "bond_mode", "bond_active_slave",
			"bond_updelay", "bond_downdelay", "bond_fake_iface", "fake_bridge"}},
		{"Interface", []string{"name", "external_ids", "other_config", "type", "options", "ofport_request", "mac", "mtu_request", "bfd", "cfm_mpid", "lldp", "ingress_policing_rate",
			"ingress_policing_burst", "ingress_policing_kpkts_rate", "ingress_policing_kpkts_burst"}},
		{"Mirror", []string{"name", "external_ids", "select_all", "select_dst_port", "select_src_port", "select_vlan", "output_port", "output_vlan", "snaplen"}},
		{"QoS", []string{"type", "queues", "other_config", "external_ids"}},
		{"Queue", []string{"dscp", "other_config", "external_ids"}},
	}
}

// otherTables are the tables of Open vSwitch that a lab does not write: they name addresses, files and collectors, or hold
// what ovs-vswitchd finds out.
func otherTables() []string {
	return []string{"Flow_Table", "Controller", "Manager", "NetFlow", "sFlow", "SSL", "IPFIX", "Flow_Sample_Collector_Set", "AutoAttach", "Datapath", "CT_Zone", "CT_Timeout_Policy"}
}

// isTunnelOption reports whether an option of an interface belongs to a tunnel or a patch port. Options of devices can name
// files and sockets.
func isTunnelOption(key string) bool {
	return slices.Contains([]string{"peer", "remote_ip", "local_ip", "key", "in_key", "out_key", "tos", "ttl", "df_default", "csum", "dst_port", "exts", "egress_pkt_mark",
		"packet_type", "seq", "erspan_ver", "erspan_idx", "erspan_dir", "erspan_hwid", "payload_type"}, key)
}

// isFlowSetting reports whether a key of other_config of Open_vSwitch changes what flows do, and opens nothing.
func isFlowSetting(key string) bool {
	return slices.Contains([]string{"vlan-limit", "max-idle", "flow-limit", "bundle-idle-timeout"}, key)
}
