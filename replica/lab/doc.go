// Package lab makes a node of the commands that a text has somebody type: ovs-vsctl, ovs-ofctl and ovn-nbctl run on an empty
// replica, with argument lists and without a shell, and what they made becomes a collection of a workdir, as a collector writes
// one. Where the commands are OVN's, ovn-northd and ovn-controller compute the southbound database and the flows.
//
// The text is another person's. A command runs only if its subcommand, its options, and the tables and columns that it names
// are on the lists of this package; none of them reads or writes a file, connects to an address or ends a daemon. A column that
// has ovs-vswitchd open a device of the host is written only once ovs-vswitchd has ended, as recorded data.
package lab
