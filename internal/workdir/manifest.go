package workdir

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// FormatVersion is the version of the workdir's layout and manifest.
const FormatVersion = 1

// Manifest describes the collected data. It is the file manifest.json.
type Manifest struct {
	Format      int          `json:"format"`
	Collections []Collection `json:"collections"`
}

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
	// Synthesised says how data of OVS was made up that no source had; nil for collected data.
	Synthesised *Synthesis `json:"synthesised,omitempty"`
	// LoadedImage is the ID of the image for local processes that was loaded with the data.
	LoadedImage string `json:"loaded_image,omitempty"`
	// Lost names data that the source held and that could not be read.
	Lost []string `json:"lost,omitempty"`
	// LostDatabases holds the sentences of Lost about a database, by its kind: a
	// collection of that database removes them.
	LostDatabases map[Kind][]string `json:"lost_databases,omitempty"`
}

// Synthesis says how the Open vSwitch of a chassis was made up from a southbound database.
type Synthesis struct {
	Chassis  string `json:"chassis"`  // its name: the system-id
	Hostname string `json:"hostname"` // "" if not known
	SHA256   string `json:"sha256"`   // of the southbound database
	OVN      string `json:"ovn"`      // the version whose ovn-controller made the flows
	// Assumptions are what the database does not say, and what was taken instead.
	Assumptions []string `json:"assumptions"`
}

// Title returns the name of the chassis that a user knows.
func (s *Synthesis) Title() string { return cmp.Or(s.Hostname, s.Chassis) }

// hasDatabase reports whether the database of the kind was collected.
func (c *Collection) hasDatabase() bool {
	return slices.ContainsFunc(c.Files, func(f File) bool { return filepath.Dir(f.Path) == filepath.Join("db", string(c.Kind)) })
}

// DropLost removes the sentences of Lost about the database of a kind.
func (c *Collection) DropLost(k Kind) {
	c.Lost = slices.DeleteFunc(c.Lost, func(l string) bool { return slices.Contains(c.LostDatabases[k], l) })
	delete(c.LostDatabases, k)
}

// Source names the source of a collection.
type Source struct {
	Kind string `json:"kind"` // "sos report", "database file", "Kubernetes cluster"
	Name string `json:"name"` // the path that was given, or the server's URL
	Tool string `json:"tool,omitempty"`
}

// File is one collected file.
type File struct {
	Path     string   `json:"path"`   // in the workdir
	Origin   string   `json:"origin"` // inside the source
	Size     int64    `json:"size"`
	SHA256   string   `json:"sha256"`
	Bridge   string   `json:"bridge,omitempty"`
	OpenFlow string   `json:"openflow,omitempty"` // the version of a dump, "OpenFlow15"
	Remarks  []string `json:"remarks,omitempty"`
}

func (d *Dir) manifestPath() string { return d.join("manifest.json") }

// Manifest reads the manifest. It returns an empty one if nothing was collected yet.
func (d *Dir) Manifest() (*Manifest, error) {
	path := d.manifestPath()
	m := &Manifest{Format: FormatVersion}
	err := ReadJSON(path, m)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	if m.Format != FormatVersion {
		return nil, fmt.Errorf("%s has format %d; this version reads %d: use the ovs-offline that wrote it", path, m.Format, FormatVersion)
	}
	return m, nil
}

// Collection returns the collection of a kind, nil if there is none.
func (m *Manifest) Collection(k Kind) *Collection {
	i := slices.IndexFunc(m.Collections, func(c Collection) bool { return c.Kind == k })
	if i < 0 {
		return nil
	}
	return &m.Collections[i]
}

// Synthesis returns how the data of OVS was made up, nil if it was collected or if there is
// none.
func (m *Manifest) Synthesis() *Synthesis {
	if c := m.Collection(OVS); c != nil {
		return c.Synthesised
	}
	return nil
}

// OpenFlow returns the OpenFlow version of the collected dump at a path in the workdir, ""
// if it is not known.
func (m *Manifest) OpenFlow(path string) string {
	if c := m.Collection(OVS); c != nil {
		for _, f := range c.Files {
			if f.Path == path {
				return f.OpenFlow
			}
		}
	}
	return ""
}

// put replaces the collection of c's kind.
func (m *Manifest) put(c Collection) {
	if old := m.Collection(c.Kind); old != nil {
		*old = c
		return
	}
	m.Collections = append(m.Collections, c)
}
