package restore

import (
	"bufio"
	"strconv"
	"strings"
)

// eachLine calls do for every line of a recorded file; ok is false where there is none.
func (n *Node) eachLine(path string, do func(line string) error) (ok bool, err error) {
	f, ok, err := n.recorded(path)
	if !ok {
		return false, err
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if err := do(strings.TrimRight(scanner.Text(), "\r")); err != nil {
			return true, err
		}
	}
	return true, scanner.Err()
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
