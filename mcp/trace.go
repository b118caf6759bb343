package mcp

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/internal/terminal"
	"ovs-offline/trace"
	"ovs-offline/trace/answer"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/names"
)

// TraceParams are the parameters of trace.
type TraceParams struct {
	From       string `json:"from,omitempty" jsonschema:"where the packet starts: ns1/web-0"`
	To         string `json:"to,omitempty" jsonschema:"where it goes: svc/ns2/db:5432"`
	Protocol   string `json:"protocol,omitempty" jsonschema:"tcp, udp, sctp, icmp or icmp6"`
	Family     int    `json:"family,omitempty" jsonschema:"4 or 6; without it IPv4 where both ends have it. A typed address has its own"`
	Network    string `json:"network,omitempty" jsonschema:"network or logical switch of names that several have"`
	Size       int    `json:"size,omitempty" jsonschema:"size of the frame in bytes"`
	TTL        int    `json:"ttl,omitempty"`
	SourcePort uint16 `json:"source_port,omitempty"`
	Node       string `json:"node,omitempty" jsonschema:"with flow: the node where the packet starts"`
	Flow       string `json:"flow,omitempty" jsonschema:"in place of from and to: BRIDGE in_port=PORT,..."`
	NewOnly    bool   `json:"new_connection,omitempty" jsonschema:"take the connection as new, whatever was recorded"`
	Stages     bool   `json:"stages,omitempty" jsonschema:"also return every stage that the packet passes"`
}

// TraceResult is the result of trace.
type TraceResult struct {
	Verdict string       `json:"verdict" jsonschema:"REACHABLE, ONE-WAY, UNREACHABLE, AMBIGUOUS or UNDETERMINED"`
	Text    []string     `json:"text" jsonschema:"the verdict, the rule that decides, the path, the reply, and the trust"`
	Missing []string     `json:"missing,omitempty" jsonschema:"what a verdict other than UNDETERMINED needs"`
	Stages  []string     `json:"stages,omitempty"`
	Trust   answer.Trust `json:"trust"`
	Remarks []string     `json:"remarks,omitempty"`
	Notice  string       `json:"notice"`
	Excerpt
}

func (s *Server) trace(ctx context.Context, _ *sdk.CallToolRequest, in TraceParams) (_ *sdk.CallToolResult, out TraceResult, err error) {
	if err := in.check(); err != nil {
		return nil, out, err
	}
	session, err := s.session(ctx, trace.Options{Options: follow.Options{New: in.NewOnly}})
	if err != nil {
		return nil, out, err
	}
	defer session.Close()
	a, err := in.ask(ctx, session)
	if err != nil {
		return nil, out, err
	}
	out = TraceResult{Verdict: string(a.Verdict), Missing: escaped(a.Missing), Trust: a.Trust, Remarks: escaped(append(a.Remarks, remarks(session)...)), Notice: notice}
	if out.Text, _, err = written(a, answer.Options{}); err == nil && in.Stages {
		out.Stages, out.Excerpt, err = written(a, answer.Options{Verbose: true})
	}
	return nil, out, err
}

func (in *TraceParams) check() error {
	if (in.Flow == "") == (in.From == "" || in.To == "") {
		return fmt.Errorf("from and to are needed, or flow")
	}
	for what, text := range map[string]string{"from": in.From, "to": in.To, "protocol": in.Protocol, "network": in.Network, "node": in.Node, "flow": in.Flow} {
		if text == "" {
			continue
		}
		if err := name(what, text); err != nil {
			return err
		}
	}
	if p := names.Protocols(); in.Protocol != "" && !slices.Contains(p, in.Protocol) {
		return fmt.Errorf("protocol is one of %s, not %q", strings.Join(p, ", "), in.Protocol)
	}
	return checkFamily(in.Family)
}

func checkFamily(family int) error {
	if family != 0 && family != 4 && family != 6 {
		return fmt.Errorf("family is 4 or 6, not %d", family)
	}
	return nil
}

func (in *TraceParams) ask(ctx context.Context, session *trace.Session) (*answer.Answer, error) {
	if in.Flow != "" {
		return session.Flow(ctx, in.Node, in.Flow, in.Size)
	}
	return session.Ask(ctx, trace.Between{From: in.From, To: in.To, Network: in.Network, Size: in.Size,
		Question: names.Question{Protocol: in.Protocol, TTL: in.TTL, SrcPort: in.SourcePort, Family: in.Family}})
}

// session opens a session on all nodes.
func (s *Server) session(ctx context.Context, o trace.Options) (*trace.Session, error) {
	return trace.OpenFolder(ctx, s.Folder, s.Version, o)
}

// remarks returns sentences about the nodes of a session, and those whose replica can't be asked.
func remarks(session *trace.Session) []string {
	texts := slices.Concat(session.Doubts(), session.Remarks())
	for _, down := range session.Unavailable() {
		texts = append(texts, down.Error())
	}
	return texts
}

// written returns the lines of an answer's text.
func written(a *answer.Answer, o answer.Options) ([]string, Excerpt, error) {
	var text bytes.Buffer
	if err := a.Write(terminal.NewLineWriter(&text), o); err != nil {
		return nil, Excerpt{}, err
	}
	c, err := newChooser(LineParams{Head: maxLines}, PatternParams{})
	if err != nil {
		return nil, Excerpt{}, err
	}
	_, _ = c.Write(text.Bytes())
	lines, excerpt := c.lines()
	return lines, excerpt, nil
}

// escaped returns sentences with names in them as lines that are safe to print.
func escaped(texts []string) (safe []string) {
	for _, text := range texts {
		safe = append(safe, terminal.Escape(text))
	}
	return safe
}
