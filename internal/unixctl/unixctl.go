// Package unixctl sends commands to the control socket of a running daemon of
// Open vSwitch, as ovs-appctl does. A start sends about a hundred commands, and a
// run of ovs-appctl for each would take fifty times as long.
//
// The protocol is JSON-RPC 1.0 (RFC 7047, 4): the method is the command, and its
// arguments and its result are strings.
package unixctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"ovs-offline/internal/command"
	"ovs-offline/internal/logging"
)

// ErrUnreachable is wrapped when the command was not sent: no daemon runs, the daemon
// cannot be reached from here, or the protocol cannot encode the command. ovs-appctl
// may succeed, or give a better error.
var ErrUnreachable = errors.New("no daemon at its control socket")

// errRefused is the text of ovs-appctl for an error from the daemon.
var errRefused = errors.New("server returned an error")

// Run sends a command to the daemon whose pid file is in runDir, by the name of its
// program ("ovs-vswitchd"), and returns the result. An error from the daemon is a
// *command.Error like the one of ovs-appctl.
func Run(ctx context.Context, runDir, program string, argv ...string) ([]byte, error) {
	if err := encodable(argv); err != nil {
		return nil, err
	}
	defer logging.Timed(ctx, "ask control socket", "daemon", program, "command", argv)()
	conn, err := Connect(ctx, runDir, program)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Run(ctx, argv...)
}

// Conn is a connection for many commands, one at a time.
type Conn struct {
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

// Connect connects to the daemon that Run would send a command to. The error wraps
// ErrUnreachable.
func Connect(ctx context.Context, runDir, program string) (*Conn, error) {
	conn, err := dial(ctx, runDir, program)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return &Conn{conn, json.NewDecoder(conn), json.NewEncoder(conn)}, nil
}

// Close ends the connection.
func (c *Conn) Close() { c.conn.Close() }

// Run sends a command and returns the result, as the function Run does. After an error
// that is not the daemon's answer, the connection can't be used any more.
func (c *Conn) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if err := encodable(argv); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { c.conn.Close() })()
	answer, err := c.ask(argv)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	commandLine := append([]string{"ovs-appctl"}, argv...)
	switch {
	case err != nil:
		return nil, &command.Error{Argv: commandLine, Err: err}
	case answer.Error != nil:
		return nil, &command.Error{Argv: commandLine, Stderr: *answer.Error, Err: errRefused}
	}
	return []byte(answer.Result), nil
}

// Refused reports whether an error is the answer of a daemon that can't execute the
// command, and returns the daemon's text.
func Refused(err error) (text string, ok bool) {
	failed, ok := errors.AsType[*command.Error](err)
	if !ok || !errors.Is(err, errRefused) {
		return "", false
	}
	return strings.TrimSpace(failed.Stderr), true
}

// encodable returns an error that wraps ErrUnreachable if the protocol can't encode a
// word of a command.
func encodable(argv []string) error {
	for _, word := range argv {
		if !utf8.ValidString(word) || strings.ContainsRune(word, 0) {
			return fmt.Errorf("%w: %q is not valid UTF-8, or contains NUL", ErrUnreachable, word)
		}
	}
	return nil
}

type reply struct {
	Result string  `json:"result"`
	Error  *string `json:"error"`
}

func (c *Conn) ask(argv []string) (reply, error) {
	var reply reply
	err := c.out.Encode(map[string]any{"id": 0, "method": argv[0], "params": append([]string{}, argv[1:]...)})
	if err == nil {
		err = c.in.Decode(&reply)
	}
	return reply, err
}

// dial connects to the control socket, whose name contains the process id.
func dial(ctx context.Context, runDir, program string) (net.Conn, error) {
	raw, err := os.ReadFile(filepath.Join(runDir, program+".pid"))
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return nil, err
	}
	return Dial(ctx, filepath.Join(runDir, fmt.Sprintf("%s.%d.ctl", program, pid)))
}

// Dial connects to a unix socket. The address of a unix socket holds at most 107 bytes
// (sun_path, unix(7)), so Dial reaches it through the descriptor of its directory.
func Dial(ctx context.Context, socket string) (net.Conn, error) {
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket)))
}
