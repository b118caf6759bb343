package logicalflows

import (
	"bufio"
	"io"
)

// A mark is a comment in OVN's language of matches and actions (lib/lex.c). It starts
// with a blank, so that it does not continue a token, and it can't end a comment or a
// string that the text leaves open.
const (
	markBegin   = " //ovs-offline:"
	markPattern = markBegin + `([0-9a-f-]{36})`
	uuidLength  = 36
)

// marker writes what ovsdb-server sends, and adds to the matches and the actions of
// logical flows a mark with the flow's UUID. It leaves only the first datapath in a group
// of datapaths. It follows the nesting of the JSON text, and changes nothing else.
//
// Rows are at TABLE, UUID, "initial" (or "insert", "new": ovsdb-server(7), 4.1.14 and
// RFC 7047, 4.1.6), COLUMN, below the reply's own members.
type marker struct {
	out      *bufio.Writer
	flows    int     // that have passed
	levels   []level // the open objects and lists, the innermost last
	inString bool
	escaped  bool // the last byte was a backslash in a string
	skipping int  // number of open objects and lists at the end of the elements to skip; 0 for none
}

// level is an open object or list.
type level struct {
	list  bool
	value bool   // the key is complete, and its value follows
	key   []byte // the latest key of an object, up to maxKey bytes
}

// maxKey is longer than all keys that are looked for.
const maxKey = 64

func newMarker(to io.Writer) *marker { return &marker{out: bufio.NewWriterSize(to, 1<<16)} }

// Write implements io.Writer.
func (m *marker) Write(text []byte) (int, error) {
	for _, char := range text {
		if m.inString {
			m.stringByte(char)
		} else {
			m.structureByte(char)
		}
		if m.skipping == 0 {
			_ = m.out.WriteByte(char) // Flush returns its error
		}
	}
	return len(text), m.out.Flush()
}

func (m *marker) stringByte(char byte) {
	switch {
	case m.escaped:
		m.escaped = false
	case char == '\\':
		m.escaped = true
	case char == '"':
		m.inString = false
		m.endString()
		return
	}
	if top := m.top(); !top.list && !top.value && len(top.key) < maxKey {
		top.key = append(top.key, char)
	}
}

// endString is called at the closing quote of a string, before it is written.
func (m *marker) endString() {
	top := m.top()
	switch {
	case top.list:
	case top.value:
		if uuid := m.row("Logical_Flow", 1); uuid != nil && (string(top.key) == "match" || string(top.key) == "actions") {
			_, _ = m.out.WriteString(markBegin) // Flush returns their error
			_, _ = m.out.Write(uuid)
		}
	case len(top.key) == uuidLength && string(m.key(1)) == "Logical_Flow":
		m.flows++
	}
}

func (m *marker) structureByte(char byte) {
	switch char {
	case '"':
		m.inString = true
		if top := m.top(); !top.value {
			top.key = top.key[:0]
		}
	case '{', '[':
		m.push(char == '[')
	case '}', ']':
		if m.skipping == len(m.levels) {
			m.skipping = 0
		}
		m.levels = m.levels[:max(0, len(m.levels)-1)]
	case ':':
		m.top().value = true
	case ',':
		m.top().value = false
		if m.inGroup() && m.skipping == 0 {
			m.skipping = len(m.levels)
		}
	}
}

// inGroup reports whether the innermost list holds the datapaths of a group:
// {"datapaths": ["set", [["uuid", UUID], ...]]}.
func (m *marker) inGroup() bool {
	n := len(m.levels)
	return n > 2 && m.levels[n-1].list && m.levels[n-2].list && string(m.key(2)) == "datapaths" && m.row("Logical_DP_Group", 3) != nil
}

// row returns the UUID of the row of the table that holds the innermost level; nil if
// no row of that table does. depth is the distance of the object that holds the row.
func (m *marker) row(table string, depth int) []byte {
	uuid := m.key(depth + 1)
	if string(m.key(depth+2)) != table || len(uuid) != uuidLength {
		return nil
	}
	return uuid
}

// key returns the latest key of the object that is depth levels above the innermost
// level, nil for a list.
func (m *marker) key(depth int) []byte {
	if at := len(m.levels) - 1 - depth; at >= 0 && !m.levels[at].list {
		return m.levels[at].key
	}
	return nil
}

// push opens a level. It reuses the memory of the level that was there before.
func (m *marker) push(list bool) {
	n := len(m.levels)
	if n < cap(m.levels) {
		m.levels = m.levels[:n+1]
		m.levels[n] = level{list: list, key: m.levels[n].key[:0]}
		return
	}
	m.levels = append(m.levels, level{list: list})
}

// top returns the innermost level, or an unused one outside of all levels.
func (m *marker) top() *level {
	if len(m.levels) == 0 {
		return &level{list: true}
	}
	return &m.levels[len(m.levels)-1]
}
