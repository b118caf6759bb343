package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestServerGoesOnAfterBadMessages checks that each line that is no request, and each URI that
// is none, is answered with an error, and that the server answers the next request.
func TestServerGoesOnAfterBadMessages(t *testing.T) {
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- New(Options{Folder: t.TempDir(), Version: "test"}).Serve(t.Context(), in, out) }()
	lines := bufio.NewScanner(answers)
	lines.Buffer(nil, 1<<20)
	ask := func(line string) map[string]any {
		t.Helper()
		if _, err := io.WriteString(requests, line+"\n"); err != nil {
			t.Fatalf("%.80s: %v", line, err)
		}
		if !lines.Scan() {
			t.Fatalf("%.80s: the server has ended: %v", line, lines.Err())
		}
		var answer map[string]any
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			t.Fatalf("%.80s: the answer is no JSON: %v\n%s", line, err, lines.Text())
		}
		return answer
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if _, err := io.WriteString(requests, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	codes := map[string]float64{
		"{": codeParse, "hello": codeParse, "{}": codeInvalid, "7": codeInvalid,
		strings.Repeat("x", 2*maxMessage): codeInvalid,
	}
	for line, want := range codes {
		answer, _ := ask(line)["error"].(map[string]any)
		if answer["code"] != want {
			t.Errorf("%.80s: got %v, want the error code %v", line, answer, want)
		}
	}
	for _, uri := range []string{`ovs-offline://nodes/a\u0007/report`, `ovs-offline://nodes/\u202e/none`,
		`ovs-offline://nodes/a/none`} {
		if answer := ask(`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"` + uri +
			`"}}`); answer["error"] == nil {
			t.Errorf("%s: got %v, want an error", uri, answer)
		}
	}
	if answer := ask(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`); answer["result"] == nil {
		t.Errorf("got %v, want the tools", answer)
	}
	requests.Close()
	if err := <-served; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestServerAnswersAllBeforeItEnds gives the server all of its input at once, as a file.
func TestServerAnswersAllBeforeItEnds(t *testing.T) {
	const calls = 10
	var requests, printed bytes.Buffer
	fmt.Fprintln(&requests, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	fmt.Fprintln(&requests, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\nno message")
	for i := range calls {
		fmt.Fprintf(&requests, `{"jsonrpc":"2.0","id":"call-%d","method":"tools/call","params":{"name":"list-nodes","arguments":{}}}`+"\n", i)
	}
	if err := New(Options{Folder: t.TempDir(), Version: "test"}).Serve(t.Context(), io.NopCloser(&requests),
		notClosed{&printed}); err != nil {
		t.Error(err)
	}
	for i := range calls {
		if id := fmt.Sprintf(`"id":"call-%d"`, i); strings.Count(printed.String(), id) != 1 {
			t.Errorf("the call with %s has no answer:\n%s", id, &printed)
		}
	}
}

// notClosed is a writer that stays open.
type notClosed struct{ io.Writer }

func (notClosed) Close() error { return nil }
