package ovsdb

import (
	"context"
	"log/slog"
	"time"
)

// contextKey is the key of the logger in a context.
type contextKey struct{}

// WithLogger returns a context with which the methods of a Client log what they ask the server, and how long that took,
// at the level Debug.
func WithLogger(ctx context.Context, logger *slog.Logger) context.Context {
	return context.WithValue(ctx, contextKey{}, logger)
}

// timed logs a message with the time between its call and the call of done.
func timed(ctx context.Context, message string, attributes ...any) (done func()) {
	logger, ok := ctx.Value(contextKey{}).(*slog.Logger)
	if !ok {
		return func() {}
	}
	began := time.Now()
	return func() { logger.DebugContext(ctx, message, append(attributes, "took", time.Since(began))...) }
}
