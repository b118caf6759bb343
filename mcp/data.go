package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/internal/terminal"
)

// dataError is an error for an assistant. Its text, which may quote a report or the caller, is escaped and said to be data.
type dataError struct{ error }

// Error implements error.
func (e dataError) Error() string { return asData(e.error.Error()) }

// Unwrap returns the cause, which has the code of JSON-RPC.
func (e dataError) Unwrap() error { return e.error }

// asData escapes the text of an error and adds the notice.
func asData(text string) string { return terminal.EscapeLines(text) + "\n" + notice }

// markData adds the notice to errors and resources, and escapes the texts of errors. A Result has it already.
func markData(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, request)
		if err != nil {
			return result, dataError{err}
		}
		switch result := result.(type) {
		case *sdk.CallToolResult:
			for _, content := range result.Content {
				if text, ok := content.(*sdk.TextContent); ok && result.IsError {
					text.Text = asData(text.Text)
				}
			}
		case *sdk.ReadResourceResult:
			result.Contents = append(result.Contents, &sdk.ResourceContents{URI: result.Contents[0].URI, MIMEType: "text/plain", Text: notice})
		}
		return result, nil
	}
}
