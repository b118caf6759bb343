package conntrack

import "strings"

// parseKernel reads a line of conntrack(8) -L, with or without -o extended, or of /proc/net/nf_conntrack:
//
//	tcp 6 431999 ESTABLISHED src=A dst=B sport=1 dport=2 [UNREPLIED] src=B dst=A sport=2 dport=1 mark=0 zone=5 use=1
//
// Such a line shows neither labels nor whether another connection made the kernel expect this one. It has confirmed connections only.
func parseKernel(line string) (connection *Connection, ok bool) {
	words := strings.Fields(line)
	if len(words) > 2 && (words[0] == "ipv4" || words[0] == "ipv6") {
		words = words[2:]
	}
	if len(words) < 4 {
		return nil, false
	}
	number, ok := protocolNumber(words[1])
	if !ok || !strings.Contains(line, "src=") {
		return nil, false
	}
	connection = &Connection{Known: true, SeenReply: true, Unlabelled: true}
	var sides [2][]string // the words of the tuples
	at := -1
	for _, word := range words[2:] {
		name, value, found := strings.Cut(word, "=")
		switch {
		case !found:
			connection.setWord(number, word)
			continue
		case name == "src":
			at++
		}
		switch name {
		case "src", "dst", "sport", "dport", "type", "code":
			if at >= 0 && at < len(sides) {
				sides[at] = append(sides[at], word)
			}
		case "id": // of ICMP, behind its code, and with -o id that of the connection
			if at >= 0 && at < len(sides) && len(sides[at]) == 4 && (Tuple{Proto: number}).isICMP() {
				sides[at] = append(sides[at], word)
			}
		case "zone", "mark":
			if connection.set(number, name, value) != nil {
				return nil, false
			}
		case "zone-orig", "zone-reply", "orig-zone", "reply-zone":
			return nil, false // Open vSwitch has no zones of one direction
		}
	}
	for i, side := range []string{"orig", "reply"} {
		if connection.set(number, side, strings.Join(sides[i], ",")) != nil {
			return nil, false
		}
	}
	return connection, at == 1 && connection.isWhole()
}

// isWhole reports whether both directions have two addresses of one family.
func (c *Connection) isWhole() bool {
	for _, t := range []Tuple{c.Orig, c.Reply} {
		if !t.Src.IsValid() || !t.Dst.IsValid() || t.Src.Is4() != c.Orig.Src.Is4() || t.Dst.Is4() != c.Orig.Src.Is4() {
			return false
		}
	}
	return true
}

// setWord reads a word without a value: a state of TCP, by the names that dpctl/dump-conntrack has for those of the kernel
// (lib/netlink-conntrack.c), or a part of the status.
func (c *Connection) setWord(proto uint8, word string) {
	switch {
	case word == "[UNREPLIED]":
		c.SeenReply = false
	case proto != 6:
	case word == "[OFFLOAD]", word == "[HW_OFFLOAD]": // what a flow table forwards is established
		c.OrigState, c.ReplyState = established, established
	case strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_2") == "" && word != "":
		names := map[string]string{"NONE": "CLOSED", "CLOSE": "CLOSED", "SYN_SENT2": "SYN_SENT", "FIN_WAIT": "FIN_WAIT_1"}
		state, renamed := names[word]
		if !renamed {
			state = intern(word)
		}
		c.OrigState, c.ReplyState = state, state
	}
}

// isBanner reports whether a line is what conntrack(8) prints about its list.
func isBanner(line string) bool {
	return strings.HasPrefix(line, "conntrack v") && strings.Contains(line, "flow entries")
}
