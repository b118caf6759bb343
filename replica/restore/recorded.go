package restore

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

// longest is what a line of a recorded file may have: a longer one is none that
// a command prints, and is passed over.
const longest = 1 << 20

// eachLine calls do for every line of a recorded file; ok is false where there is none.
func (n *Node) eachLine(path string, do func(line string) error) (ok bool, err error) {
	f, ok, err := n.recorded(path)
	if !ok {
		return false, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, longest)
	for inside := false; ; { // of a line that is too long
		line, err := r.ReadSlice('\n')
		whole := !inside && !errors.Is(err, bufio.ErrBufferFull)
		inside = errors.Is(err, bufio.ErrBufferFull)
		if whole && len(line) > 0 {
			if err := do(strings.TrimRight(string(line), "\r\n")); err != nil {
				return true, err
			}
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil && !inside {
			return true, err
		}
	}
}

// listed reads one column of a recorded "ovs-vsctl list", by the rows' names;
// nil where there is none.
func (n *Node) listed(record, column string) (map[string]string, error) {
	values := map[string]string{}
	value, name := "", ""
	keep := func() {
		if name != "" {
			values[name] = value
		}
		value, name = "", ""
	}
	ok, err := n.eachLine(n.Workdir.Recorded(record), func(line string) error {
		key, text, found := strings.Cut(line, ":")
		text = strings.TrimSpace(text)
		switch strings.TrimSpace(key) {
		case "_uuid":
			keep()
		case "name":
			name = text
			if bare, err := strconv.Unquote(text); err == nil {
				name = bare
			}
		case column:
			value = text
		}
		if !found && line == "" {
			keep()
		}
		return nil
	})
	keep()
	if !ok || err != nil {
		return nil, err
	}
	return values, nil
}
