package file

import (
	"bytes"

	"ovs-offline/internal/lazyregexp"
)

// versionKey is the end of the key of every statement about the version of a program. It
// is searched for first: a quote, with which the keys begin, is too frequent.
var versionKey = []byte(`_version"`)

// statements are the keys before versionKey, and what follows it.
var statements = []struct {
	before []byte
	after  *lazyregexp.Regexp
}{
	// The column ovs_version of the table Open_vSwitch, which ovs-ctl sets when it starts
	// ovs-vswitchd (ovs-vswitchd.conf.db(5)).
	{[]byte(`"ovs`), lazyregexp.New(`^_version"\s*:\s*"([^"\\]{1,64})"`)},
	// The option northd_internal_version of NB_Global and SB_Global, which ovn-northd sets
	// since OVN 20.12, and with which ovn-controller compares its own version
	// (ovn-controller(8), external_ids:ovn-match-northd-version).
	{[]byte(`"northd_internal`), lazyregexp.New(`^_version"\s*,\s*"([^"\\]{1,64})"`)},
}

// maxStatement is longer than any statement, in bytes.
const maxStatement = 256

// programFinder finds the last statement in the records of a database. It searches
// their text, because parsing takes ten times as long. The text is unambiguous: a
// quote inside a string is escaped, and no other column or option has these names.
type programFinder struct{ version string }

func (f *programFinder) search(text []byte) {
	for from := 0; ; from += len(versionKey) {
		i := bytes.Index(text[from:], versionKey)
		if i < 0 {
			return
		}
		from += i
		for _, statement := range statements {
			if !bytes.HasSuffix(text[:from], statement.before) {
				continue
			}
			if match := statement.after.FindSubmatch(text[from:min(len(text), from+maxStatement)]); match != nil {
				f.version = string(match[1])
			}
		}
	}
}

// pieces searches a record that is written to it in pieces.
type pieces struct {
	finder *programFinder
	text   []byte // the last piece, after the end of those before it
}

// Write searches the next piece of the record. A statement may begin in earlier ones.
func (w *pieces) Write(data []byte) (int, error) {
	kept := copy(w.text, w.text[max(0, len(w.text)-maxStatement):])
	w.text = append(w.text[:kept], data...)
	w.finder.search(w.text)
	return len(data), nil
}
