// Package trace compares the output of ofproto/trace on a live switch with the
// output on a replica. It ignores exactly the differences that occur between two
// runs of one switch; see Normalise.
package trace

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"ovs-offline/pkg/openflow/odp"
)

// Packet holds the arguments of one ofproto/trace.
type Packet struct {
	Bridge  string
	Options []string // --ct-next ...
	Flow    string
}

// Args returns the arguments of ovs-appctl that trace the packet.
func (p Packet) Args() []string {
	return append([]string{"ofproto/trace", "--names", p.Bridge, p.Flow}, p.Options...)
}

// ReadPackets reads a list of packets, one per line: bridge|options|flow. Lines that
// begin with # are comments.
func ReadPackets(r io.Reader) ([]Packet, error) {
	var list []Packet
	scanner := bufio.NewScanner(r)
	for n := 1; scanner.Scan(); n++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(line, "|", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("line %d is not bridge|options|flow: %q", n, line)
		}
		list = append(list, Packet{Bridge: strings.TrimSpace(parts[0]), Options: strings.Fields(parts[1]), Flow: strings.TrimSpace(parts[2])})
	}
	return list, scanner.Err()
}

var (
	recirc = regexp.MustCompile(`\b(recirc\(|recirc_id=|recirc_id\()(0x[0-9a-f]+|[0-9]+)`)
	pid    = regexp.MustCompile(`\bpid=[0-9]+`)
	meter  = regexp.MustCompile(`\bmeter\([0-9]+\)`)
)

// Normalise returns the lines of a trace in a form that is the same for two runs of
// one switch. It numbers recirculation ids in order of appearance, removes upcall
// pids and datapath meter ids, writes dec_ttl() as dec_ttl, and sorts the outputs of
// a flood.
func Normalise(text string) []string {
	ids := map[uint64]string{}
	flood, flow := odp.Floods(text), ""
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n")
		if strings.HasPrefix(line, "#") {
			continue // a comment of `lab oracle`
		}
		line = recirc.ReplaceAllStringFunc(line, func(found string) string {
			m := recirc.FindStringSubmatch(found)
			id, _ := strconv.ParseUint(m[2], 0, 64)
			if id != 0 && ids[id] == "" {
				ids[id] = "R" + strconv.Itoa(len(ids)+1)
			}
			return m[1] + ids[id]
		})
		line = pid.ReplaceAllString(line, "pid=N")
		line = meter.ReplaceAllString(line, "meter(N)")
		line = strings.ReplaceAll(line, "dec_ttl()", "dec_ttl")
		if strings.HasPrefix(line, "Flow: ") {
			flow = line
		}
		if actions, ok := strings.CutPrefix(line, "Datapath actions: "); ok && flood {
			line = "Datapath actions: " + odp.FloodOutputs(odp.SortOutputs(actions), flow)
		} else if ok {
			line = "Datapath actions: " + odp.SortOutputs(actions)
		}
		lines = append(lines, line)
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Comparison is the result of comparing two traces.
type Comparison struct {
	Whole   bool   // every line is equal
	Results bool   // every "Final flow", "Megaflow" and "Datapath actions" line is equal
	Actions bool   // every "Datapath actions" line is equal
	Refused bool   // the live trace is an error message: it has no "Datapath actions"
	Equal   int    // length of the longest common subsequence of lines
	Lines   int    // lines of the live trace
	First   string // the first line that differs, of both traces
}

// Compare compares a trace of the live switch with one of the replica.
func Compare(live, replica string) Comparison {
	a, b := Normalise(live), Normalise(replica)
	c := Comparison{Lines: len(a), Equal: common(a, b)}
	c.Whole = c.Equal == len(a) && len(a) == len(b)
	c.Results = equal(pick(a, "Final flow: ", "Megaflow: ", "Datapath actions: "), pick(b, "Final flow: ", "Megaflow: ", "Datapath actions: "))
	c.Actions = equal(pick(a, "Datapath actions: "), pick(b, "Datapath actions: "))
	c.Refused = len(pick(a, "Datapath actions: ")) == 0
	c.First = firstDifference(a, b)
	return c
}

func pick(lines []string, prefixes ...string) []string {
	var out []string
	for _, l := range lines {
		for _, p := range prefixes {
			if strings.HasPrefix(l, p) {
				out = append(out, l)
			}
		}
	}
	return out
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// common returns the length of the longest common subsequence of lines.
func common(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

func firstDifference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		x, y := "(nothing)", "(nothing)"
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return "live:    " + x + "\nreplica: " + y
		}
	}
	return ""
}
