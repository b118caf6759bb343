// Package interrupt ends long reads with their context.
package interrupt

import (
	"context"
	"io"
)

// Reader reads r until ctx ends: from then on its error is ctx's.
func Reader(ctx context.Context, r io.Reader) io.Reader { return reader{ctx, r} }

type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
