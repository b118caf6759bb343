package anonymise

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"ovs-offline/internal/outfile"
)

// Map has what was replaced, with what by.
type Map struct {
	Bundle    map[string]string `json:"bundle"`    // "sha256": that of the bundle's file
	Names     map[string]string `json:"names"`     // words of names
	Addresses map[string]string `json:"addresses"` // and prefixes
	MACs      map[string]string `json:"macs"`
	UUIDs     map[string]string `json:"uuids"`
	Earlier   json.RawMessage   `json:"earlier,omitempty"` // the map of an earlier bundle, while that is replaced
}

// MapSuffix ends the name of the file with the Map of a bundle, after the name of the bundle.
const MapSuffix = ".map.json"

// Save writes the file of a bundle, with what save writes, and beside it that of the map, and returns the size of the
// bundle. Both change or none: they are complete on the disk before the first one gets its name. While they do, the map's
// file also has the earlier map, so that after a kill or a power cut the map of the bundle is there, whichever of the two that is.
func (m *Map) Save(name string, replace bool, save func(io.Writer) error) (size int64, err error) {
	sum := sha256.New()
	bundle, err := outfile.New(name, replace, func(w io.Writer) error { return save(io.MultiWriter(w, sum)) })
	if err != nil {
		return 0, err
	}
	m.Bundle = map[string]string{"sha256": hex.EncodeToString(sum.Sum(nil))}
	made := []*outfile.File{bundle}
	defer func() {
		for _, file := range made {
			file.Discard()
		}
	}()
	both, hasEarlier := *m, false
	if both.Earlier, err = os.ReadFile(name + MapSuffix); err == nil {
		hasEarlier = json.Valid(both.Earlier)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	maps := []*Map{m}
	if hasEarlier {
		maps = []*Map{&both, m}
	}
	for _, of := range maps {
		file, err := outfile.New(name+MapSuffix, replace, of.write)
		if err != nil {
			return 0, err
		}
		made = append(made, file)
	}
	order := []*outfile.File{made[1], bundle} // a map without its bundle does no harm
	if hasEarlier {
		order = append(order, made[2])
	}
	for _, file := range order {
		if err := file.Commit(); err != nil {
			return 0, err
		}
	}
	return bundle.Size, nil
}

func (m *Map) write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(m)
}
