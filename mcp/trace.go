package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/internal/ovn/names"
	"ovs-offline/internal/terminal"
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
	Name       string `json:"name,omitempty" jsonschema:"with flow: the node where the packet starts"`
	Flow       string `json:"flow,omitempty" jsonschema:"in place of from and to: BRIDGE in_port=PORT,..."`
	NewOnly    bool   `json:"new_connection,omitempty" jsonschema:"take the connection as new, whatever was recorded"`
	Stages     bool   `json:"stages,omitempty" jsonschema:"also return every stage that the packet passes"`
}

// TraceResult is the result of trace.
type TraceResult struct {
	Verdict string         `json:"verdict" jsonschema:"REACHABLE, ONE-WAY, UNREACHABLE, AMBIGUOUS or UNDETERMINED"`
	Packet  string         `json:"packet,omitempty"`
	Rule    map[string]any `json:"rule,omitempty" jsonschema:"of a drop: the reason, the place, the flow, and the northbound row"`
	Text    []string       `json:"text" jsonschema:"the verdict, the rule that decides, the path, the reply, and the trust"`
	Missing []string       `json:"missing,omitempty" jsonschema:"what a verdict other than UNDETERMINED needs"`
	Stages  []string       `json:"stages,omitempty"`
	Trust   answer.Trust   `json:"trust"`
	Remarks []string       `json:"remarks,omitempty"`
	Notice  string         `json:"notice"`
	Excerpt
}

func (q questions) trace(ctx context.Context, _ *sdk.CallToolRequest, in TraceParams) (_ *sdk.CallToolResult, out TraceResult, err error) {
	if err := in.check(); err != nil {
		return nil, out, err
	}
	session, err := q.openSession(ctx, trace.Options{Options: follow.Options{New: in.NewOnly}})
	if err != nil {
		return nil, out, err
	}
	defer session.Close()
	found, err := in.ask(ctx, session)
	if err != nil {
		return nil, out, err
	}
	out = TraceResult{Verdict: string(found.Verdict), Packet: terminal.Escape(found.Packet), Missing: escapeAll(found.Missing), Trust: found.Trust,
		Remarks: escapeAll(append(found.Remarks, remarks(session)...)), Notice: notice}
	if found.Drop != nil {
		if out.Rule, err = escapeDocument(found.Drop); err != nil {
			return nil, out, err
		}
	}
	if out.Text, _, err = answerLines(found, answer.Options{}); err == nil && in.Stages {
		out.Stages, out.Excerpt, err = answerLines(found, answer.Options{Verbose: true})
	}
	return nil, out, err
}

func (in *TraceParams) check() error {
	if (in.Flow == "") == (in.From == "" || in.To == "") {
		return errors.New("from and to are needed, or flow")
	}
	for what, text := range map[string]string{"from": in.From, "to": in.To, "protocol": in.Protocol, "network": in.Network, "name": in.Name, "flow": in.Flow} {
		if text == "" {
			continue
		}
		if err := checkText(what, text); err != nil {
			return err
		}
	}
	if known := names.Protocols(); in.Protocol != "" && !slices.Contains(known, in.Protocol) {
		return fmt.Errorf("protocol is one of %s, not %q", strings.Join(known, ", "), in.Protocol)
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
		return session.Flow(ctx, in.Name, in.Flow, in.Size)
	}
	return session.Ask(ctx, trace.Between{From: in.From, To: in.To, Network: in.Network, Size: in.Size,
		Question: names.Question{Protocol: in.Protocol, TTL: in.TTL, SrcPort: in.SourcePort, Family: in.Family}})
}

// remarks returns sentences about the nodes of a session, also about nodes whose replica can't be asked.
func remarks(session *trace.Session) []string {
	texts := slices.Concat(session.Doubts(), session.Remarks())
	for _, down := range session.Unavailable() {
		texts = append(texts, down.Error())
	}
	return texts
}

// answerLines returns the lines of an answer's text.
func answerLines(found *answer.Answer, options answer.Options) ([]string, Excerpt, error) {
	return chooseLines(LineParams{Head: maxLines}, PatternParams{}, func(w io.Writer) error {
		return found.Write(terminal.NewLineWriter(w), options)
	})
}

// escapeAll returns sentences with names in them as lines that are safe to print.
func escapeAll(texts []string) (safe []string) {
	for _, text := range texts {
		safe = append(safe, terminal.Escape(text))
	}
	return safe
}
