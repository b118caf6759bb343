package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

var (
	jsonString  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	placeholder = regexp.MustCompile("\ue000([0-9]+)\ue000")
)

// WriteYAML writes v as YAML that is safe for a terminal, with the field names
// of its JSON. YAML has escapes between double quotes only, and the encoder
// chooses the quotes: strings that need an escape pass it as placeholders. These
// contain U+E000, which is unprintable, so that no other string has it.
func WriteYAML(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var quoted []string
	raw = jsonString.ReplaceAllFunc(raw, func(text []byte) []byte {
		if !bytes.ContainsFunc(text, unprintable) {
			return text
		}
		quoted = append(quoted, escapeYAML(string(text)))
		return fmt.Appendf(nil, "\"\ue000%d\ue000\"", len(quoted)-1)
	})
	out, err := yaml.JSONToYAML(raw)
	if err != nil {
		return err
	}
	out = placeholder.ReplaceAllFunc(out, func(text []byte) []byte {
		i, err := strconv.Atoi(string(bytes.Trim(text, "\ue000")))
		if err != nil || i >= len(quoted) {
			return text // not reached: the numbers are those from above
		}
		return []byte(quoted[i])
	})
	_, err = w.Write(out)
	return err
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// escapeYAML escapes the unprintable runes of a JSON string literal, which is a
// double-quoted YAML scalar as well.
func escapeYAML(literal string) string {
	var b strings.Builder
	for _, r := range literal {
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, "\\U%08x", r)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
