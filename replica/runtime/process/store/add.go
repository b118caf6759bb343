package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/oci"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime/process"
)

// AddOptions are the options of Add.
type AddOptions struct {
	Name   string // "" for the name in the source, or for one of the versions
	Source string // as List shows it; "" for the argument of Add
	// KeepNames keeps the names of the images in the store: NAME@ID is then the image that
	// is added.
	KeepNames bool
	Limits    archive.Limits   // of the source; the zero value means DefaultLimits
	Progress  archive.Progress // may be nil
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
// renamed to NAME@ID, unless o.KeepNames is set. After an error there is no new image.
func (s *Store) Add(ctx context.Context, source string, o AddOptions) (Image, error) {
	o.Source = cmp.Or(o.Source, source)
	return s.add(ctx, o, func(_ string, options oci.Options) (*oci.Image, error) { return oci.Open(ctx, source, options) })
}

// AddArchive works like Add for an archive in the format of docker save, of which it
// ignores the name.
func (s *Store) AddArchive(ctx context.Context, archive io.Reader, o AddOptions) (Image, error) {
	return s.add(ctx, o, func(staging string, options oci.Options) (*oci.Image, error) {
		file := filepath.Join(staging, "archive")
		if err := spool(ctx, archive, file, options.Limits); err != nil {
			return nil, err
		}
		defer os.Remove(file) // it stays open
		opened, err := oci.Open(ctx, "docker-archive:"+file, options)
		if err == nil {
			opened.Name = ""
		}
		return opened, err
	})
}

// spool writes what is read into a file.
func spool(ctx context.Context, from io.Reader, file string, limits archive.Limits) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, interrupt.Reader(ctx, archive.New(limits, nil).Unpacked(from)))
	return errors.Join(err, f.Close())
}

// add adds the image that open opens; staging is the folder in which it can leave files.
func (s *Store) add(ctx context.Context, o AddOptions, open func(staging string, options oci.Options) (*oci.Image, error)) (Image, error) {
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
	opened, err := open(staging, oci.Options{Scratch: staging, Limits: limits, Progress: o.Progress})
	if err != nil {
		return Image{}, err
	}
	defer opened.Close()
	name := cmp.Or(o.Name, opened.Name)
	if known, err := s.read(folderOf(opened.ID)); opened.ID != "" && err == nil {
		return s.rename(known, name, o)
	}
	i, err := s.unpack(ctx, opened, staging)
	if err != nil {
		return Image{}, fmt.Errorf("adding %s: %w", o.Source, err)
	}
	if known, err := s.read(folderOf(i.ID)); err == nil {
		known.Remarks = i.Remarks // about the folder that was copied now
		return s.rename(known, name, o)
	}
	i.Name, i.Source = cmp.Or(name, versionsName(i)), o.Source
	return s.install(i, staging, o)
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
func (s *Store) install(i Image, staging string, o AddOptions) (Image, error) {
	i, err := s.settleName(i, o)
	if err == nil {
		err = workdir.WriteJSON(filepath.Join(staging, descriptionName), i)
	}
	if err == nil {
		err = syncFiles(staging)
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
func (s *Store) rename(i Image, name string, o AddOptions) (Image, error) {
	if name == "" || name == i.Name || o.KeepNames {
		return i, nil
	}
	i.Name = name
	i, err := s.settleName(i, o)
	if err != nil {
		return Image{}, err
	}
	return i, s.describe(i)
}

// settleName makes the name of i unique: it renames another image that has the name or,
// with KeepNames, i.
func (s *Store) settleName(i Image, o AddOptions) (Image, error) {
	images, _ := s.List() // a damaged image has no name
	for _, other := range images {
		if other.Name != i.Name || other.ID == i.ID {
			continue
		}
		if o.KeepNames {
			i.Name = longName(i)
			return i, nil
		}
		before := other.Name
		other.Name = longName(other)
		if err := s.describe(other); err != nil {
			return Image{}, err
		}
		if o.Renamed != nil {
			o.Renamed(before, other.Name)
		}
	}
	return i, nil
}

// longName returns the name of an image with a part of its ID.
func longName(i Image) string {
	const digits = 12
	return fmt.Sprintf("%s@%.*s", i.Name, digits, folderOf(i.ID))
}

// describe writes the description of an image of the store.
func (s *Store) describe(i Image) error {
	i.Root = ""
	return workdir.WriteJSON(filepath.Join(s.path, folderOf(i.ID), descriptionName), i)
}
