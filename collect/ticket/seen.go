package ticket

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
)

// Seen is an output of Open vSwitch or OVN of which nothing can be made: it lacks what it does not print of its rows.
type Seen struct {
	Host    string
	Line    int    // of the command, or of the first row, from 1
	Command string // "ovn-nbctl acl-list"
	Instead string // what has all of the rows
	counts  []count
	part    bool // it prints some rows or some columns of a table
	form    bool // its form is not read
}

// count is how many rows of a kind an output has.
type count struct {
	noun string
	rows int
}

// String says what the output is, what it has, and what to give instead.
func (s Seen) String() string {
	project := "Open vSwitch"
	if strings.HasPrefix(s.Command, "ovn-") {
		project = "OVN"
	}
	text := fmt.Sprintf("line %d: `%s` of %s", s.Line, s.Command, project)
	if len(s.counts) > 0 {
		var rows []string
		for _, c := range s.counts {
			rows = append(rows, phrase.Count(c.rows, c.noun))
		}
		text += " (" + strings.Join(rows, ", ") + ")"
	}
	return text + ": " + s.why() + ": give " + s.Instead
}

// why returns why nothing can be made of the output.
func (s Seen) why() string {
	switch {
	case s.form:
		return "it is not in a form that tells rows apart and has the names of their columns"
	case s.part:
		return "it prints some of the rows, or some of their columns"
	}
	return "it does not print whole rows"
}

// summary is an output that prints a part of each row in a form of its own.
type summary struct {
	command string
	instead string
	// row returns what a line of the output is a row of, "" for another line.
	row func(line string) (noun string)
}

// summaries are the outputs that people paste of OVN (ovn-nbctl(8), ovn-sbctl(8)).
func summaries() []summary {
	const nb, sb = ", or the OVN NB database", ", or the OVN SB database"
	return []summary{
		{"ovn-nbctl show", "ovn-nbctl list TABLE of Logical_Switch, Logical_Switch_Port, Logical_Router, Logical_Router_Port and NAT" + nb, rowOfNetwork},
		{"ovn-sbctl show", "ovn-sbctl list TABLE of Chassis, Encap, Datapath_Binding and Port_Binding" + sb, rowOfChassis},
		{"ovn-nbctl lr-route-list", "ovn-nbctl list Logical_Router_Static_Route and list Logical_Router" + nb, rowOfRoutes},
		{"ovn-nbctl lr-nat-list", "ovn-nbctl list NAT and list Logical_Router" + nb, rowOfNAT},
		{"ovn-nbctl lb-list", "ovn-nbctl list Load_Balancer" + nb, rowOfBalancers},
		{"ovn-nbctl ls-lb-list", "ovn-nbctl list Load_Balancer and list Logical_Switch" + nb, nil},
		{"ovn-nbctl lr-lb-list", "ovn-nbctl list Load_Balancer and list Logical_Router" + nb, nil},
		{"ovn-nbctl acl-list", "ovn-nbctl list ACL and list Logical_Switch (or Port_Group)" + nb, rowOfACLs},
		{"ovn-nbctl qos-list", "ovn-nbctl list QoS and list Logical_Switch" + nb, rowOfQoS},
		{"ovn-nbctl ls-list", "ovn-nbctl list Logical_Switch" + nb, nil},
		{"ovn-nbctl lsp-list", "ovn-nbctl list Logical_Switch_Port and list Logical_Switch" + nb, nil},
		{"ovn-nbctl lr-list", "ovn-nbctl list Logical_Router" + nb, nil},
		{"ovn-nbctl lrp-list", "ovn-nbctl list Logical_Router_Port and list Logical_Router" + nb, nil},
		{"ovn-nbctl lr-policy-list", "ovn-nbctl list Logical_Router_Policy and list Logical_Router" + nb, nil},
		{"ovn-nbctl dhcp-options-list", "ovn-nbctl list DHCP_Options" + nb, nil},
		{"ovn-nbctl pg-list", "ovn-nbctl list Port_Group" + nb, nil},
		{"ovn-nbctl meter-list", "ovn-nbctl list Meter and list Meter_Band" + nb, nil},
		{"ovn-nbctl find", "ovn-nbctl list TABLE" + nb, nil},
		{"ovn-nbctl list", "ovn-nbctl list TABLE, without --bare" + nb, nil},
		{"ovn-nbctl get", "ovn-nbctl list TABLE" + nb, nil},
		{"ovn-sbctl find", "ovn-sbctl list TABLE" + sb, nil},
		{"ovn-sbctl list", "ovn-sbctl list TABLE, without --bare" + sb, nil},
		{"ovn-sbctl get", "ovn-sbctl list TABLE" + sb, nil},
		{"ovs-vsctl find", "ovs-vsctl list TABLE, or conf.db", nil},
		{"ovs-vsctl list", "ovs-vsctl list TABLE, without --bare, or conf.db", nil},
		{"ovs-vsctl get", "ovs-vsctl list TABLE, or conf.db", nil},
		{"ovs-vsctl list-br", "ovs-vsctl show", nil},
		{"ovs-vsctl list-ports", "ovs-vsctl show", nil},
		{"ovs-vsctl list-ifaces", "ovs-vsctl show", nil},
	}
}

const uuid = `[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`

var (
	networkRow = lazyregexp.New(`^(switch|router) ` + uuid + `(?: \(|$)`)
	rulesRow   = lazyregexp.New(`^(?:from|to)-lport +\d+ \(.*\) +(\S+)`)
	natRow     = lazyregexp.New(`^(?:snat|dnat|dnat_and_snat) +.*[0-9a-f][.:][0-9a-f]`)
	routeRow   = lazyregexp.New(`^[0-9a-fA-F.:]+(?:/\d+)? +(?:[0-9a-fA-F.:]+|discard) +(?:dst-ip|src-ip)(?: |$)`)
	vipRow     = lazyregexp.New(`^` + uuid + ` +(?:\S+ +){1,2}[0-9a-fA-F.:\[\]]*[.:][0-9a-fA-F.:\[\]]+(?: |$)`)
)

// rowOfNetwork reads a line of ovn-nbctl show.
func rowOfNetwork(line string) string {
	if match := networkRow.FindStringSubmatch(line); match != nil {
		return match[1]
	}
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case word == "port" && rest != "" && !strings.HasSuffix(line, ":"):
		return "port"
	case word == "nat" && len(rest) == 36:
		return "NAT rule"
	}
	return ""
}

// rowOfChassis reads a line of ovn-sbctl show.
func rowOfChassis(line string) string {
	switch name, value, _ := strings.Cut(line, " "); {
	case name == "Chassis" && value != "" && !strings.Contains(value, " "):
		return "chassis"
	case name == "Port_Binding" && value != "" && !strings.Contains(value, " "):
		return "port binding"
	}
	return ""
}

func rowOfRoutes(line string) string { return when(routeRow.MatchString(line), "route") }

func rowOfNAT(line string) string { return when(natRow.MatchString(line), "NAT rule") }

// rowOfBalancers reads a line of ovn-nbctl lb-list with the name and the first VIP of a load balancer.
func rowOfBalancers(line string) string {
	return when(vipRow.MatchString(line), "load balancer")
}

func rowOfACLs(line string) string {
	match := rulesRow.FindStringSubmatch(line)
	return when(match != nil && !strings.Contains(match[1], "="), "ACL")
}

func rowOfQoS(line string) string {
	match := rulesRow.FindStringSubmatch(line)
	return when(match != nil && strings.Contains(match[1], "="), "QoS rule")
}

func when(holds bool, noun string) string {
	if holds {
		return noun
	}
	return ""
}

// summaryOf returns the summary that the words of a command line print, nil for another command.
func summaryOf(list []summary, line string) *summary {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	tool := words[0][strings.LastIndexByte(words[0], '/')+1:]
	if i := strings.LastIndexByte(tool, '.'); i >= 0 { // of a snap
		tool = tool[i+1:]
	}
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "-") || strings.ContainsAny(word, "/:") {
			continue
		}
		if i := slices.IndexFunc(list, func(s summary) bool { return s.command == tool+" "+word }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// maxSeen bounds the outputs that are named.
const maxSeen = 50

// see notes the command line of a summary.
func (s *splitter) see(c command) {
	if found := summaryOf(s.summaries, c.unread); found != nil && len(s.seen) < maxSeen {
		seen := Seen{Host: c.host, Line: s.line, Command: found.command, Instead: found.instead}
		if _, name, _ := strings.Cut(found.command, " "); slices.Contains([]string{"find", "list", "get"}, name) {
			seen.Command, seen.part = phrase.Shorten(c.unread, 100), true
		}
		s.seen = append(s.seen, seen)
	} else if len(s.unread) < maxUnread && !slices.Contains(s.unread, c.unread) {
		s.unread = append(s.unread, c.unread)
	}
}

// addSeen counts a line of a summary, whose command line need not be in the text.
func (s *splitter) addSeen(line string) {
	line = strings.TrimLeft(line, " \t")
	if len(line) < 8 || len(line) > maxCommand || !strings.Contains("sr0123456789abcdefCPtf", line[:1]) {
		return
	}
	for _, one := range s.summaries {
		if one.row == nil || strings.HasSuffix(one.command, " show") { // which is read by its shape
			continue
		}
		noun := one.row(line)
		if noun == "" {
			continue
		}
		last := len(s.seen) - 1
		if last < 0 || s.seen[last].Command != one.command {
			if len(s.seen) == maxSeen {
				return
			}
			s.seen = append(s.seen, Seen{Host: s.host, Line: s.line, Command: one.command, Instead: one.instead})
			last++
		}
		s.seen[last].add(noun)
		return
	}
}

func (s *Seen) add(noun string) {
	i := slices.IndexFunc(s.counts, func(c count) bool { return c.noun == noun })
	if i < 0 {
		s.counts = append(s.counts, count{noun, 0})
		i = len(s.counts) - 1
	}
	s.counts[i].rows++
}
