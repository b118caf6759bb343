// Package unixctl gives commands to a running daemon of Open vSwitch at its
// control socket, as ovs-appctl does. A start gives some hundred of them, and a
// program for each takes fifty times as long.
//
// The protocol is JSON-RPC 1.0 (RFC 7047, 4, without its methods): the command
// is the method, its arguments are strings, and so is what comes back.
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

// ErrUnreachable is wrapped where nothing was asked: there is no daemon, none
// that can be reached from here, or its protocol has no way to say it.
// ovs-appctl may know more.
var ErrUnreachable = errors.New("no daemon at its control socket")

// errRefused is ovs-appctl's word for an answer that is an error.
var errRefused = errors.New("server returned an error")

// Run gives a command to the daemon of that program ("ovs-vswitchd") whose pid
// file stands in runDir, and returns what it answers. An answer that is an error
// is a *command.Error like that of ovs-appctl.
func Run(ctx context.Context, runDir, program string, argv ...string) ([]byte, error) {
	for _, word := range argv {
		if !utf8.ValidString(word) || strings.ContainsRune(word, 0) {
			return nil, fmt.Errorf("%w: %q is no text", ErrUnreachable, word)
		}
	}
	defer logging.Timed(ctx, "ask control socket", "daemon", program, "command", argv)()
	conn, err := dial(ctx, runDir, program)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	answer, err := ask(conn, argv)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	whole := append([]string{"ovs-appctl"}, argv...)
	switch {
	case err != nil:
		return nil, &command.Error{Argv: whole, Err: err}
	case answer.Error != nil:
		return nil, &command.Error{Argv: whole, Stderr: *answer.Error, Err: errRefused}
	}
	return []byte(answer.Result), nil
}

type request struct {
	ID     int      `json:"id"`
	Method string   `json:"method"`
	Params []string `json:"params"`
}

type reply struct {
	Result string  `json:"result"`
	Error  *string `json:"error"`
}

func ask(conn net.Conn, argv []string) (reply, error) {
	var r reply
	raw, err := json.Marshal(request{Method: argv[0], Params: append([]string{}, argv[1:]...)})
	if err != nil {
		return r, err
	}
	if _, err := conn.Write(raw); err != nil {
		return r, err
	}
	err = json.NewDecoder(conn).Decode(&r)
	return r, err
}

// dial connects to the socket that is named after the process in the pid file.
// The directory is opened first: an address holds no more than 107 bytes.
func dial(ctx context.Context, runDir, program string) (net.Conn, error) {
	raw, err := os.ReadFile(filepath.Join(runDir, program+".pid"))
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(runDir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var d net.Dialer
	return d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s.%d.ctl", dir.Fd(), program, pid))
}
