package collect

import (
	"path"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

var (
	endings = lazyregexp.New(`(?i)(?:\.(?:md|markdown|rst|adoc|org|html?|eml|mbox|txt|dump|log|out|gz|xz|bz2|zst|flows?|groups?|meters?|tlv|tlv-map|save))+$`)
	words   = lazyregexp.New(`(?i)(?:^|[._ -])(?:ovs-ofctl|ovs_ofctl|ovs-appctl|(?:-?O[_ -]?)?OpenFlow1[0-5]|OF1[0-5]|bridge[._/-]dump-flows|dump[_-](?:flows|groups|meters|tlv-map|tlv_map)|(?:flows|groups|meters|tlv-map|tlv|show|ofctl|dump))(?:$|[._ -])`)
	// number matches the number of a file in a list of files: "09_".
	number = lazyregexp.New(`^[0-9]+(?:[_ )]+|[.-]+([A-Za-z])|$)`)
	// moment matches a date, or a date with a time of day, or seconds since 1970.
	moment = lazyregexp.New(`(?:^|[._ -])(?:20[0-9]{2}[._-]?[01][0-9][._-]?[0-3][0-9](?:[T._ -]?[0-9]{2}[:h._-]?[0-9]{2}(?:[:m._-]?[0-9]{2})?Z?)?|1[0-9]{9})($|[._ -])`)
	// aside matches what people write before and after the name of a bridge: a host or a state.
	aside = lazyregexp.New(`(?i)(?:^|[._ ])(?:(?:node|host|compute|worker|master|control|controller|server|chassis|gateway|hv)[0-9.-][0-9a-z.-]*|node|host|compute|before|after|old|new|all|good|bad|broken|working|output|out)(?:$|[._ ])`)
	// usualBridge matches the bridges of OVN and OpenStack, after which no host is taken as part of the name.
	usualBridge = lazyregexp.New(`(?:^|[._ -])(br-int|br-tun|br-ex)(?:$|[._ ])`)
	// likeBridge matches a word that looks like the name of a bridge, up to the end: "br-lan", "vmbr0", "ovs-br1".
	likeBridge = lazyregexp.New(`^(?:.*?[._ ])??((?:[a-z]+-)?[a-z]{0,5}br(?:[0-9]|[_-][0-9a-z]).*)$`)
)

// undecorated returns the path of a file without the number and the date that people give it.
func undecorated(name string) string {
	base := moment.ReplaceAllString(path.Base(name), "$1")
	base = strings.TrimLeft(number.ReplaceAllString(base, "$1"), "._ -")
	if base == "" {
		return name
	}
	return path.Join(path.Dir(name), base)
}

// bridgeOf returns the bridge in the name of a loose dump: the rest of the name without the words of the
// command, numbers, dates and hosts, or else that of its folder. "" means unknown.
func bridgeOf(name string) string {
	if saved := savedDump.FindStringIndex(name); saved != nil {
		return number.ReplaceAllString(path.Base(name[:saved[0]]), "$1")
	}
	for _, part := range []string{path.Base(name), path.Base(path.Dir(name))} {
		part = endings.ReplaceAllString(part, "")
		if strings.Contains(part, "ovs_ofctl") {
			part = strings.ReplaceAll(part, "_", "-") // as a must-gather spells the command and the bridge
		}
		if bridge := bridgeIn(part); bridge != "" {
			return bridge
		}
	}
	return ""
}

// bridgeIn returns the bridge in a part of a path, "" for none, or for several words each of which may be one.
func bridgeIn(part string) string {
	if match := usualBridge.FindStringSubmatch(part); match != nil {
		return match[1]
	}
	if i := strings.Index(part, "ovs-ofctl"); i > 0 && fields(part[i:]) != nil {
		part = part[i:] // the command line, after what people write before it
	}
	rest := fields(part)
	var alike []string
	for _, field := range rest {
		if match := likeBridge.FindStringSubmatch(field); match != nil {
			alike = append(alike, match[1])
		}
	}
	switch {
	case len(alike) == 1:
		return alike[0]
	case len(rest) == 1:
		return rest[0]
	}
	return ""
}

// fields returns the words of the name of a file that are of no command, host, number or date.
func fields(part string) (list []string) {
	part = moment.ReplaceAllString(part, " ")
	part = number.ReplaceAllString(part, "$1")
	for words.MatchString(part) || aside.MatchString(part) {
		part = aside.ReplaceAllString(words.ReplaceAllString(part, " "), " ")
	}
	for _, field := range strings.Fields(part) {
		if field = strings.Trim(number.ReplaceAllString(strings.Trim(field, "._-"), "$1"), "._-"); field != "" {
			list = append(list, field)
		}
	}
	return list
}

// bridgeAmong returns the one of bridges that are known whose name a spelled name contains, after a host or a
// number and before another word; "" for none or several.
func bridgeAmong(spelled string, known []string) (found string) {
	for _, bridge := range known {
		before, after, ok := strings.Cut(spelled, bridge)
		if !ok || before != "" && !strings.ContainsAny(before[len(before)-1:], "._ -") || after != "" && !strings.ContainsAny(after[:1], "._ ") {
			continue
		}
		if found != "" {
			return ""
		}
		found = bridge
	}
	return found
}
