package pods

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"ovs-offline/internal/versions"
)

// pushed starts a registry with an image for each tag, and returns the repository and the
// digests by tag.
func pushed(t *testing.T, tags ...string) (repository string, digests map[string]string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	repository = strings.TrimPrefix(server.URL, "http://") + "/net/replicas"
	digests = map[string]string{}
	for _, tag := range tags {
		reference, err := name.NewTag(repository + ":" + tag)
		if err != nil {
			t.Fatal(err)
		}
		image, err := random.Image(10, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(reference, image); err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[tag] = repository + "@" + digest.String()
	}
	return repository, digests
}

func TestNearestTagOfARepository(t *testing.T) {
	repository, digests := pushed(t, "latest", "ovs-3.1.0-ovn-23.03.1", "ovs-3.3.0-ovn-24.03.2", "ovs-3.5.0-ovn-25.03.0")
	for _, c := range []struct {
		recorded, wanted versions.Pair
		tag, why         string
	}{
		{versions.Pair{OVS: "3.1.0", OVN: "23.03.1"}, versions.Pair{}, "ovs-3.1.0-ovn-23.03.1", "as on the node"},
		{versions.Pair{OVS: "3.3.1", OVN: "24.03.4"}, versions.Pair{}, "ovs-3.3.0-ovn-24.03.2",
			"nearest to the node's OVS 3.3.1, OVN 24.03.4"},
		{versions.Pair{OVS: "3.1.0", OVN: "23.03.1"}, versions.Pair{OVN: "25.03"}, "ovs-3.5.0-ovn-25.03.0",
			"OVS 3.5.0, OVN 25.03.0"},
	} {
		chooser, err := newChooser(t.Context(), Options{Image: repository, Versions: c.wanted})
		if err != nil {
			t.Fatal(err)
		}
		image, why, err := chooser.choose(t.Context(), c.recorded)
		if err != nil || image != digests[c.tag] || !strings.Contains(why, c.why) {
			t.Errorf("recorded %v, wanted %v: %s%s, %v; want %s = %s, %s", c.recorded, c.wanted, image, why, err, c.tag,
				digests[c.tag], c.why)
		}
	}
}

// TestImagesThatTheUserNames checks that an image with a tag or a digest is used as it is,
// without a request to its registry.
func TestImagesThatTheUserNames(t *testing.T) {
	for _, named := range []string{"registry.example:5000/net/replicas:v1",
		"registry.example/replicas@sha256:" + strings.Repeat("a", 64)} {
		chooser, err := newChooser(t.Context(), Options{Image: named})
		if err != nil {
			t.Fatal(err)
		}
		if image, _, err := chooser.choose(t.Context(), versions.Pair{OVS: "3.1.0"}); image != named || err != nil {
			t.Errorf("%s: %s, %v", named, image, err)
		}
	}
}

func TestImagesThatCannotBeChosen(t *testing.T) {
	repository, _ := pushed(t, "latest", "ovs-3.1.0")
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"no image":           {Options{}, `"ovs-offline image push REPOSITORY" puts an image`},
		"no such version":    {Options{Image: repository, Versions: versions.Pair{OVS: "3.9"}}, "has no tag"},
		"no such repository": {Options{Image: repository + "x"}, "with a tag, --image needs no list of tags"},
		"no registry":        {Options{Image: "localhost:1/replicas"}, "listing the tags of localhost:1/replicas"},
		"no reference":       {Options{Image: "Replicas!"}, "is not the reference of an image"},
		"a version of one image": {Options{Image: repository + ":latest", Versions: versions.Pair{OVS: "3.1"}},
			"choose among the tags of a repository"},
	} {
		if _, err := newChooser(t.Context(), c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := newChooser(t.Context(), Options{}); !errors.Is(err, ErrNoImage) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newChooser(ctx, Options{Image: repository}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
