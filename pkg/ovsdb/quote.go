package ovsdb

import (
	"encoding/json"
	"strings"
)

// Quote returns a text as a string of JSON, as ovsdb-server writes it: without the escapes of &, < and > that encoding/json
// makes for HTML.
func Quote(text string) string {
	var quoted strings.Builder
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // writes a string into memory
	return strings.TrimSuffix(quoted.String(), "\n")
}
