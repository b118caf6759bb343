package store

import (
	"context"
	"errors"

	"ovs-offline/internal/archive"
)

// AddOptions are the options of Add.
type AddOptions struct {
	Name     string           // "" for the one in the source, or for the versions
	Limits   archive.Limits   // of the source
	Progress archive.Progress // may be nil
}

// Add adds the image of a source.
func (s *Store) Add(ctx context.Context, source string, o AddOptions) (Image, error) {
	return Image{}, errors.ErrUnsupported
}
