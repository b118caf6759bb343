package image

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

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/interrupt"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/workdir"
)

// AddOptions are the options of Add.
type AddOptions struct {
	Name   string // "" for the name in the source, else a name made of the versions
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
var ErrName = fault.Wrap(fault.Usage, errors.New("not a name for an image"))

// Add unpacks the image of a source (see Open) into the store, and returns it. The
// tools of the image are run to find their versions. An image that the store has already
// is not unpacked again; it gets the new name. If another image has the name, that one is
// renamed to NAME@ID, unless options.KeepNames is set. After an error there is no new image.
func (s *Store) Add(ctx context.Context, source string, options AddOptions) (Image, error) {
	options.Source = cmp.Or(options.Source, source)
	return s.add(ctx, options, func(reading Options) (*Source, error) { return Open(ctx, source, reading) })
}

// AddImage works like Add for an image of go-containerregistry.
func (s *Store) AddImage(ctx context.Context, image v1.Image, options AddOptions) (Image, error) {
	return s.add(ctx, options, func(Options) (*Source, error) { return openImage(image) })
}

// AddArchive works like Add for an archive in the format of docker save. It ignores the name
// in the archive.
func (s *Store) AddArchive(ctx context.Context, archive io.Reader, options AddOptions) (Image, error) {
	return s.add(ctx, options, func(reading Options) (*Source, error) {
		source, err := readArchive(ctx, interrupt.Reader(ctx, archive), "", reading)
		if err == nil {
			source.Name = ""
		}
		return source, err
	})
}

// add adds the image that open opens.
func (s *Store) add(ctx context.Context, options AddOptions, open func(Options) (*Source, error)) (Image, error) {
	if err := process.Supported(); err != nil {
		return Image{}, err
	}
	if err := checkName(options.Name); options.Name != "" && err != nil {
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
	reading := Options{Scratch: staging, Limits: options.Limits, Progress: options.Progress}
	if reading.Limits == (archive.Limits{}) {
		reading.Limits = DefaultLimits()
	}
	opened, err := open(reading)
	if err != nil {
		return Image{}, err
	}
	defer opened.Close()
	name := cmp.Or(options.Name, opened.Name)
	if known, err := s.read(folderOf(opened.ID)); opened.ID != "" && err == nil {
		return s.rename(known, name, options)
	}
	added, err := unpackInto(ctx, opened, reading)
	if err != nil {
		return Image{}, fmt.Errorf("adding %s: %w", options.Source, err)
	}
	if known, err := s.read(folderOf(added.ID)); err == nil {
		known.Remarks = added.Remarks // about the folder that was copied now
		return s.rename(known, name, options)
	}
	added.Name, added.Source = cmp.Or(name, Tag(added.Versions())), options.Source
	return s.install(added, staging, options)
}

// checkName returns an error for a name that would not be readable in a list, or not
// usable as an argument.
func checkName(name string) error {
	const maxName = 255
	isBad := func(char rune) bool { return !unicode.IsPrint(char) || unicode.IsSpace(char) || char == '@' }
	if name == "" || len(name) > maxName || strings.HasPrefix(name, "-") || strings.ContainsFunc(name, isBad) {
		return fmt.Errorf("%w: %.300q: it has at most %d characters, without spaces and @, and does not begin with -", ErrName, name, maxName)
	}
	return nil
}

// unpackInto unpacks an image into the scratch folder, and examines it.
func unpackInto(ctx context.Context, opened *Source, reading Options) (Image, error) {
	if opened.Folder != "" {
		if err := checkTools(opened.Folder); err != nil {
			return Image{}, err // before gigabytes of another folder are copied
		}
	}
	root := filepath.Join(reading.Scratch, rootName)
	if err := os.Mkdir(root, 0o755); err != nil {
		return Image{}, err
	}
	added, err := opened.Unpack(ctx, root, reading)
	if err != nil {
		return Image{}, err
	}
	added.Added = time.Now().UTC().Truncate(time.Second)
	return added, examine(ctx, root, &added)
}

// install writes the description of the image in staging, and moves it into the store.
func (s *Store) install(added Image, staging string, options AddOptions) (Image, error) {
	added, err := s.settleName(added, options)
	if err == nil {
		err = workdir.WriteJSON(filepath.Join(staging, descriptionName), added)
	}
	if err == nil {
		err = syncFiles(staging)
	}
	folder := filepath.Join(s.path, folderOf(added.ID))
	if err == nil {
		err = os.RemoveAll(folder) // a damaged image of this ID, if there is one
	}
	if err == nil {
		err = os.Rename(staging, folder)
	}
	if err != nil {
		return Image{}, fmt.Errorf("the folder of images: %w", err)
	}
	added.Root = filepath.Join(folder, rootName)
	return added, nil
}

// rename gives an image of the store another name; "" keeps the one that it has.
func (s *Store) rename(known Image, name string, options AddOptions) (Image, error) {
	if name == "" || name == known.Name || options.KeepNames {
		return known, nil
	}
	known.Name = name
	known, err := s.settleName(known, options)
	if err != nil {
		return Image{}, err
	}
	return known, s.describe(known)
}

// settleName makes the name of an image unique: it renames another image that has the name
// or, with KeepNames, this one.
func (s *Store) settleName(named Image, options AddOptions) (Image, error) {
	images, _ := s.List() // a damaged image has no name
	for _, other := range images {
		if other.Name != named.Name || other.ID == named.ID {
			continue
		}
		if options.KeepNames {
			named.Name = longName(named)
			return named, nil
		}
		before := other.Name
		other.Name = longName(other)
		if err := s.describe(other); err != nil {
			return Image{}, err
		}
		if options.Renamed != nil {
			options.Renamed(before, other.Name)
		}
	}
	return named, nil
}

// longName returns the name of an image with a part of its ID.
func longName(image Image) string {
	const digits = 12
	return fmt.Sprintf("%s@%.*s", image.Name, digits, folderOf(image.ID))
}

// describe writes the description of an image of the store.
func (s *Store) describe(image Image) error {
	image.Root = ""
	return workdir.WriteJSON(filepath.Join(s.path, folderOf(image.ID), descriptionName), image)
}
