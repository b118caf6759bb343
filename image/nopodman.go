//go:build !(remote && containers_image_openpgp)

package image

import (
	"context"
	"errors"
)

// ConnectPodman tells that podman's client builds with tags alone.
func ConnectPodman(context.Context) (Engine, error) {
	return nil, errors.New("this build has no podman client: build it with make")
}
