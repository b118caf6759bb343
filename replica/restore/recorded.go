package restore

import (
	"bufio"
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
