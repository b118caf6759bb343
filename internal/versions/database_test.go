package versions

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/daemons/ovs"
)

func inspect(t *testing.T, path string) file.Info {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := file.Inspect(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// create makes an empty database with the installed schema.
func create(t *testing.T, schema string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	ovs.Run(t, "ovsdb-tool", "create", path, schema)
	return path
}

// TestDatabasesNameTheVersionOfTheirNorthd checks that the version of OVN is that of
// the real ovn-northd which wrote the databases, whatever was printed elsewhere; and that
// without one it is the series of the installed schemas.
func TestDatabasesNameTheVersionOfTheirNorthd(t *testing.T) {
	ovs.Need(t, "ovsdb-server", "ovsdb-tool", "ovn-northd", "ovn-nbctl", "ovn-sbctl")
	installed := strings.Fields(ovs.Run(t, "ovn-nbctl", "--version"))[1]
	nb, sb := create(t, ovs.NBSchema), create(t, ovs.SBSchema)
	series := installed[:strings.LastIndexByte(installed, '.')]
	if slices.ContainsFunc(releases(), func(r schemas) bool { return r.series == series }) {
		for _, given := range [][]file.Info{{inspect(t, nb)}, {inspect(t, sb)}, {inspect(t, nb), inspect(t, sb)}} {
			if got := Of(Pair{}, given...); got != (Pair{OVN: series}) {
				t.Errorf("empty databases of %s: %+v", installed, got)
			}
		}
	}
	s := ovs.Serve(t, nb, sb)
	s.Northd()
	s.Stop()
	for _, given := range [][]file.Info{{inspect(t, nb)}, {inspect(t, sb)}, {inspect(t, nb), inspect(t, sb)}} {
		if got := Of(Pair{OVS: "9.9.9", OVN: "20.03.0"}, given...); got != (Pair{OVS: "9.9.9", OVN: installed}) {
			t.Errorf("databases of ovn-northd %s: %+v", installed, got)
		}
	}
}

// TestVersionsOfDatabases checks which of several statements counts.
func TestVersionsOfDatabases(t *testing.T) {
	conf := func(program string) file.Info { return file.Info{Name: ovsdb.OVS, Version: "8.3.1", Program: program} }
	nb := func(schema, program string) file.Info {
		return file.Info{Name: ovsdb.NB, Version: schema, Program: program}
	}
	sb := func(schema, program string) file.Info {
		return file.Info{Name: ovsdb.SB, Version: schema, Program: program}
	}
	for what, c := range map[string]struct {
		printed   Pair
		databases []file.Info
		want      Pair
	}{
		"nothing":                   {Pair{}, nil, Pair{}},
		"only printed":              {Pair{"3.1.0", "23.03.1"}, nil, Pair{"3.1.0", "23.03.1"}},
		"conf.db":                   {Pair{"3.1.0", ""}, []file.Info{conf("3.5.0")}, Pair{"3.5.0", ""}},
		"conf.db without a version": {Pair{"3.1.0", ""}, []file.Info{conf("")}, Pair{"3.1.0", ""}},
		"northd": {Pair{"", "22.03.0"}, []file.Info{sb("20.41.0", "25.03.1-20.41.0-78.8")},
			Pair{"", "25.03.1"}},
		"northd, only NB": {Pair{}, []file.Info{nb("7.11.0", "25.03.1-20.41.0-78.8")},
			Pair{"", "25.03.1"}},
		"two northds: SB holds the flows": {Pair{},
			[]file.Info{nb("7.11.0", "25.03.1-20.41.0-78.8"), sb("20.41.0", "25.03.0-20.41.0-78.8")}, Pair{"", "25.03.0"}},
		"the same in another order": {Pair{},
			[]file.Info{sb("20.41.0", "25.03.0-20.41.0-78.8"), nb("7.11.0", "25.03.1-20.41.0-78.8")}, Pair{"", "25.03.0"}},
		"set by hand for an upgrade": {Pair{}, []file.Info{sb("20.33.0", "foo")}, Pair{"", "24.03"}},
		"a version of a build of one's own": {Pair{}, []file.Info{sb("21.11.0", "26.03.90-21.11.0-90.1")},
			Pair{"", "26.03.90"}},
		"schema of SB":                       {Pair{}, []file.Info{sb("20.33.0", "")}, Pair{"", "24.03"}},
		"schema of NB":                       {Pair{}, []file.Info{nb("7.6.0", "")}, Pair{"", "24.09"}},
		"both schemas decide together":       {Pair{}, []file.Info{nb("5.35.1", ""), sb("20.21.0", "")}, Pair{"", "21.12"}},
		"SB alone is of two series":          {Pair{}, []file.Info{sb("20.21.0", "")}, Pair{"", "22.03"}},
		"schemas of different series":        {Pair{}, []file.Info{nb("7.11.0", ""), sb("20.33.0", "")}, Pair{"", "24.03"}},
		"schema and the package of the same": {Pair{"", "24.03.2"}, []file.Info{sb("20.33.0", "")}, Pair{"", "24.03.2"}},
		"schema and a package of another":    {Pair{"", "22.03.2"}, []file.Info{sb("20.33.0", "")}, Pair{"", "24.03"}},
		"schemas of two series: the package": {Pair{"", "22.12.1"}, []file.Info{nb("7.0.0", ""), sb("20.27.0", "")},
			Pair{"", "22.12.1"}},
		"schemas of two series: the newer":     {Pair{}, []file.Info{nb("7.0.0", ""), sb("20.27.0", "")}, Pair{"", "23.03"}},
		"an unknown schema leaves the package": {Pair{"", "22.03.2"}, []file.Info{sb("99.0.0", "")}, Pair{"", "22.03.2"}},
		"an unknown schema":                    {Pair{}, []file.Info{sb("20.34.0", ""), nb("", "")}, Pair{}},
	} {
		if got := Of(c.printed, c.databases...); got != c.want {
			t.Errorf("%s: %+v, not %+v", what, got, c.want)
		}
	}
}
