package versions

import "ovs-offline/internal/lazyregexp"

var (
	printedOVS = lazyregexp.New(`\(Open vSwitch\) ([0-9]\S*)`)
	printedOVN = lazyregexp.New(`(?m)^ovn-[a-z]+ ([0-9]\S*)`)
)

// PrintedOVS returns the version of Open vSwitch that its programs print with
// --version, and its daemons when they are asked for their version; "" for none.
func PrintedOVS(text []byte) string { return firstMatch(printedOVS, text) }

// PrintedOVN returns the version of OVN that its programs print with --version, "" for
// none. The other version in it belongs to the Open vSwitch that it was built with.
func PrintedOVN(text []byte) string { return firstMatch(printedOVN, text) }

func firstMatch(pattern *lazyregexp.Regexp, text []byte) string {
	if match := pattern.FindSubmatch(text); match != nil {
		return string(match[1])
	}
	return ""
}
