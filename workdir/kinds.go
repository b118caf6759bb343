package workdir

// Kind is one of the three kinds of data that a workdir holds. Its text is the
// name of the kind's folders.
type Kind string

// The kinds, in the order in which they are shown.
const (
	OVS Kind = "ovs"
	NB  Kind = "ovn_nb"
	SB  Kind = "ovn_sb"
)

// kindNames are the names of one kind.
type kindNames struct {
	title  string // in messages
	schema string // of the database
	file   string // of the database in db/KIND
}

func (k Kind) names() kindNames {
	return map[Kind]kindNames{
		OVS:  {"OVS", "Open_vSwitch", "conf.db"},
		NB:   {"OVN NB", "OVN_Northbound", "ovnnb_db.db"},
		SB:   {"OVN SB", "OVN_Southbound", "ovnsb_db.db"},
		Host: {title: "host"},
	}[k]
}

// Kinds lists every kind that has a database.
func Kinds() []Kind { return []Kind{OVS, NB, SB} }

// AllKinds lists every kind of data that a workdir holds.
func AllKinds() []Kind { return append(Kinds(), Host) }

// KindOfSchema returns the kind whose database has the named schema, "" if there is
// none.
func KindOfSchema(schema string) Kind {
	for _, kind := range Kinds() {
		if kind.Schema() == schema {
			return kind
		}
	}
	return ""
}

// Title returns the kind's name in messages: "OVN NB".
func (k Kind) Title() string { return k.names().title }

// Schema returns the name of the schema of the kind's database.
func (k Kind) Schema() string { return k.names().schema }

func databaseName(kind Kind) string { return kind.names().file }
