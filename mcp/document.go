package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"ovs-offline/answer/reach"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/terminal"
	"ovs-offline/pkg/openflow"
)

// encode returns a value as JSON on one line.
func encode(value any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(text.String(), "\n"), err
}

// opener decodes a document whose texts come from outside: it escapes them, and takes the rows out of the lists with some names.
type opener struct {
	names []string // "" for the document itself
	rows  *chooser // where rows go
	lists []list   // of rows, in the order in which they were found
	whole map[string]any
}

// list is a place of rows in a document.
type list struct {
	in  map[string]any
	key string
}

// put decodes JSON as the value of a key.
func (o *opener) put(in map[string]any, key string, raw json.RawMessage) {
	if !slices.Contains(o.names, key) || raw[0] != '[' && raw[0] != 'n' {
		in[terminal.Escape(key)] = o.open(raw)
		return
	}
	in[key] = []any{}
	var rows []json.RawMessage
	_ = json.Unmarshal(raw, &rows) // the JSON is our own
	for _, text := range rows {
		o.rows.take(row{len(o.lists), string(text)}, safeRow)
	}
	o.lists = append(o.lists, list{in, key})
}

// open decodes JSON. Numbers stay as they are.
func (o *opener) open(raw json.RawMessage) any {
	switch raw[0] {
	case '"':
		var text string
		_ = json.Unmarshal(raw, &text)
		return terminal.Escape(text)
	case '[':
		var elements []json.RawMessage
		_ = json.Unmarshal(raw, &elements)
		opened := make([]any, len(elements))
		for i, element := range elements {
			opened[i] = o.open(element)
		}
		return opened
	case '{':
		var fields map[string]json.RawMessage
		_ = json.Unmarshal(raw, &fields)
		opened := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			o.put(opened, key, fields[key])
		}
		return opened
	}
	return raw
}

// place puts rows back into their lists.
func (o *opener) place(rows []row) {
	for _, row := range rows {
		at := o.lists[row.list]
		at.in[at.key] = append(at.in[at.key].([]any), row)
	}
}

// safeRow returns a row, which is JSON, escaped and of at most maxLine bytes.
func safeRow(text string) string {
	if len(text) <= maxLine && terminal.Escape(text) == text && !escapes.MatchString(text) {
		return text
	}
	opened := map[string]any{"": (&opener{}).open(json.RawMessage(text))}
	shorten(opened, maxLine)
	text, _ = encode(opened[""])
	return text
}

// shorten cuts lists and texts in a document until it has at most so many bytes, and returns what it cut.
func shorten(document map[string]any, most int) (cut string) {
	for length := 64; ; length /= 2 {
		text, _ := encode(document)
		if len(text) <= most || length == 0 {
			return cut
		}
		cutAll(document, length)
		cut = fmt.Sprintf("lists of the document are cut after %d elements", length)
	}
}

// cutAll returns a value whose lists have at most so many elements, and whose texts and tables are short in proportion. Rows, which
// were chosen, stay.
func cutAll(value any, length int) any {
	const texts, keys = 128, 64
	switch value := value.(type) {
	case string:
		if len(value) > texts*length {
			return strings.ToValidUTF8(value[:texts*length], "") + "... (cut)"
		}
	case []any:
		short := []any{}
		for i, element := range value {
			if i < length || hasRow(element) {
				short = append(short, cutAll(element, length))
			}
		}
		return short
	case map[string]any:
		for i, key := range slices.Sorted(maps.Keys(value)) {
			if value[key] = cutAll(value[key], length); i >= keys*length {
				delete(value, key)
			}
		}
	}
	return value
}

// hasRow reports whether a part of a document has rows.
func hasRow(value any) bool {
	switch value := value.(type) {
	case row:
		return true
	case []any:
		return slices.ContainsFunc(value, hasRow)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(value)), hasRow)
	}
	return false
}

// schema returns the JSON schema of the document of a tool.
func schema(document reflect.Type) (*jsonschema.Schema, error) {
	text := &jsonschema.Schema{Type: "string"}
	packet := &jsonschema.Schema{Type: "object", Description: "an answer about a packet: what the tool trace returns"}
	return jsonschema.ForType(document, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[netip.Addr](): text,
		reflect.TypeFor[reach.Port](): text, reflect.TypeFor[openflow.Version](): text, reflect.TypeFor[answer.Answer](): packet,
	}})
}

// traced is an answer whose schema does not describe its replies, which are answers too: the type would have no end.
type traced answer.Answer
