package ovsdb

import (
	"crypto/sha1"
	"fmt"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// TableWords returns the name of a table in words: "forwarding group".
func TableWords(table string) string { return strings.ToLower(strings.ReplaceAll(table, "_", " ")) }

// UUIDOf makes a UUID of a text: the same one for the same text.
func UUIDOf(text string) string {
	id := fmt.Sprintf("%x", sha1.Sum([]byte(text)))
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:32]}, "-")
}

// IsTableName reports whether a text can be the name of a table: an <id> of RFC 7047, 3.1.
func IsTableName(text string) bool { return idText.MatchString(text) }

var idText = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
