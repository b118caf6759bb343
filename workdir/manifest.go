package workdir

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ovs-offline/pkg/ovsdb/file"
)

// FormatVersion is the version of the workdir's layout and manifest.
const FormatVersion = 1

// Manifest describes the collected data. It is the file manifest.json.
type Manifest struct {
	Format      int          `json:"format"`
	Collections []Collection `json:"collections"`
}

// LacksOVN precedes the reason in the remark on a node of whose deployment no database was collected.
const LacksOVN = "lacks a database of its deployment: "

// Collection is the data of one kind, from one collect command.
type Collection struct {
	Kind       Kind      `json:"kind"`
	Source     Source    `json:"source"`
	Host       string    `json:"host,omitempty"` // the node's name, according to the source
	Node       string    `json:"node,omitempty"` // its name among the nodes that were collected together
	Collected  time.Time `json:"collected"`
	OVSVersion string    `json:"ovs_version,omitempty"`
	OVNVersion string    `json:"ovn_version,omitempty"`
	Image      string    `json:"image,omitempty"` // reference of the container image of the node's pods
	Bridges    []string  `json:"bridges,omitempty"`
	Files      []File    `json:"files"`
	Remarks    []string  `json:"remarks,omitempty"`
	// Recorded is when the source of the flows was recorded, zero if that is not known.
	// RecordedAbout reports that it may be wrong by a day: only the day is known, or no time zone.
	Recorded      time.Time `json:"recorded,omitzero"`
	RecordedAbout bool      `json:"recorded_about,omitempty"`
	// Synthesised describes how data of OVS, or a southbound database, that no source had was made
	// up; nil for collected data.
	Synthesised *Synthesis `json:"synthesised,omitempty"`
	// Built says what became of the commands from which the data was made; nil for other data.
	Built *Built `json:"built,omitempty"`
	// LoadedImage is the ID of the image for local processes that was loaded with the data.
	LoadedImage string `json:"loaded_image,omitempty"`
	// Lost names data that the source held and that could not be read.
	Lost []string `json:"lost,omitempty"`
	// LostDatabases holds the sentences of Lost about a database, by its kind: a
	// collection of that database removes them.
	LostDatabases map[Kind][]string `json:"lost_databases,omitempty"`
}

// Synthesis describes how the Open vSwitch of a chassis was made up from a southbound database,
// how a southbound database was computed from a northbound one, or how a database was made from its
// printed tables.
type Synthesis struct {
	Chassis  string `json:"chassis"`        // its name: the system-id; "" of a database
	Hostname string `json:"hostname"`       // "" if not known
	From     string `json:"from,omitempty"` // FromNorthbound, FromPrinted, or "" for the southbound database
	SHA256   string `json:"sha256"`         // of the database, or of the printed tables
	OVN      string `json:"ovn"`            // the version of the program (ovn-controller or ovn-northd), or of the schema
	// Assumptions lists what is missing in the database, and what was taken instead.
	Assumptions []string `json:"assumptions"`
}

// Built says what became of the commands of a text that a node was made from.
type Built struct {
	CarriedOut int       `json:"carried_out"`       // commands
	Refused    []Command `json:"refused,omitempty"` // commands that were not run
	Failed     []Command `json:"failed,omitempty"`  // commands with which a tool, or ovs-vswitchd, found fault
	// Assumptions lists what the text does not say, and what was taken instead.
	Assumptions []string `json:"assumptions,omitempty"`
}

// Command is a command that was not carried out.
type Command struct {
	Line    int    `json:"line"` // of the text, from 1
	Command string `json:"command"`
	Reason  string `json:"reason"`
}

// Complete reports whether all commands were carried out; true without any.
func (b *Built) Complete() bool { return b == nil || len(b.Refused) == 0 && len(b.Failed) == 0 }

// Built returns what became of the commands from which the data was made, nil for other data.
func (m *Manifest) Built() *Built {
	for _, collection := range m.Collections {
		if collection.Built != nil {
			return collection.Built
		}
	}
	return nil
}

// What was made up from something else than a southbound database.
const (
	FromNorthbound = "the northbound database" // a switch whose southbound database was computed
	FromPrinted    = "its printed tables"      // a database of which only those were collected
)

// Origin names what the switch was made up from.
func (s *Synthesis) Origin() string { return cmp.Or(s.From, "the southbound database") }

// Title returns the name of the chassis that a user knows.
func (s *Synthesis) Title() string { return cmp.Or(s.Hostname, s.Chassis) }

// hasDatabase reports whether the database of the kind was collected, or printed tables of it.
func (c *Collection) hasDatabase() bool {
	return slices.ContainsFunc(c.Files, func(file File) bool {
		folder := filepath.Join("db", string(c.Kind))
		return filepath.Dir(file.Path) == folder || filepath.Dir(file.Path) == filepath.Join(folder, printedTables)
	})
}

// MadeUp reports whether nothing of the collection was collected: it can be made again.
func (c *Collection) MadeUp() bool { return c.Synthesised != nil && c.Synthesised.From != FromPrinted }

// FromPrinted returns how the database of a kind was made from its printed tables, nil for another
// database, and for none.
func (m *Manifest) FromPrinted(kind Kind) *Synthesis {
	if collection := m.Collection(kind); collection != nil && collection.Synthesised != nil && !collection.MadeUp() {
		return collection.Synthesised
	}
	return nil
}

// LostDatabases returns what was lost of databases, in the order of their kinds.
func (m *Manifest) LostDatabases() (all []string) {
	for _, kind := range Kinds() {
		for _, collection := range m.Collections {
			all = append(all, collection.LostDatabases[kind]...)
		}
	}
	return all
}

// DropLost removes the sentences of Lost about the database of a kind.
func (c *Collection) DropLost(kind Kind) {
	c.Lost = slices.DeleteFunc(c.Lost, func(lost string) bool { return slices.Contains(c.LostDatabases[kind], lost) })
	delete(c.LostDatabases, kind)
}

// Source names the source of a collection.
type Source struct {
	Kind string `json:"kind"` // "sos report", "database file", "Kubernetes cluster"
	Name string `json:"name"` // the path that was given, or the server's URL
	Tool string `json:"tool,omitempty"`
}

// File is one collected file.
type File struct {
	Path   string `json:"path"`   // in the workdir
	Origin string `json:"origin"` // inside the source
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Bridge string `json:"bridge,omitempty"`
	// Namespace is the named network namespace that the file is about.
	Namespace string `json:"namespace,omitempty"`
	OpenFlow  string `json:"openflow,omitempty"` // the version of a dump, "OpenFlow15"
	// Recorded is when the command that printed or copied the file began; zero if that is not known.
	Recorded time.Time `json:"recorded,omitzero"`
	Remarks  []string  `json:"remarks,omitempty"`
	// Lost is how many lines of a dump held entries and can't be used; the first is in Remarks.
	Lost int `json:"lost,omitempty"`
	// Partial says why the file is known to be only a part of what the command would print, nil for all other files.
	Partial *Partial `json:"partial,omitempty"`
}

// Partial describes a dump of which only some entries were recorded.
type Partial struct {
	Reasons []string `json:"reasons"`
	// WholeTables are the numbers of the flow tables of which all entries were recorded: "dump-flows BRIDGE table=N" prints those of one.
	WholeTables []int `json:"whole_tables,omitempty"`
	// Tables says what is known of the tables of a database, by their names.
	Tables map[string]file.KnownTable `json:"tables,omitempty"`
}

// String returns the reasons in a line.
func (p *Partial) String() string { return strings.Join(p.Reasons, "; ") }

// Host returns the name of the host that the workdir was collected from, or else of its folder.
func (d *Data) Host() string { return cmp.Or(d.RecordedHost(), filepath.Base(d.Path())) }

// RecordedHost returns the name of the host that the workdir was collected from, "" if it is
// not known.
func (d *Data) RecordedHost() string {
	manifest, err := d.Manifest()
	if err != nil {
		return ""
	}
	host := ""
	for _, collection := range manifest.Collections {
		host = cmp.Or(host, collection.Host, collection.Node)
	}
	return host
}

func (d *Data) manifestPath() string { return d.join("manifest.json") }

// Manifest reads the manifest. It returns an empty one if nothing was collected yet.
func (d *Data) Manifest() (*Manifest, error) {
	if d.Shares() {
		return d.files.manifest(d.manifestPath(), d.readManifest)
	}
	return d.readManifest()
}

func (d *Data) readManifest() (*Manifest, error) {
	path := d.manifestPath()
	manifest := &Manifest{Format: FormatVersion}
	err := ReadJSON(path, manifest)
	if errors.Is(err, os.ErrNotExist) {
		return manifest, nil
	}
	if err != nil {
		return nil, err
	}
	if manifest.Format != FormatVersion {
		return nil, fmt.Errorf("%s has format %d; this version reads %d: use the ovs-offline that wrote it", path, manifest.Format, FormatVersion)
	}
	return manifest, nil
}

// Collection returns the collection of a kind, nil if there is none.
func (m *Manifest) Collection(kind Kind) *Collection {
	i := slices.IndexFunc(m.Collections, func(collection Collection) bool { return collection.Kind == kind })
	if i < 0 {
		return nil
	}
	return &m.Collections[i]
}

// Synthesis returns how the data of OVS was made up, nil if it was collected or if there is
// none.
func (m *Manifest) Synthesis() *Synthesis {
	if collection := m.Collection(OVS); collection != nil {
		return collection.Synthesised
	}
	return nil
}

// OpenFlow returns the OpenFlow version of the collected dump at a path in the workdir, ""
// if it is not known.
func (m *Manifest) OpenFlow(path string) string {
	if collection := m.Collection(OVS); collection != nil {
		for _, file := range collection.Files {
			if file.Path == path {
				return file.OpenFlow
			}
		}
	}
	return ""
}

// Partial returns what is known to be missing in the collected dump at a path in the workdir, nil for nothing.
func (m *Manifest) Partial(path string) *Partial {
	if collection := m.Collection(OVS); collection != nil {
		for _, file := range collection.Files {
			if file.Path == path {
				return file.Partial
			}
		}
	}
	return nil
}

// Known returns what is known of the tables of a database of which some rows or some columns were collected, by their names.
func (m *Manifest) Known(kind Kind) map[string]file.KnownTable {
	if collection := m.Collection(Host); collection != nil {
		for _, file := range collection.Files {
			if file.Partial != nil && file.Path == filepath.Join(string(Host), HostParts(kind)) {
				return file.Partial.Tables
			}
		}
	}
	return nil
}

// put replaces the collection of the same kind.
func (m *Manifest) put(collection Collection) {
	if old := m.Collection(collection.Kind); old != nil {
		*old = collection
		return
	}
	m.Collections = append(m.Collections, collection)
}
