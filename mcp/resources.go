package mcp

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/answer/graph"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
	"ovs-offline/workdir"
)

// scheme is the beginning of the URI of every resource.
const scheme = "ovs-offline://nodes/"

// schemas is the beginning of the URI of the schema of each tool's document.
const schemas = "ovs-offline://schemas/"

// kind is a kind of resource that each node has.
type kind struct{ name, mime, description string }

func kinds() []kind {
	return []kind{
		{"report", "application/json", "How faithful the replica of a node is, whole"},
		{"graph", "image/svg+xml", "A picture of the bridges, ports and tunnels of a node"},
		{"manifest", "application/json", "What was collected of a node, and from where"},
	}
}

// resourceURI returns the URI of a resource of a node.
func resourceURI(node, kind string) string { return scheme + url.PathEscape(node) + "/" + kind }

func resourcesOf(node string) (uris []string) {
	for _, kind := range kinds() {
		uris = append(uris, resourceURI(node, kind.name))
	}
	return uris
}

// resources are documents about the nodes.
type resources struct{ nodes }

func (r resources) add(t *toolbox) {
	for _, kind := range kinds() {
		t.server.AddResourceTemplate(&sdk.ResourceTemplate{Name: kind.name, URITemplate: scheme + "{node}/" + kind.name, MIMEType: kind.mime, Description: kind.description}, r.read)
	}
	t.server.AddResourceTemplate(&sdk.ResourceTemplate{Name: "schema", URITemplate: schemas + "{tool}", MIMEType: "application/schema+json", Description: "The JSON schema of the document that a tool returns"}, t.readSchema)
}

// list returns the resources of all nodes.
func (r resources) list(ctx context.Context) *sdk.ListResourcesResult {
	list := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}}
	all, err := r.choose(ctx, nil)
	if err != nil {
		return list // no node was collected yet
	}
	for _, node := range all.Nodes() {
		for _, kind := range kinds() {
			name := terminal.Escape(node.FolderName()) + " " + kind.name
			list.Resources = append(list.Resources, &sdk.Resource{Name: name, URI: resourceURI(node.FolderName(), kind.name), MIMEType: kind.mime})
		}
	}
	return list
}

// read returns a resource of a node.
func (r resources) read(ctx context.Context, request *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := request.Params.URI
	escaped, kind, _ := strings.Cut(strings.TrimPrefix(uri, scheme), "/")
	name, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	_, wd, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	text, mime := "", "application/json"
	switch kind {
	case "report":
		text, err = reportText(wd)
	case "manifest":
		text, err = manifestText(wd)
	case "graph":
		mime = "image/svg+xml"
		text, err = drawNode(ctx, wd)
	default:
		return nil, sdk.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, err
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: mime, Text: text}}}, nil
}

// readSchema returns the schema of a tool's document.
func (t *toolbox) readSchema(_ context.Context, request *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := request.Params.URI
	document := t.documents[strings.TrimPrefix(uri, schemas)]
	if document == nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	found, err := schema(document)
	if err != nil {
		return nil, err
	}
	text, err := jsonText(found)
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "application/schema+json", Text: text}}}, err
}

func reportText(wd *workdir.Dir) (string, error) {
	found, err := replica.Report(wd)
	if errors.Is(err, replica.ErrNoReport) {
		return "", errors.New("no replica was started: call start")
	}
	if err != nil {
		return "", err
	}
	return jsonText(found)
}

func manifestText(wd *workdir.Dir) (string, error) {
	manifest, err := wd.Manifest()
	if err != nil {
		return "", err
	}
	return jsonText(manifest)
}

func jsonText(value any) (string, error) {
	var text bytes.Buffer
	err := terminal.WriteJSON(&text, value)
	return text.String(), err
}

func drawNode(ctx context.Context, wd *workdir.Dir) (string, error) {
	drawn, err := graph.Node(ctx, wd)
	if err != nil {
		return "", err
	}
	drawn.Collapse(100)
	var text bytes.Buffer
	err = drawn.SVG(&text)
	return text.String(), err
}
