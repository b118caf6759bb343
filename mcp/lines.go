package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Error codes of JSON-RPC 2.0, section 5.1.
const (
	codeParse   = -32700
	codeInvalid = -32600
)

// screened is a stream of requests, one a line. It answers a line that is too long, or that is
// not a message, with an error: the server would end at such a line. Its end comes once all
// requests are answered, or after lastAnswers: the server forgets unanswered requests at the end
// of its input.
type screened struct {
	closer io.Closer
	in     *bufio.Reader
	out    *answers
	line   []byte // what is left of the current line
}

func screenLines(in io.ReadCloser, out *answers) *screened {
	return &screened{closer: in, in: bufio.NewReaderSize(in, maxMessage), out: out}
}

// Close implements io.Closer.
func (s *screened) Close() error {
	s.out.end()
	return s.closer.Close()
}

// Read implements io.Reader.
func (s *screened) Read(into []byte) (int, error) {
	for len(s.line) == 0 {
		if err := s.readLine(); err != nil && len(s.line) == 0 {
			s.out.wait()
			return 0, err
		}
	}
	n := copy(into, s.line)
	s.line = s.line[n:]
	return n, nil
}

// readLine reads a line.
func (s *screened) readLine() error {
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
	message, wrong := jsonrpc.DecodeMessage(text)
	if wrong != nil && !bytes.HasPrefix(text, []byte("[")) {
		code := codeInvalid
		if !json.Valid(text) {
			code = codeParse
		}
		s.refuse(code, "the line is not a JSON-RPC message")
		return err
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		s.out.expect()
	}
	s.line = append(bytes.Clone(text), '\n')
	return err
}

// refuse answers a line that has no identifier.
func (s *screened) refuse(code int, message string) {
	// Without a reader of the answers, the next write of the server fails as well.
	_, _ = fmt.Fprintf(s.out, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, message)
}

// answers is the stream of what the server sends, one message a write, which several goroutines
// use. It counts the calls that have no answer yet.
type answers struct {
	io.WriteCloser
	mu      sync.Mutex
	calls   int
	ended   bool       // no answer comes any more
	changed *sync.Cond // of mu
}

func newAnswers(out io.WriteCloser) *answers {
	a := &answers{WriteCloser: out}
	a.changed = sync.NewCond(&a.mu)
	return a
}

// Write implements io.Writer.
func (a *answers) Write(text []byte) (int, error) {
	message, _ := jsonrpc.DecodeMessage(bytes.TrimSpace(text))
	answer, isAnswer := message.(*jsonrpc.Response)
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := a.WriteCloser.Write(text)
	if isAnswer && answer.ID.IsValid() {
		a.calls--
	}
	a.ended = a.ended || err != nil
	a.changed.Broadcast()
	return n, err
}

// expect counts a call.
func (a *answers) expect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
}

// lastAnswers is how long a call may take after the end of the requests, which may be a client
// that has gone.
const lastAnswers = 5 * time.Second

// wait waits until each call is answered, or no answer comes any more.
func (a *answers) wait() {
	defer time.AfterFunc(lastAnswers, a.end).Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.calls > 0 && !a.ended {
		a.changed.Wait()
	}
}

// end makes wait return: no answer comes any more.
func (a *answers) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.changed.Broadcast()
}
