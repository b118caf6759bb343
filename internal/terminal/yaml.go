package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"

	"ovs-offline/internal/lazyregexp"
)

var jsonString = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)

// WriteYAML writes a value as YAML that is safe for a terminal, with the field names
// of its JSON. YAML has escapes only inside double quotes, and the encoder chooses the
// quotes: it prints U+2028 as it is, where YAML 1.1 breaks a line. So while the value is encoded, a placeholder replaces each string that needs an
// escape. Placeholders contain U+E000, which is unprintable, so no other encoded string
// contains it.
func WriteYAML(w io.Writer, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var quoted []string // placeholders, each followed by the quoted string that it replaces
	raw = jsonString.ReplaceAllFunc(raw, func(literal []byte) []byte {
		var text string
		if json.Unmarshal(literal, &text) != nil || !strings.ContainsFunc(text, unprintable) {
			return literal
		}
		placeholder := fmt.Sprintf("\ue000%d\ue000", len(quoted))
		quoted = append(quoted, placeholder, strconv.Quote(text)) // YAML has all of Go's escapes
		return []byte(`"` + placeholder + `"`)
	})
	out, err := yaml.JSONToYAML(raw)
	if err != nil {
		return err
	}
	_, err = strings.NewReplacer(quoted...).WriteString(w, string(out))
	return err
}

// unprintable reports whether YAML has to escape a character.
func unprintable(char rune) bool { return char != '\n' && char != '\t' && !unicode.IsPrint(char) }
