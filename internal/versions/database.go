package versions

import (
	"cmp"
	"slices"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// Of returns the versions on a node. Its databases come first: the OVS database states
// the version of Open vSwitch, an OVN database the version of the ovn-northd that wrote it, or
// at least it has the schema of a release. Printed are the versions from the output of
// commands and lists of packages, which may describe another program or container.
func Of(printed Pair, databases ...file.Info) Pair {
	found := Pair{}
	schema := map[string]string{} // by database
	for _, db := range databases {
		switch db.Name {
		case ovsdb.OVS:
			found.OVS = db.Program
		case ovsdb.NB:
			schema[db.Name] = db.Version
			found.OVN = cmp.Or(found.OVN, northd(db.Program))
		case ovsdb.SB: // its logical flows are what ovn-northd wrote
			schema[db.Name] = db.Version
			found.OVN = cmp.Or(northd(db.Program), found.OVN)
		}
	}
	series := ofSchemas(schema[ovsdb.NB], schema[ovsdb.SB])
	switch {
	case found.OVN != "" || len(series) == 0:
	case slices.Contains(series, Minor(printed.OVN)):
		found.OVN = printed.OVN
	default: // the newest, whose tools read what the older ones wrote
		found.OVN = series[len(series)-1]
	}
	return found.Or(printed)
}

// internalVersion matches the version in options:northd_internal_version: those of
// OVN, of the southbound schema, and of the logical actions (ovn_get_internal_version()
// in lib/ovn-util.c of OVN).
var internalVersion = lazyregexp.New(`^([0-9]+\.[0-9]+\.[0-9]+[^-\s]*)-`)

// northd returns the version of OVN in options:northd_internal_version, "" for none.
func northd(internal string) string {
	if match := internalVersion.FindStringSubmatch(internal); match != nil {
		return match[1]
	}
	return ""
}

// schemas are the versions of OVN's schemas in a series of releases.
type schemas struct {
	series string
	nb, sb []string
}

// releases lists the series of OVN releases with the versions of ovn-nb.ovsschema and
// ovn-sb.ovsschema in their tags and at the ends of their branches (github.com/ovn-org/ovn,
// v20.03.0 to v26.03.2), the oldest first. Several versions stand where an update of a
// series changed the schema.
func releases() []schemas {
	return []schemas{
		{"20.03", []string{"5.20.0"}, []string{"2.7.0"}},
		{"20.06", []string{"5.23.0"}, []string{"2.8.0"}},
		{"20.09", []string{"5.27.0"}, []string{"2.10.0"}},
		{"20.12", []string{"5.28.0"}, []string{"20.12.0"}},
		{"21.03", []string{"5.31.0"}, []string{"20.16.1"}},
		{"21.06", []string{"5.32.0"}, []string{"20.17.0"}},
		{"21.09", []string{"5.32.1", "5.33.1"}, []string{"20.20.0"}},
		{"21.12", []string{"5.34.1", "5.35.1", "5.35.2"}, []string{"20.21.0"}},
		{"22.03", []string{"6.1.0"}, []string{"20.21.0"}},
		{"22.06", []string{"6.3.0"}, []string{"20.23.0"}},
		{"22.09", []string{"6.3.0"}, []string{"20.25.0"}},
		{"22.12", []string{"7.0.0"}, []string{"20.27.0", "20.30.0"}},
		{"23.03", []string{"7.0.0"}, []string{"20.27.0", "20.30.0"}},
		{"23.06", []string{"7.0.4"}, []string{"20.27.2", "20.31.0"}},
		{"23.09", []string{"7.1.0"}, []string{"20.27.4", "20.29.0", "20.32.0"}},
		{"24.03", []string{"7.3.0"}, []string{"20.33.0"}},
		{"24.09", []string{"7.6.0"}, []string{"20.37.0"}},
		{"25.03", []string{"7.11.0"}, []string{"20.41.0"}},
		{"25.09", []string{"7.12.0"}, []string{"21.5.0"}},
		{"26.03", []string{"7.18.0"}, []string{"21.8.0"}},
	}
}

// ofSchemas returns the series of OVN whose databases have these versions of their
// schemas, the oldest first; "" is the version of a database that the node lacks. If the
// databases are of different series, the southbound one counts.
func ofSchemas(nb, sb string) (series []string) {
	if nb == "" && sb == "" {
		return nil
	}
	for _, schemas := range releases() {
		if (nb == "" || slices.Contains(schemas.nb, nb)) && (sb == "" || slices.Contains(schemas.sb, sb)) {
			series = append(series, schemas.series)
		}
	}
	if len(series) == 0 && nb != "" && sb != "" {
		return ofSchemas("", sb)
	}
	return series
}
