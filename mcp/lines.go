package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Error codes of JSON-RPC 2.0, section 5.1.
const (
	codeParse   = -32700
	codeInvalid = -32600
)

// screened is a stream of requests, one a line. It answers a line that is too long, or that is
// not a message, with an error: the server would end at such a line.
type screened struct {
	io.Closer
	in   *bufio.Reader
	out  *lockedWriter
	line []byte // what is left of the current line
}

func screen(in io.ReadCloser, out *lockedWriter) *screened {
	return &screened{Closer: in, in: bufio.NewReaderSize(in, maxMessage), out: out}
}

// Read implements io.Reader.
func (s *screened) Read(p []byte) (int, error) {
	for len(s.line) == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.line)
	s.line = s.line[n:]
	return n, nil
}

// next reads a line.
func (s *screened) next() error {
	line, err := s.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = s.in.ReadSlice('\n')
		}
		s.refuse(codeInvalid, fmt.Sprintf("the message has more than %d bytes", maxMessage))
		return err
	}
	text := bytes.TrimSpace(line)
	if len(text) == 0 {
		return err
	}
	if _, wrong := jsonrpc.DecodeMessage(text); wrong != nil && !bytes.HasPrefix(text, []byte("[")) {
		code := codeInvalid
		if !json.Valid(text) {
			code = codeParse
		}
		s.refuse(code, "the line is no JSON-RPC message")
		return err
	}
	s.line = append(bytes.Clone(text), '\n')
	return nil
}

// refuse answers a line that has no identifier.
func (s *screened) refuse(code int, message string) {
	// Without a reader of the answers, the next write of the server fails as well.
	_, _ = fmt.Fprintf(s.out, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, message)
}

// lockedWriter is a writer that several goroutines use.
type lockedWriter struct {
	io.WriteCloser
	mu sync.Mutex
}

// Write implements io.Writer.
func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}
