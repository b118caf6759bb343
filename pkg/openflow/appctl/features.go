package appctl

import "ovs-offline/internal/lazyregexp"

// Features reads dpif/show-dp-features: the value of each feature by its title
// (ofproto/ofproto-dpif.c, get_datapath_cap). "Yes" and "No" become "true" and
// "false", the words of dpif/set-dp-features.
func Features(text string) map[string]string {
	values := map[string]string{}
	for title, value := range fields(text) {
		switch value {
		case "": // no feature
		case "Yes":
			values[title] = "true"
		case "No":
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
var settableFeature = lazyregexp.New(`^(\S+) \((.*)\) : \[run time\]:([^,]*)`)

// SettableFeatures reads dpif/set-dp-features without a value: the features by
// title (ofproto/ofproto-dpif.c, show_dp_feature_*).
func SettableFeatures(text string) map[string]SettableFeature {
	byTitle := map[string]SettableFeature{}
	for found := range parts(text, settableFeature) {
		byTitle[found[2]] = SettableFeature{found[1], found[3]}
	}
	return byTitle
}
