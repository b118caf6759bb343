package restore

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"

	"ovs-offline/replica/report"
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
	return true, eachLineOf(f, do)
}

// eachLineOf calls do for every line of a text.
func eachLineOf(text io.Reader, do func(line string) error) error {
	r := bufio.NewReaderSize(text, longest)
	for inside := false; ; { // of a line that is too long
		line, err := r.ReadSlice('\n')
		whole := !inside && !errors.Is(err, bufio.ErrBufferFull)
		inside = errors.Is(err, bufio.ErrBufferFull)
		if whole && len(line) > 0 {
			if err := do(strings.TrimRight(string(line), "\r\n")); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !inside {
			return err
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

// strangers are things that a record tells of and the database doesn't have. A
// record can be a million lines of them: they are counted, and the first is named.
type strangers struct {
	count int
	first string
}

func (s *strangers) add(name string) {
	if s.count++; s.count == 1 {
		s.first = name
	}
}

// tell says that there are some.
func (s *strangers) tell(o *report.Outcome, record, what string) {
	if s.count > 0 {
		o.Note(report.Failed, "%s tells of %d %s that the database does not have; the first: %q", record, s.count, what, s.first)
	}
}

// portNames are the ports that the database has, and the interfaces of each; nil
// stands for whatever may be there.
type portNames map[string]map[string]bool

func (n *Node) portNames() portNames {
	ports := portNames{}
	for _, b := range n.Bridges {
		for _, p := range b.Ports {
			ports[p.Name] = map[string]bool{}
			for _, i := range p.Interfaces {
				ports[p.Name][i.Name] = true
			}
		}
	}
	return ports
}

func (p portNames) has(port string) bool { return p == nil || p[port] != nil }

func (p portNames) hasMember(port, member string) bool { return p == nil || p[port][member] }
