package pods

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/image"
	"ovs-offline/replica/runtime"
)

// ErrNoImage is wrapped by the error of a start that names no image.
var ErrNoImage = errors.New("replicas in a cluster need --image REPOSITORY (or --image IMAGE, with a tag) that the cluster can pull from: \"ovs-offline image push REPOSITORY\" puts an image of this machine's tools there, and with --image NAME one of \"ovs-offline image list\"")

// chooser chooses the image for each node.
type chooser struct {
	named  string         // by the user
	images []candidate    // of the repository that the user named; nil if that was an image
	wanted runtime.Wanted // without Recorded
}

// candidate is an image in the repository, by its tag.
type candidate struct {
	reference string // with the tag
	digest    string // the reference with the digest; "" if it is not known yet
	versions  versions.Pair
}

// newChooser reads the tags of the repository, if the user named no image in it.
func newChooser(ctx context.Context, options Options) (*chooser, error) {
	chooser := &chooser{named: options.Image, wanted: runtime.Wanted{Versions: options.Versions}}
	if options.Image == "" {
		return nil, ErrNoImage
	}
	repository, err := image.IsRepository(options.Image)
	if err != nil {
		return nil, err
	}
	if !repository {
		if options.Versions != (versions.Pair{}) {
			return nil, fmt.Errorf("--ovs-version and --ovn-version choose among the tags of a repository, and %s has one already", options.Image)
		}
		return chooser, nil
	}
	tags, err := image.Tags(ctx, options.Image)
	if err != nil {
		return nil, fmt.Errorf("%w; with a tag, --image needs no list of tags", err)
	}
	for _, tag := range tags {
		if pair, ok := image.ParseTag(tag); ok && chooser.wanted.Accepts(pair) {
			chooser.images = append(chooser.images, candidate{reference: options.Image + ":" + tag, versions: pair})
		}
	}
	if len(chooser.images) == 0 {
		return nil, fmt.Errorf("%s has no tag as \"ovs-offline image build\" makes them (%s) with the wanted versions; name an image with its tag", options.Image, image.Tag(versions.Pair{OVS: "3.1.0", OVN: "23.03.1"}))
	}
	return chooser, nil
}

// choose returns the image for a node, by its digest if it is one of a repository, and why
// it was chosen. A node of a cluster does not pull a tag again that it has.
func (c *chooser) choose(ctx context.Context, recorded versions.Pair) (reference, why string, err error) {
	if c.images == nil {
		return c.named, "", nil
	}
	list := make([]versions.Pair, len(c.images))
	for i, tagged := range c.images {
		list[i] = tagged.versions
	}
	wanted := c.wanted
	wanted.Recorded = recorded
	best := choose.Nearest(recorded, list)
	chosen := &c.images[best]
	if chosen.digest == "" {
		if chosen.digest, err = image.Digest(ctx, chosen.reference); err != nil {
			return "", "", err
		}
	}
	return chosen.digest, choose.Why(wanted, list[best], false), nil
}
