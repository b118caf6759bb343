package link

import (
	"context"
	"errors"

	"ovs-offline/workdir"
)

type linksKey struct{}

// NewContext returns a context in which From returns links, and in which the sockets of
// workdirs whose replica runs in a pod come from the links.
func NewContext(ctx context.Context, links *Links) context.Context {
	return workdir.WithLinker(context.WithValue(ctx, linksKey{}, links), links)
}

// From returns the links of a context.
func From(ctx context.Context) (*Links, error) {
	links, ok := ctx.Value(linksKey{}).(*Links)
	if !ok {
		return nil, errors.New("replicas in pods can't be reached from here")
	}
	return links, nil
}
