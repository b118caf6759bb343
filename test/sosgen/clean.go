package sosgen

import (
	"regexp"
	"strings"
)

// Cleaner replaces names and addresses all through a text, as `sos clean` does.
type Cleaner struct{ hosts *strings.Replacer }

// NewCleaner makes one that knows the node's name.
func (n *Node) NewCleaner() Cleaner {
	return Cleaner{strings.NewReplacer(n.Host, "host0")}
}

var (
	// sos gives every MAC address but broadcast this beginning.
	macAddress = regexp.MustCompile(`\b(fa:16:3e|0a:58:0a|02:42:ac|52:54:00)(:[0-9a-f]{2}){3}\b`)
	// Networks stay networks: only their first two octets change, and their length in the text.
	ipAddress = regexp.MustCompile(`\b(192\.168|172\.24|172\.18|10\.120|10\.244)(\.[0-9]+\.[0-9]+)\b`)
)

// Clean returns the text with other names and addresses, mostly of another length.
func (c Cleaner) Clean(text []byte) []byte {
	networks := map[string]string{"192.168": "100.0", "172.24": "101.0", "172.18": "102.0", "10.120": "103.0", "10.244": "104.0"}
	text = macAddress.ReplaceAllFunc(text, func(mac []byte) []byte {
		return append([]byte("53:4f:53"), mac[8:]...)
	})
	text = ipAddress.ReplaceAllFunc(text, func(ip []byte) []byte {
		m := ipAddress.FindSubmatch(ip)
		return append([]byte(networks[string(m[1])]), m[2]...)
	})
	return []byte(c.hosts.Replace(string(text)))
}

// Cleaned is a report after `sos clean`: each text rewritten, the databases
// among them, whose records are then longer or shorter than they say.
func (c Cleaner) Cleaned(report Tree) Tree {
	out := Tree{}
	for name, f := range report {
		out[string(c.Clean([]byte(name)))] = File{Body: c.Clean(f.Body), Link: string(c.Clean([]byte(f.Link)))}
	}
	return out
}
