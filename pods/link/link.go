// Package link carries what commands need of the replicas in a pod over one stream: the
// connections to their sockets, and runs of ovs-offline beside them. The far end of the
// stream is "ovs-offline pod link" in the pod; the near end makes sockets in a private
// folder of this machine, so that code that talks to a replica need not know where it is.
package link

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/yamux"
)

// The stream is one of yamux. In it, the near end opens a stream for each request, which
// begins with a frame.

// frame is the kind of a frame.
type frame byte

const (
	frameRequest frame = iota + 1 // a request
	frameReply                    // a reply
	frameOut                      // standard output of a run
	frameErr                      // its standard error
	frameSize                     // a size of the terminal of a run, from the near end
)

// request is what the near end asks for; one of the pointers is set.
type request struct {
	List *string    `json:"list,omitempty"` // the sockets of a workdir; the answer is a reply
	Dial *socket    `json:"dial,omitempty"` // a connection; the answer is a reply, and then what the socket sends
	Run  *run       `json:"run,omitempty"`  // the answer is frames of output, and then a reply
	In   *runNumber `json:"in,omitempty"`   // the rest of the stream is the standard input of a run
}

// socket names a socket of a replica.
type socket struct {
	Workdir string `json:"workdir,omitempty"` // name of its folder
	Folder  string `json:"folder"`            // in var-run: "ovs", "ovn_nb", "ovn_sb", "recorded"
	// Program names the daemon whose control socket it is. Its file has the process ID of
	// the daemon in its name, which the far end looks up.
	Program string `json:"program,omitempty"`
	Name    string `json:"name,omitempty"` // of the file of any other socket
}

// runNumber identifies a run in a stream. It is a random one: a stream that a keeper holds has
// the runs of many commands, which do not know of each other.
type runNumber uint64

// run is a command line of ovs-offline.
type run struct {
	Number runNumber `json:"number"`
	Args   []string  `json:"args"`
	Input  bool      `json:"input"` // a stream with its standard input follows
	// Terminal is the size of the terminal in which it runs, nil for none. Frames with other
	// sizes may follow. What it prints is standard output.
	Terminal *size `json:"terminal,omitempty"`
}

// size is the size of a terminal in characters.
type size struct {
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
}

// reply is an answer of the far end.
type reply struct {
	Error   string   `json:"error,omitempty"`
	Sockets []socket `json:"sockets,omitempty"`
	Exit    int      `json:"exit,omitempty"`
}

// maxFrame bounds the content of a frame in bytes. A command line has at most 2 MiB (ARG_MAX).
const maxFrame = 4 << 20

var errFrame = errors.New("the stream does not follow the protocol of this version of ovs-offline")

// writeFrame writes a frame: its kind, the length of its content in 4 bytes, and that.
func writeFrame(w io.Writer, kind frame, content []byte) error {
	raw := binary.BigEndian.AppendUint32([]byte{byte(kind)}, uint32(len(content)))
	_, err := w.Write(append(raw, content...))
	return err
}

func writeJSON(w io.Writer, kind frame, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFrame(w, kind, raw)
}

// readFrame reads a frame and no byte behind it.
func readFrame(r io.Reader) (kind frame, content []byte, err error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length > maxFrame {
		return 0, nil, errFrame
	}
	content = make([]byte, length)
	_, err = io.ReadFull(r, content)
	return frame(head[0]), content, err
}

func readJSON(r io.Reader, wanted frame, v any) error {
	kind, content, err := readFrame(r)
	if err != nil {
		return err
	}
	if kind != wanted {
		return fmt.Errorf("%w: a frame of kind %d", errFrame, kind)
	}
	return json.Unmarshal(content, v)
}

// config returns the parameters of yamux at both ends. A connection that was lost without
// a sign of it is noticed after the interval and the timeout.
func config() *yamux.Config {
	c := yamux.DefaultConfig()
	c.LogOutput = io.Discard
	c.KeepAliveInterval = 15 * time.Second
	c.ConnectionWriteTimeout = 30 * time.Second
	c.StreamCloseTimeout = 0 // a command may close its input long before it ends
	return c
}
