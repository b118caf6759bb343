package linux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// ErrNone is wrapped when a replica has no network namespaces: none were recorded, or this machine can't have
// them. The report of the replica says why.
var ErrNone = errors.New("the replica has no network namespaces")

// Client asks the keeper of a replica's network namespaces. It may be used concurrently: questions are answered
// one after the other.
type Client struct {
	mu      sync.Mutex
	conn    net.Conn
	decoder *json.Decoder
}

// Dial connects to the keeper of a replica's network namespaces. The error wraps runtime.ErrNotRunning if no
// replica runs, and ErrNone if it has no namespaces.
func Dial(wd *workdir.Dir) (*Client, error) {
	if _, err := os.Stat(wd.VarRuns()); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", runtime.ErrNotRunning, wd.Path())
	}
	socket := wd.NamespacesSocket()
	dir, err := os.Open(filepath.Dir(socket)) // the address of a socket holds at most 107 bytes
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNone, wd.Path())
	}
	if err != nil {
		return nil, fmt.Errorf("the network namespaces: %w", err)
	}
	defer func() { _ = dir.Close() }()
	conn, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket)))
	if err != nil {
		return nil, fmt.Errorf("%w: their process in %s does not answer (%w)", ErrNone, wd.Path(), err)
	}
	return &Client{conn: conn, decoder: json.NewDecoder(conn)}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Namespaces returns the restored network namespaces.
func (c *Client) Namespaces(ctx context.Context) ([]Namespace, error) {
	response, err := c.ask(ctx, Request{Op: OpNamespaces})
	for i := range response.Namespaces {
		response.Namespaces[i].File = fmt.Sprintf("/proc/%d/%s", c.PID(), response.Namespaces[i].File)
	}
	return response.Namespaces, err
}

// PID returns the ID of the keeper's process on this host; 0 if it is not known.
func (c *Client) PID() int { return peerOf(c.conn) }

// Report returns what was restored of each namespace, once the restore has ended, and an error if some were left out.
func (c *Client) Report(ctx context.Context) ([]*report.Namespace, error) {
	response, err := c.ask(ctx, Request{Op: OpReport})
	return response.Report, err
}

// Pass puts a frame into a device, and returns what the kernel did with it.
func (c *Client) Pass(ctx context.Context, question Question) (Passage, error) {
	response, err := c.ask(ctx, Request{Op: OpPass, Question: &question})
	if err != nil || response.Passage == nil {
		return Passage{}, err
	}
	return *response.Passage, nil
}

// End asks the keeper to end, which ends all namespaces.
func (c *Client) End(ctx context.Context) error {
	_, err := c.ask(ctx, Request{Op: OpEnd})
	return err
}

// ask sends a request and waits for its answer. A connection on which a request failed is of no use any more:
// its answer may still come.
func (c *Client) ask(ctx context.Context, request Request) (response Response, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return response, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err = json.NewEncoder(c.conn).Encode(request); err == nil {
		err = c.decoder.Decode(&response)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		_ = c.conn.Close()
		return response, fmt.Errorf("the network namespaces: %w", ctx.Err())
	case err != nil:
		_ = c.conn.Close()
		return response, fmt.Errorf("the process that keeps the network namespaces ended: %w", err)
	case response.Error != "":
		return response, errors.New(response.Error)
	}
	return response, nil
}
