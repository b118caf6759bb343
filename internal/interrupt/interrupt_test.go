package interrupt

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestPipeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	raw, err := io.ReadAll(Pipe(ctx, strings.NewReader("all of it")))
	if err != nil || string(raw) != "all of it" {
		t.Errorf("%q, %v", raw, err)
	}
	silent, writer := io.Pipe()
	defer writer.Close()
	r := Pipe(ctx, silent)
	cancel()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a read that waits ends with %v", err)
	}
}
