package inputs

import (
	"bytes"
	"path"
	"regexp"
	"strings"

	"ovs-offline/internal/openflow"
)

// what a single file is.
type what int

const (
	nothing    what = iota
	aDatabase       // or the rest of one
	aScript         // of ovs-save
	aDump           // of ovs-ofctl or ovs-appctl, told by its text
	aNodesDump      // of a must-gather, told by its name
	aVersion        // the file that says which must-gather it is
)

type identity struct {
	what     what
	kind     openflow.Kind // of a dump
	openflow string
	node     string // of a must-gather's dump
	bridge   string
}

var (
	// nodesDump is how must-gathers name flow dumps: NODE, perhaps a pod, the
	// command, and the bridge, with every dash of the latter two an underscore.
	nodesDump = regexp.MustCompile(`^([^_]+)(?:_[^_]+)?_ovs_ofctl_dump_flows_(.+)$`)
	// databaseName is how databases are called, for those whose content lacks its beginning.
	databaseName = regexp.MustCompile(`(?:\.db|[ns]bdb)(?:\.gz)?$`)
	surelyOurs   = regexp.MustCompile(`(?:conf\.db|ovn[ns]b(?:_db)?\.db|_[ns]bdb)(?:\.gz)?$`)
	dumpName     = regexp.MustCompile(`\.(?:flows|groups|meters|tlv)\.dump$`)
)

// identify tells what a file is: by its content, and where that can't tell (an
// error text in place of a dump, the rest of a database) by its name.
func identify(name string, start []byte) identity {
	base := path.Base(name)
	if m := nodesDump.FindStringSubmatch(base); m != nil {
		return identity{what: aNodesDump, kind: openflow.KindFlows, node: m[1], bridge: strings.ReplaceAll(m[2], "_", "-")}
	}
	switch {
	case bytes.HasPrefix(start, []byte("OVSDB ")):
		return identity{what: aDatabase}
	case len(start) == 0 && surelyOurs.MatchString(base), databaseName.MatchString(base) && isRows(start):
		return identity{what: aDatabase}
	case base == "version" && bytes.Contains(start, []byte("must-gather")) && len(start) < 512:
		return identity{what: aVersion}
	case openflow.IsSaveScript(start):
		return identity{what: aScript}
	}
	if kind, version := openflow.Identify(start); kind != "" {
		return identity{what: aDump, kind: kind, openflow: version.String()}
	}
	if dumpName.MatchString(base) {
		return identity{what: aDump, kind: namedKind(base)}
	}
	return identity{}
}

// isRows tells the rest of a database whose beginning was cut off.
func isRows(start []byte) bool {
	for _, sign := range []string{`["uuid","`, `["map",[`, `["set",[`, "\nOVSDB "} {
		if bytes.Contains(start, []byte(sign)) {
			return true
		}
	}
	return false
}

func namedKind(base string) openflow.Kind {
	switch {
	case strings.Contains(base, ".groups."):
		return openflow.KindGroups
	case strings.Contains(base, ".meters."):
		return openflow.KindMeters
	case strings.Contains(base, ".tlv."):
		return openflow.KindTLVMap
	}
	return openflow.KindFlows
}

var (
	endings = regexp.MustCompile(`(?i)(?:\.(?:txt|dump|log|out|gz|xz|bz2|zst|flows?|groups?|meters?|tlv|tlv-map|save))+$`)
	words   = regexp.MustCompile(`(?i)(?:^|[._ -])(?:ovs-ofctl|ovs_ofctl|ovs-appctl|(?:-?O[_ -]?)?OpenFlow1[0-5]|OF1[0-5]|bridge[._/-]dump-flows|dump[_-](?:flows|groups|meters|tlv-map|tlv_map)|(?:flows|groups|meters|tlv-map|tlv|show|ofctl|dump))(?:$|[._ -])`)
)

// bridgeOf reads the bridge from the name of a loose dump: what is left without
// the words of the command, or the name of the folder. "" where nothing tells.
func bridgeOf(name string) string {
	for _, part := range []string{path.Base(name), path.Base(path.Dir(name))} {
		part = endings.ReplaceAllString(part, "")
		for {
			shorter := words.ReplaceAllString(part, " ")
			if shorter == part {
				break
			}
			part = shorter
		}
		part = strings.Trim(part, " ._-")
		if part != "" && !strings.Contains(part, " ") {
			return part
		}
	}
	return ""
}
