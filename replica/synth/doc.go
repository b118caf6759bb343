// Package synth makes up the Open vSwitch of a chassis where only the OVN databases were
// collected, as a must-gather of OpenShift holds them: its ports from the southbound
// database, and tunnels, patch ports, conntrack zones and flows from an ovn-controller of
// the node's own release that runs on them (package scratch). The result is a collection
// of a workdir, marked as synthesised, which start and trace take like any other. Every
// assumption is listed in it. Where only the northbound database was collected, ovn-northd
// makes the southbound one first.
package synth
