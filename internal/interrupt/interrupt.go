// Package interrupt ends long reads with their context.
package interrupt

import (
	"context"
	"io"
)

// Reader reads r until ctx ends: from then on its error is ctx's.
func Reader(ctx context.Context, r io.Reader) io.Reader { return reader{ctx, r} }

// Pipe is Reader for what may keep a read waiting for ever: a terminal, a pipe
// that nobody writes to. That read is left alone in the background, so r is not
// for anybody else any more.
func Pipe(ctx context.Context, r io.Reader) io.Reader {
	in, out := io.Pipe()
	context.AfterFunc(ctx, func() { out.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(out, r)
		out.CloseWithError(err)
	}()
	return in
}

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
