package restore

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"

	"ovs-offline/internal/command"
)

// pusher is what pushAll does with things of a kind, flows or groups.
type pusher[T any] struct {
	send func(ctx context.Context, list []T) error // all of them or, with an error, none
	sent func(T)
	// refused deals with one that can't be added in a list; certain tells that it
	// was alone there. It returns what of the rest is still to be sent.
	refused func(ctx context.Context, bad T, cause error, certain bool, rest []T) ([]T, error)
}

// pushAll sends a list. Where ovs-ofctl can't read one of it, or the switch
// refuses it, none is taken: that one is dealt with alone, and the rest goes in
// smaller lists until all is well again. Each bad one so costs a few runs of
// ovs-ofctl, wherever it stands and however many there are.
func pushAll[T any](ctx context.Context, list []T, p pusher[T]) error {
	for most := len(list); len(list) > 0; {
		n := min(most, len(list))
		err := p.send(ctx, list[:n])
		if err == nil {
			for _, one := range list[:n] {
				p.sent(one)
			}
			list = list[n:]
			most = 2 * n
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		most = max(1, n/2)
		bad, ok := culprit(err, n)
		if !ok && n > 1 {
			continue
		}
		one := list[bad]
		if list, err = p.refused(ctx, one, err, n == 1, slices.Delete(list, bad, bad+1)); err != nil {
			return err
		}
	}
	return nil
}

// culprit reads which one of n in a bundle is to blame, from 0: the line that
// ovs-ofctl could not parse, or the message that the switch refused.
func culprit(err error, n int) (int, bool) {
	if bad, _, ok := unparsed(err); ok && bad < n {
		return bad, true
	}
	var failed *command.Error
	if !errors.As(err, &failed) {
		return 0, n == 1
	}
	refused, ok := messageNumber(refusedMessage, failed.Stderr)
	if !ok {
		return 0, n == 1
	}
	// ovs-ofctl numbers the messages of a bundle in a row, and then those that
	// open, close and commit it. Where none of the latter was refused as well, the
	// first one's number is that of a connection without names (measured, OVS 3.1).
	// Where another OVS numbers otherwise, one is tried alone in vain.
	first := 2
	if commit, ok := messageNumber(refusedCommit, failed.Stderr); ok {
		first = commit - 2 - n
	}
	if bad := refused - first; bad >= 0 && bad < n {
		return bad, true
	}
	return 0, n == 1
}

// messageNumber reads the xid of a message that was refused.
func messageNumber(pattern *regexp.Regexp, said string) (int, bool) {
	m := pattern.FindStringSubmatch(said)
	if m == nil {
		return 0, false
	}
	xid, err := strconv.ParseInt(m[1], 16, 32)
	return int(xid), err == nil
}

var (
	refusedMessage = regexp.MustCompile(`(?m)^Error [A-Z0-9_]+ for: OFPT_(?:FLOW|GROUP)_MOD .*?\(xid=0x([0-9a-f]+)\)`)
	refusedCommit  = regexp.MustCompile(`(?m)^Error [A-Z0-9_]+ for: OFPT_BUNDLE_CONTROL .*?\(xid=0x([0-9a-f]+)\)`)
)
