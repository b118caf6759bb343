package versions

import "regexp"

var (
	printedOVS = regexp.MustCompile(`\(Open vSwitch\) ([0-9]\S*)`)
	printedOVN = regexp.MustCompile(`(?m)^ovn-[a-z]+ ([0-9]\S*)`)
)

// PrintedOVS returns the version of Open vSwitch in what its programs print with
// --version, and its daemons when they are asked for their version; "" for none.
func PrintedOVS(text []byte) string { return first(printedOVS, text) }

// PrintedOVN returns the version of OVN in what its programs print with --version, "" for
// none. The other version in it is that of the Open vSwitch it was built with.
func PrintedOVN(text []byte) string { return first(printedOVN, text) }

func first(pattern *regexp.Regexp, text []byte) string {
	if m := pattern.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}
