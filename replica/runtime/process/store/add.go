package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/oci"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime/process"
)

// AddOptions are the options of Add.
type AddOptions struct {
	Name     string           // "" for the name in the source, or for one of the versions
	Limits   archive.Limits   // of the source; the zero value means DefaultLimits
	Progress archive.Progress // may be nil
	// Renamed is called for another image that had the name; it may be nil.
	Renamed func(before, now string)
}

// DefaultLimits returns limits far above the images of clusters: the largest known ones
// have 2 GB in 60,000 files.
func DefaultLimits() archive.Limits {
	return archive.Limits{Bytes: 20 << 30, Ratio: 250, Entries: 1_000_000}
}

// ErrName is wrapped by the error for a name that an image can't have.
var ErrName = errors.New("not a name for an image")

// Add unpacks the image of a source (see oci.Open) into the store, and returns it. The
// tools of the image are run to find their versions. An image that the store has already
// is not unpacked again; it gets the new name. If another image has the name, that one is
// renamed to NAME@ID. After an error there is no new image.
func (s *Store) Add(ctx context.Context, source string, o AddOptions) (Image, error) {
	if err := process.Supported(); err != nil {
		return Image{}, err
	}
	if err := checkName(o.Name); o.Name != "" && err != nil {
		return Image{}, err
	}
	lock, err := s.lock()
	if err != nil {
		return Image{}, err
	}
	defer lock.Release()
	staging, err := os.MkdirTemp(s.path, addingPrefix)
	if err != nil {
		return Image{}, fmt.Errorf("the folder of images: %w", err)
	}
	defer os.RemoveAll(staging)
	limits := o.Limits
	if limits == (archive.Limits{}) {
		limits = DefaultLimits()
	}
	opened, err := oci.Open(ctx, source, oci.Options{Scratch: staging, Limits: limits, Progress: o.Progress})
	if err != nil {
		return Image{}, err
	}
	defer opened.Close()
	name := cmp.Or(o.Name, opened.Name)
	if known, err := s.read(folderOf(opened.ID)); opened.ID != "" && err == nil {
		return s.rename(known, name, o.Renamed)
	}
	i, err := s.unpack(ctx, opened, staging)
	if err != nil {
		return Image{}, fmt.Errorf("adding %s: %w", source, err)
	}
	if known, err := s.read(folderOf(i.ID)); err == nil {
		known.Remarks = i.Remarks // about the folder that was copied now
		return s.rename(known, name, o.Renamed)
	}
	i.Name, i.Source = cmp.Or(name, versionsName(i)), source
	return s.install(i, staging, o.Renamed)
}

// checkName returns an error for a name that would not be readable in a list, or not
// usable as an argument.
func checkName(name string) error {
	const maxName = 255
	bad := func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) || r == '@' }
	if name == "" || len(name) > maxName || strings.HasPrefix(name, "-") || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("%w: %.300q: it has at most %d characters, without spaces and @, and does not begin with -", ErrName, name, maxName)
	}
	return nil
}

// versionsName returns the name of an image that has none.
func versionsName(i Image) string {
	if i.OVN == "" {
		return "ovs-" + i.OVS
	}
	return "ovs-" + i.OVS + "-ovn-" + i.OVN
}

// unpack unpacks an image into the folder staging, and examines it.
func (s *Store) unpack(ctx context.Context, opened *oci.Image, staging string) (Image, error) {
	if opened.Folder != "" {
		if err := checkTools(opened.Folder); err != nil {
			return Image{}, err // before gigabytes of another folder are copied
		}
	}
	root := filepath.Join(staging, rootName)
	if err := os.Mkdir(root, 0o755); err != nil {
		return Image{}, err
	}
	unpacked, err := opened.Unpack(ctx, root)
	if err != nil {
		return Image{}, err
	}
	i := Image{ID: unpacked.ID, Size: unpacked.Size, Added: time.Now().UTC().Truncate(time.Second)}
	if len(unpacked.Unreadable) > 0 {
		i.Remarks = append(i.Remarks, "left out, because you may not read it: "+recording.FirstNames(unpacked.Unreadable))
	}
	return i, examine(ctx, root, &i)
}

// install writes the description of the image in staging, and moves it into the store.
func (s *Store) install(i Image, staging string, renamed func(before, now string)) (Image, error) {
	err := workdir.WriteJSON(filepath.Join(staging, descriptionName), i)
	if err == nil {
		err = syncFiles(staging)
	}
	if err == nil {
		err = s.yieldName(i, renamed)
	}
	folder := filepath.Join(s.path, folderOf(i.ID))
	if err == nil {
		err = os.RemoveAll(folder) // a damaged image of this ID, if there is one
	}
	if err == nil {
		err = os.Rename(staging, folder)
	}
	if err != nil {
		return Image{}, fmt.Errorf("the folder of images: %w", err)
	}
	i.Root = filepath.Join(folder, rootName)
	return i, nil
}

// rename gives an image of the store another name; "" keeps the one that it has.
func (s *Store) rename(i Image, name string, renamed func(before, now string)) (Image, error) {
	if name == "" || name == i.Name {
		return i, nil
	}
	i.Name = name
	if err := s.yieldName(i, renamed); err != nil {
		return Image{}, err
	}
	return i, s.describe(i)
}

// yieldName renames another image that has the name of i.
func (s *Store) yieldName(i Image, renamed func(before, now string)) error {
	images, _ := s.List() // a damaged image has no name
	for _, other := range images {
		if other.Name != i.Name || other.ID == i.ID {
			continue
		}
		const digits = 12
		other.Name = fmt.Sprintf("%s@%.*s", i.Name, digits, folderOf(other.ID))
		if err := s.describe(other); err != nil {
			return err
		}
		if renamed != nil {
			renamed(i.Name, other.Name)
		}
	}
	return nil
}

// describe writes the description of an image of the store.
func (s *Store) describe(i Image) error {
	i.Root = ""
	return workdir.WriteJSON(filepath.Join(s.path, folderOf(i.ID), descriptionName), i)
}
