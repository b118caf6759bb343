package file

import (
	"bytes"
	"regexp"
)

// The statements in a database about the version of the program that uses it: the key,
// which is cheap to search for, and the statement that begins with it.
var (
	// The column ovs_version of the table Open_vSwitch, which ovs-ctl sets when it starts
	// ovs-vswitchd (ovs-vswitchd.conf.db(5)).
	ovsVersionKey = []byte(`"ovs_version"`)
	ovsVersion    = regexp.MustCompile(`^"ovs_version"\s*:\s*"([^"\\]{1,64})"`)
	// The option of NB_Global and SB_Global that ovn-northd sets since OVN 20.12, and with
	// which ovn-controller compares its own version (ovn-controller(8),
	// external_ids:ovn-match-northd-version).
	northdVersionKey = []byte(`"northd_internal_version"`)
	northdVersion    = regexp.MustCompile(`^"northd_internal_version"\s*,\s*"([^"\\]{1,64})"`)
)

// maxStatement is longer than any statement, in bytes.
const maxStatement = 256

// programFinder finds the last statement in the records of a database. It searches
// their text, because parsing takes ten times as long. The text is unambiguous: a
// quote inside a string is escaped, and no other column or option has these names.
type programFinder struct{ version string }

func (f *programFinder) search(text []byte) {
	f.searchFor(ovsVersionKey, ovsVersion, text)
	f.searchFor(northdVersionKey, northdVersion, text)
}

func (f *programFinder) searchFor(key []byte, statement *regexp.Regexp, text []byte) {
	for i := bytes.Index(text, key); i >= 0; i = bytes.Index(text, key) {
		text = text[i:]
		if m := statement.FindSubmatch(text[:min(len(text), maxStatement)]); m != nil {
			f.version = string(m[1])
		}
		text = text[len(key):]
	}
}

// pieces searches a record that is written to it in pieces.
type pieces struct {
	finder *programFinder
	text   []byte // the last piece, after the end of those before it
}

// Write searches the next piece of the record. A statement may begin in earlier ones.
func (w *pieces) Write(p []byte) (int, error) {
	kept := copy(w.text, w.text[max(0, len(w.text)-maxStatement):])
	w.text = append(w.text[:kept], p...)
	w.finder.search(w.text)
	return len(p), nil
}
