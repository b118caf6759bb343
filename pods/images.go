package pods

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/internal/oci"
	"ovs-offline/internal/versions"
	"ovs-offline/replica/image"
	"ovs-offline/replica/runtime/choose"
)

// ErrNoImage is wrapped by the error of a start that names no image.
var ErrNoImage = errors.New("replicas in a cluster need --image REPOSITORY (or --image IMAGE, with a tag) that the cluster can pull from: \"ovs-offline image push REPOSITORY\" puts an image of this machine's tools there, and with --image NAME one of \"ovs-offline image list\"")

// chooser chooses the image for each node.
type chooser struct {
	named  string        // by the user
	images []candidate   // of the repository that the user named; nil if that was an image
	wanted choose.Wanted // without Recorded
}

// candidate is an image in the repository, by its tag.
type candidate struct {
	reference string // with the tag
	digest    string // the reference with the digest; "" if it is not known yet
	versions  versions.Pair
}

// newChooser reads the tags of the repository, if the user named no image in it.
func newChooser(ctx context.Context, o Options) (*chooser, error) {
	c := &chooser{named: o.Image, wanted: choose.Wanted{Versions: o.Versions}}
	if o.Image == "" {
		return nil, ErrNoImage
	}
	repository, err := oci.IsRepository(o.Image)
	if err != nil {
		return nil, err
	}
	if !repository {
		if o.Versions != (versions.Pair{}) {
			return nil, fmt.Errorf("--ovs-version and --ovn-version choose among the tags of a repository, and %s has one already", o.Image)
		}
		return c, nil
	}
	tags, err := oci.Tags(ctx, o.Image)
	if err != nil {
		return nil, fmt.Errorf("%w; with a tag, --image needs no list of tags", err)
	}
	for _, tag := range tags {
		v, ok := image.ParseTag(tag)
		if pair := (versions.Pair{OVS: v.OVS, OVN: v.OVN}); ok && c.wanted.Accepts(pair) {
			c.images = append(c.images, candidate{reference: o.Image + ":" + tag, versions: pair})
		}
	}
	if len(c.images) == 0 {
		return nil, fmt.Errorf("%s has no tag as \"ovs-offline image build\" makes them (%s) with the wanted versions; name an image with its tag", o.Image, image.Versions{OVS: "3.1.0", OVN: "23.03.1"}.Tag())
	}
	return c, nil
}

// choose returns the image for a node, by its digest if it is one of a repository, and why
// it was chosen. A node of a cluster does not pull a tag again that it has.
func (c *chooser) choose(ctx context.Context, recorded versions.Pair) (reference, why string, err error) {
	if c.images == nil {
		return c.named, "", nil
	}
	list := make([]versions.Pair, len(c.images))
	for i, image := range c.images {
		list[i] = image.versions
	}
	wanted := c.wanted
	wanted.Recorded = recorded
	best := choose.Nearest(recorded, list)
	chosen := &c.images[best]
	if chosen.digest == "" {
		if chosen.digest, err = oci.Digest(ctx, chosen.reference); err != nil {
			return "", "", err
		}
	}
	return chosen.digest, wanted.Why(list[best], false), nil
}
