package mcp

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/internal/graph"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

// scheme is the beginning of the URI of every resource.
const scheme = "ovs-offline://nodes/"

// resourceOf returns the URI of a resource of a node.
func resourceOf(node, kind string) string { return scheme + url.PathEscape(node) + "/" + kind }

func resourcesOf(node string) []string {
	return []string{resourceOf(node, "report"), resourceOf(node, "graph"), resourceOf(node, "manifest")}
}

func (s *Server) addResources() {
	for _, r := range []struct{ kind, mime, description string }{
		{"report", "application/json", "How faithful the replica of a node is, whole"},
		{"graph", "image/svg+xml", "A picture of the bridges, ports and tunnels of a node"},
		{"manifest", "application/json", "What was collected of a node, and from where"},
	} {
		s.server.AddResourceTemplate(&sdk.ResourceTemplate{Name: r.kind, URITemplate: scheme + "{node}/" + r.kind, MIMEType: r.mime, Description: r.description}, s.read)
	}
}

// read returns a resource of a node.
func (s *Server) read(ctx context.Context, request *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := request.Params.URI
	escaped, kind, _ := strings.Cut(strings.TrimPrefix(uri, scheme), "/")
	node, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	_, wd, err := s.node(node)
	if err != nil {
		return nil, err
	}
	text, mime := "", "application/json"
	switch kind {
	case "report":
		text, err = reportOf(wd)
	case "manifest":
		text, err = manifest(wd)
	case "graph":
		mime = "image/svg+xml"
		text, err = picture(ctx, wd)
	default:
		return nil, sdk.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, err
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: mime, Text: text}}}, nil
}

func reportOf(wd *workdir.Dir) (string, error) {
	r, err := replica.Report(wd)
	if os.IsNotExist(err) {
		return "", fmt.Errorf("no replica was started: call start")
	}
	if err != nil {
		return "", err
	}
	return document(r)
}

func manifest(wd *workdir.Dir) (string, error) {
	m, err := wd.Manifest()
	if err != nil {
		return "", err
	}
	return document(m)
}

func document(v any) (string, error) {
	var text bytes.Buffer
	err := terminal.WriteJSON(&text, v)
	return text.String(), err
}

func picture(ctx context.Context, wd *workdir.Dir) (string, error) {
	g, err := graph.Node(ctx, wd)
	if err != nil {
		return "", err
	}
	g.Collapse(100)
	var text bytes.Buffer
	err = g.SVG(&text)
	return text.String(), err
}
