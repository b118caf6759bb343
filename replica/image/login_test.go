package image

import "github.com/google/go-containerregistry/pkg/authn"

// loggedIn gives the tests' own pushes the credentials of the registry.
type loggedIn struct{}

func (loggedIn) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: "me", Password: "secret"}, nil
}
