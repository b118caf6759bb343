package image

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ovs-offline/internal/filelock"
	"ovs-offline/internal/versions"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// The names in the folder of an image.
const (
	descriptionName = "image.json"
	rootName        = "root"
)

// ErrInUse is wrapped while another command changes the store.
var ErrInUse = errors.New("in use by another ovs-offline command")

// Image is an image in the store. It is also the document image.json, without Root.
type Image struct {
	Name    string    `json:"name"`
	ID      string    `json:"id"`               // digest: of the image's configuration, or of the files of a folder
	Root    string    `json:"root,omitempty"`   // absolute path of the root file system
	OVS     string    `json:"ovs"`              // version of Open vSwitch
	OVN     string    `json:"ovn"`              // version of OVN, "" without OVN
	Size    int64     `json:"size"`             // bytes of all files
	Source  string    `json:"source,omitempty"` // as the user named it
	Added   time.Time `json:"added"`
	Remarks []string  `json:"remarks,omitempty"` // what the image lacks
}

// Versions returns the versions of the programs in the image.
func (i Image) Versions() versions.Pair { return versions.Pair{OVS: i.OVS, OVN: i.OVN} }

// Store keeps the images in which local processes can run a replica, unpacked in the user's
// data folder.
//
// Each image has a folder of its own, named after its digest, with the file image.json
// and the folder root. A folder that is being filled or removed has a name with a dot,
// and the next Add or Remove removes what is left of it.
type Store struct {
	path string
}

// OpenStore returns the caller's store: the folder ovs-offline/images in $XDG_DATA_HOME, which
// is ~/.local/share by default. It creates nothing.
func OpenStore() (*Store, error) {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) { // the specification ignores a relative path
		home, err := homeFolder()
		if err != nil {
			return nil, fmt.Errorf("the folder of images: %w; name a folder in XDG_DATA_HOME", err)
		}
		data = filepath.Join(home, ".local", "share")
	}
	return &Store{path: filepath.Join(data, "ovs-offline", "images")}, nil
}

func homeFolder() (string, error) {
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return home, nil
	}
	caller, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("your home directory is unknown: %w", err)
	}
	return caller.HomeDir, nil
}

// Path returns the folder of the store, which may not exist.
func (s *Store) Path() string { return s.path }

// List returns the images, sorted by name. A store that does not exist has none. The
// error names what cannot be read; the images that can be read are returned with it.
func (s *Store) List() ([]Image, error) {
	if err := s.checkOwner(); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return nil, fmt.Errorf("the folder of images: %w", err)
	}
	var images []Image
	var damaged []error
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		found, err := s.read(entry.Name())
		if err != nil {
			damaged = append(damaged, fmt.Errorf("the image in %s: %w; remove this folder", filepath.Join(s.path, entry.Name()), err))
			continue
		}
		images = append(images, found)
	}
	slices.SortFunc(images, func(a, b Image) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return images, errors.Join(damaged...)
}

// read reads the description of the image in a folder of the store.
func (s *Store) read(folder string) (Image, error) {
	var image Image
	if err := workdir.ReadJSON(filepath.Join(s.path, folder, descriptionName), &image); err != nil {
		return Image{}, err
	}
	if folderOf(image.ID) != folder {
		return Image{}, fmt.Errorf("%s has the ID %q", descriptionName, image.ID)
	}
	image.Root = filepath.Join(s.path, folder, rootName)
	return image, nil
}

// folderOf returns the name of the folder of an image.
func folderOf(id string) string { return strings.TrimPrefix(id, "sha256:") }

// isID reports whether a name is an ID or the beginning of one, of at least four
// hexadecimal digits.
func isID(name, id string) bool {
	const minDigits = 4
	digits := folderOf(name)
	return len(digits) >= minDigits && strings.HasPrefix(folderOf(id), digits)
}

// Find returns the image with a name, or with an ID that begins with it. The error wraps
// runtime.ErrNoImage if there is none.
func (s *Store) Find(name string) (Image, error) {
	images, err := s.List()
	var found []Image
	for _, image := range images {
		if image.Name == name {
			return image, nil
		}
		if isID(name, image.ID) {
			found = append(found, image)
		}
	}
	switch {
	case err != nil:
		return Image{}, err
	case len(found) == 0:
		return Image{}, fmt.Errorf("%w %s for local processes: \"ovs-offline image list\" lists them, \"ovs-offline image add\" adds one", runtime.ErrNoImage, name)
	case len(found) == 1:
		return found[0], nil
	}
	return Image{}, fmt.Errorf("%d images have an ID that begins with %s: give more digits", len(found), name)
}

// checkOwner refuses a store that another user owns or can write to: the programs in it
// are run. The error wraps os.ErrNotExist if there is no store.
func (s *Store) checkOwner() error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", s.path)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("the folder of images %s belongs to another user: it is not used; name a folder of your own in XDG_DATA_HOME", s.path)
	case info.Mode()&0o022 != 0:
		return fmt.Errorf("the folder of images %s can be written to by others (mode %04o): it is not used; chmod go-w it", s.path, info.Mode().Perm())
	}
	return nil
}

// lock creates the store if it is missing, and locks it for changes. It removes what
// interrupted commands left.
func (s *Store) lock() (*filelock.Lock, error) {
	if err := os.MkdirAll(s.path, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of images: %w; name another data folder in XDG_DATA_HOME", err)
	}
	if err := s.checkOwner(); err != nil {
		return nil, err
	}
	lock, err := filelock.Take(filepath.Join(s.path, ".lock"))
	if held, isHeld := errors.AsType[*filelock.HeldError](err); isHeld {
		return nil, fmt.Errorf("the folder of images %s is %w (pid %s): wait for it", s.path, ErrInUse, held.PID)
	}
	if err != nil {
		return nil, fmt.Errorf("the folder of images cannot be written to: %w; name another data folder in XDG_DATA_HOME", err)
	}
	if err := s.clean(); err != nil {
		lock.Release()
		return nil, err
	}
	return lock, nil
}

// The beginnings of the names of folders that are being filled or removed.
const (
	addingPrefix   = ".adding-"
	removingPrefix = ".removing-"
)

// clean removes the folders that interrupted commands left.
func (s *Store) clean() error {
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return fmt.Errorf("the folder of images: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), addingPrefix) || strings.HasPrefix(entry.Name(), removingPrefix) {
			if err := os.RemoveAll(filepath.Join(s.path, entry.Name())); err != nil {
				return fmt.Errorf("removing what an interrupted command left: %w", err)
			}
		}
	}
	return nil
}
