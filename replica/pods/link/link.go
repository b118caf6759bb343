// Package link carries what commands need of the replicas in a pod over one stream: the
// connections to their sockets, and runs of ovs-offline beside them. The far end of the
// stream is "ovs-offline pod link" in the pod; the near end makes sockets in a private
// folder of this machine, so that code that talks to a replica need not know where it is.
package link

import (
	"fmt"
	"strings"
	"time"
)

// The stream is a connection of SSH: its connection protocol (RFC 4254) runs commands, gives
// them terminals, and connects to sockets. The stream is already encrypted and authenticated,
// by the API server, so SSH adds no credentials: see the decisions in docs/architecture.md.

// The types of channels that the near end opens.
const (
	channelSession = "session"                        // runs a command line of ovs-offline
	channelSocket  = "direct-streamlocal@openssh.com" // connects to a socket
	// channelList is ours. Its extra data is the name of a workdir's folder; the far end sends
	// a JSON list of the sockets of its replica.
	channelList = "sockets@ovs-offline"
)

// The types of requests in a session.
const (
	requestTerminal = "pty-req"
	requestSize     = "window-change"
	requestExec     = "exec" // of joined words
	requestExit     = "exit-status"
	requestSignal   = "exit-signal" // with failed
)

// failed is the signal of a command that could not be run.
const failed = "FAILED@ovs-offline"

// requestKeepalive is a request of either end that the other end must answer.
const requestKeepalive = "keepalive@openssh.com"

const (
	silence = 30 * time.Second // in which an end must answer, or the connection counts as lost
	pause   = 15 * time.Second // between two keepalives
	// maxChannels bounds the channels that a far end serves at a time.
	maxChannels = 1024
	// maxCommand bounds a command line in bytes: a packet of SSH takes 256 KiB.
	maxCommand = 250 << 10
	// maxList bounds the list of the sockets of a replica in bytes.
	maxList = 4 << 20
)

// The payloads that the far end reads and writes, as RFC 4254 and OpenSSH's PROTOCOL define them.
type (
	socketPayload struct {
		Path      string // relative to the folder of the workdirs
		Reserved  string
		Reserved2 uint32
	}
	terminalPayload struct {
		Term                         string
		Columns, Rows, Width, Height uint32 // in characters, and in pixels
		Modes                        string
	}
	sizePayload    struct{ Columns, Rows, Width, Height uint32 }
	commandPayload struct{ Command string }
	exitPayload    struct{ Status uint32 }
	signalPayload  struct {
		Signal     string
		CoreDumped bool
		Message    string
		Language   string
	}
)

// joinWords returns words as the one text that SSH takes for a command. No shell reads it:
// the words are separated by a byte that none of them can have.
func joinWords(words []string) (string, error) {
	for _, word := range words {
		if strings.ContainsRune(word, 0) {
			return "", fmt.Errorf("%q: a word of a command line has no NUL byte", word)
		}
	}
	text := strings.Join(words, "\x00")
	if len(text) > maxCommand {
		return "", fmt.Errorf("the command line has %d KiB, and the way to a pod takes %d: give long input on standard input", len(text)>>10, maxCommand>>10)
	}
	return text, nil
}

// splitWords returns the words that were joined.
func splitWords(text string) []string { return strings.Split(text, "\x00") }
