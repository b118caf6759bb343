// Package logging carries the logger of --verbose in a context.
package logging

import (
	"context"
	"io"
	"log/slog"
	"time"

	"ovs-offline/internal/terminal"
)

// clientGoLevel is the level of client-go's messages about requests, V(6).
const clientGoLevel = slog.Level(-6)

// contextKey is the key of the logger in a context. It is not logr's key, because
// libraries must not log to this logger.
type contextKey struct{}

// NewContext returns a context with a logger that writes one line per message to
// w. Text from outside is escaped: it can't add lines or control the terminal.
func NewContext(ctx context.Context, w io.Writer) context.Context {
	handler := slog.NewTextHandler(terminal.NewLineWriter(w), &slog.HandlerOptions{Level: clientGoLevel})
	return context.WithValue(ctx, contextKey{}, slog.New(handler))
}

// FromContext returns the logger of ctx, or one that discards everything.
func FromContext(ctx context.Context) *slog.Logger {
	if logger, ok := ctx.Value(contextKey{}).(*slog.Logger); ok {
		return logger
	}
	return slog.New(slog.DiscardHandler)
}

// Timed logs a message with the time between its call and the call of done:
//
//	defer logging.Timed(ctx, "run program", "argv", argv)()
func Timed(ctx context.Context, message string, attributes ...any) (done func()) {
	began := time.Now()
	return func() {
		FromContext(ctx).Debug(message, append(attributes, "took", time.Since(began))...)
	}
}
