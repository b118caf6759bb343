package workdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ovs-offline/internal/durable"
)

// FormatVersion is the version of the workdir's layout and manifest.
const FormatVersion = 1

// Manifest says what was collected. It is manifest.json.
type Manifest struct {
	Format      int          `json:"format"`
	Collections []Collection `json:"collections"`
}

// Collection is what one collect command put in place for one kind.
type Collection struct {
	Kind       Kind      `json:"kind"`
	Source     Source    `json:"source"`
	Host       string    `json:"host,omitempty"` // the node's name, as the source tells it
	Collected  time.Time `json:"collected"`
	OVSVersion string    `json:"ovs_version,omitempty"`
	OVNVersion string    `json:"ovn_version,omitempty"`
	Bridges    []string  `json:"bridges,omitempty"`
	Files      []File    `json:"files"`
	Remarks    []string  `json:"remarks,omitempty"`
	// Lost is what the source held and could not be read.
	Lost []string `json:"lost,omitempty"`
	// LostDatabases are those of Lost that are about a database, by its kind:
	// another collection can make it good.
	LostDatabases map[Kind][]string `json:"lost_databases,omitempty"`
}

// hasDatabase tells whether the database of the kind was collected.
func (c *Collection) hasDatabase() bool {
	return slices.ContainsFunc(c.Files, func(f File) bool { return filepath.Dir(f.Path) == filepath.Join("db", string(c.Kind)) })
}

// Found takes back that the database of a kind was lost.
func (c *Collection) Found(k Kind) {
	c.Lost = slices.DeleteFunc(c.Lost, func(l string) bool { return slices.Contains(c.LostDatabases[k], l) })
	delete(c.LostDatabases, k)
}

// Source names where a collection came from.
type Source struct {
	Kind string `json:"kind"` // "sos report", "database file", "Kubernetes cluster"
	Name string `json:"name"` // the path that was given; the server's URL
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

// Manifest reads the manifest; an empty one where nothing was collected yet.
func (d *Dir) Manifest() (*Manifest, error) {
	return readManifest(d.manifestPath())
}

func readManifest(path string) (*Manifest, error) {
	m := &Manifest{Format: FormatVersion}
	err := ReadJSON(path, m)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	if m.Format != FormatVersion {
		return nil, fmt.Errorf("%s is of format %d, this version reads %d: use the ovs-offline that made it", path, m.Format, FormatVersion)
	}
	return m, nil
}

// Collection returns what was collected of a kind, nil if nothing was.
func (m *Manifest) Collection(k Kind) *Collection {
	for i := range m.Collections {
		if m.Collections[i].Kind == k {
			return &m.Collections[i]
		}
	}
	return nil
}

// put replaces the collection of c's kind.
func (m *Manifest) put(c Collection) {
	if old := m.Collection(c.Kind); old != nil {
		*old = c
		return
	}
	m.Collections = append(m.Collections, c)
}

// ReadJSON reads the JSON file at path into v.
func ReadJSON(path string, v any) error {
	raw, err := readFile(path)
	if err != nil {
		return err
	}
	if err := DecodeJSON(raw, v); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}

// DecodeJSON decodes a text of at most a million values into v.
func DecodeJSON(text []byte, v any) error {
	if n := values(text); n > mostValues {
		return fmt.Errorf("it has %d values, over %d", n, mostValues)
	}
	return json.Unmarshal(text, v)
}

// WriteJSON writes v to path so that a reader sees the old file or the new one, never a part.
func WriteJSON(path string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return WriteFile(path, append(raw, '\n'), 0o600)
}

// WriteFile writes a whole file under a temporary name, syncs and renames it;
// the new name survives a power cut as well.
func WriteFile(path string, content []byte, mode os.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(content); err != nil {
		return err
	}
	if err = f.Chmod(mode); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(path))
}
