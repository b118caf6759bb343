// Package interrupt ends long reads when their context ends.
package interrupt

import (
	"context"
	"io"
)

// Reader returns a reader of r that fails with the error of ctx once ctx has ended.
func Reader(ctx context.Context, r io.Reader) io.Reader { return reader{ctx, r} }

// Pipe returns a Reader for a terminal or a pipe, where one read may wait forever. That
// read continues in the background, so the caller must not use r any more.
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

func (r reader) Read(data []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(data)
}
