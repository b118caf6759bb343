package rules

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
	"ovs-offline/workdir"
)

// expiresSoon is how long a certificate has to be valid after the node was recorded.
const expiresSoon = 30 * 24 * time.Hour

// certificateExpiry finds the certificates that have expired, or will do so soon.
func certificateExpiry() rule.Rule {
	return rule.Rule{
		Name: "certificate-expires", Severity: rule.Error,
		Needs:   []rule.Data{rule.HostOutput(workdir.HostCertificates, "certificate")},
		Follows: "from then on, daemons do not reach the databases",
		Sources: []string{"RFC 5280, 4.1.2.5"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			text, err := n.HostOutput(workdir.HostCertificates)
			if err != nil {
				return err
			}
			recorded, err := n.Recorded()
			if err != nil || recorded.IsZero() {
				return err
			}
			for _, c := range readCertificates(text) {
				finding := rule.Finding{At: c.until, Evidence: []string{"certificate " + c.path}, Next: []rule.Next{rule.OnTheNode("openssl x509 -noout -dates -in", c.path)}}
				switch left := c.until.Sub(recorded); {
				case left < 0:
					finding.What = fmt.Sprintf("the certificate %s had expired %s before the node was recorded", c.path, phrase.Duration(-left))
				case left < expiresSoon:
					finding.What = fmt.Sprintf("the certificate %s expires %s after the node was recorded", c.path, phrase.Duration(left))
				default:
					continue
				}
				found(finding)
			}
			return nil
		},
	}
}

// certificate is a public certificate of a node.
type certificate struct {
	path  string
	until time.Time
}

// readCertificates reads the text in which collectors describe certificates (docs/workdir.md): the path,
// and fields KEY=VALUE, with tabs between them.
func readCertificates(text string) (all []certificate) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		for _, field := range fields[1:] {
			if value, ok := strings.CutPrefix(field, "notAfter="); ok {
				if until, err := time.Parse(time.RFC3339, value); err == nil {
					all = append(all, certificate{fields[0], until})
				}
			}
		}
	}
	return all
}
