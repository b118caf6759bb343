package hotsos

// findings returns what check finds in the tests of hotsos, by their names.
func findings() map[string]expected {
	of := func(rules ...string) expected { return expected{rules: rules} }
	const (
		ovs     = "openvswitch/"
		ovn     = "openvswitch/ovn/"
		neutron = "openstack/neutron/"
		bugs    = "openstack/neutron/bugs/"
	)
	return map[string]expected{
		ovs + "bugs/lp1839592":                of("lp1839592"),
		ovs + "bugs/lp1978806":                of("conntrack-of-tunnels"),
		ovs + "dpdk_config_fail":              of("dpdk-cores"),
		ovs + "dpdk_config_fail_mask_overlap": of("dpdk-cores"),
		ovs + "dpdk_config_fail_nova_overlap": of("dpdk-cores"),
		ovs + "dpif_lost_packets_no_vswitchd": of("datapath-lost-packets"),
		ovs + "dpif_lost_packets_w_vswitchd":  of("datapath-lost-packets", "packets-lost-on-upcall"),
		ovs + "dpif_resubmit_actions":         of("resubmit-limit"),
		ovs + "fdb_wrapping":                  of("fdb-full"),
		ovs + "service_restarts":              of("vswitchd-restarts"),
		ovs + "service_restarts_dpdk":         of("vswitchd-restarts"),

		ovn + "bfd_flapping_cr_lrp_changes":                 of("gateway-moves"),
		ovn + "bfd_flapping_vswitchd_only":                  of("bfd-flapping"),
		ovn + "bugs/lp1865127":                              of("localnet-without-bridge"),
		ovn + "bugs/lp1917475":                              of("database-permission-denied"),
		ovn + "bugs/lp2143751":                              of("gateway-chassis-name"),
		ovn + "ovn_central_certs_logs_w_error":              of("certificate-expired"),
		ovn + "ovn_central_services":                        of("unit-not-running"),
		ovn + "ovn_certs_valid_central_expired":             of("certificate-expires"),
		ovn + "ovn_certs_valid_neutron_expired":             of("certificate-expires"),
		ovn + "ovn_chassis_certs_logs_w_error":              of("certificate-expired"),
		ovn + "ovn_elections_all":                           of("frequent-elections-nb", "frequent-elections-sb"),
		ovn + "ovn_elections_nb":                            of("frequent-elections-nb"),
		ovn + "ovn_elections_sb":                            of("frequent-elections-sb"),
		ovn + "ovn_upgrades_no_mismatch_dbflag_set":         of("match-northd-version"),
		ovn + "ovn_upgrades_northd_mismatch":                of("northd-version-mismatch"),
		ovn + "ovn_upgrades_northd_mismatch_dbflag_set":     of("northd-version-mismatch"),
		ovn + "ovn_upgrades_northd_mismatch_dbflag_set_alt": of("northd-version-mismatch"),
		ovn + "ovn_upgrades_northd_mismatch_fixed":          of("northd-version-mismatch"),
		ovn + "service_mem_usage":                           of("daemon-memory"),
		ovn + "service_mem_usage_package_with_bug":          of("daemon-memory", "northd-memory-leak"),

		bugs + "lp1883089": of("neutron-lp1883089"),
		bugs + "lp1896506": of("neutron-lp1896506"),
		bugs + "lp1907686": of("neutron-lp1907686"),
		bugs + "lp1927868": of("lp1927868"),
		bugs + "lp1928031": of("neutron-lp1928031"),
		bugs + "lp1929832": of("neutron-lp1929832"),
		bugs + "lp1948466": of("neutron-lp1948466"),
		bugs + "lp1960319": of("neutron-lp1960319"),
		bugs + "lp1965297": of("neutron-lp1965297"),
		bugs + "lp1979089": of("neutron-lp1979089"),
		bugs + "lp1980211_log_error_pkg_no_bug_neutron_ovn_meta": of("neutron-lp1980211"),
		bugs + "lp1980211_log_error_pkg_no_bug_neutron_server":   of("neutron-lp1980211"),
		bugs + "lp1980211_log_error_pkg_w_bug_neutron_ovn_meta":  of("neutron-lp1980211"),
		bugs + "lp1980211_log_error_pkg_w_bug_neutron_server":    of("neutron-lp1980211"),
		bugs + "lp1993628": of("neutron-lp1993628"),
		bugs + "lp1996594": of("neutron-lp1996594"),
		bugs + "lp2017748": of("neutron-lp2017748"),

		neutron + "neutron_ovs_cleanup":                   of("neutron-ovs-cleanup"),
		neutron + "oslo_privsep_errors_l3_agent":          of("neutron-privsep-lost", "lp2029952"),
		neutron + "oslo_privsep_errors_openvswitch_agent": of("neutron-privsep-lost", "lp2029952"),
		neutron + "ovn_stale_db_neutron_ovn_metadata":     of("stale-database"),
		neutron + "ovn_stale_db_neutron_server":           of("stale-database"),
		neutron + "ovn_stale_db_ovn_controller":           of("stale-database"),
		neutron + "ovndb_nb_leader_bouncing":              of("neutron-reconnects-nb"),
		neutron + "ovndb_sb_leader_bouncing":              of("neutron-reconnects-sb"),

		ovn + "ovn_certs_valid_central_missing": {why: "hotsos looks for the file on the machine itself, and not in a report (data_root_is_sosreport): a report lacks it as well where sos did not copy it"},
		ovn + "ovn_certs_valid_neutron_missing": {why: "as for the certificate of ovn-central: hotsos does not look for it in a report"},
		bugs + "lp1794991":                      {why: "the times in the lines of the test say that the agent was started two hours after Open vSwitch, which is the right order; hotsos takes the lines of one unit for those of the other, because the test gives them in the order of its calls. The rule agent-older-than-switch finds the wrong order, which its own lines have"},
		"openstack/token_auth_failed_neutron":   {why: "tokens of Keystone that neutron's API refuses tell nothing of Open vSwitch or OVN"},
	}
}
