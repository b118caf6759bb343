package appctl

import (
	"regexp"
	"strings"
)

// Features reads dpif/show-dp-features: the value of each feature by its title
// (ofproto/ofproto-dpif.c, get_datapath_cap). "Yes" and "No" become "true" and
// "false", the words of dpif/set-dp-features.
func Features(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		title, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		switch value = strings.TrimSpace(value); {
		case !ok:
		case value == "Yes":
			values[title] = "true"
		case value == "No":
			values[title] = "false"
		default:
			values[title] = value
		}
	}
	return values
}

// SettableFeature is a datapath feature that a running ovs-vswitchd can lower.
type SettableFeature struct{ Name, Value string }

// settableFeature matches "name (Title) : [run time]:value, [boot time]:value".
var settableFeature = regexp.MustCompile(`^(\S+) \((.*)\) : \[run time\]:([^,]*)`)

// SettableFeatures reads dpif/set-dp-features without a value: the features by
// title (ofproto/ofproto-dpif.c, show_dp_feature_*).
func SettableFeatures(text string) map[string]SettableFeature {
	byTitle := map[string]SettableFeature{}
	for line := range strings.Lines(text) {
		if found := settableFeature.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
			byTitle[found[2]] = SettableFeature{found[1], found[3]}
		}
	}
	return byTitle
}
