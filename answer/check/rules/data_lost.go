package rules

import (
	"context"
	"fmt"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
)

// dataLost finds the data that the source of a node held and that could not be read.
func dataLost() rule.Rule {
	return rule.Rule{
		Name: "data-lost", Severity: rule.Warning,
		Follows: "what depends on this data is not judged, and traces may lack it",
		Sources: []string{"manifest.json of the working directory: lost"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			manifest, err := n.Manifest()
			if err != nil {
				return err
			}
			for _, collection := range manifest.Collections {
				next := rule.Elsewhere("on the machine that it comes from", "make it again whole, and collect that")
				for _, lost := range collection.Lost {
					found(rule.Finding{What: fmt.Sprintf("a part of the source could not be read: %s", phrase.Shorten(lost, 300)),
						Evidence: []string{collection.Source.Kind + " " + collection.Source.Name}, Next: []rule.Next{next}})
				}
				for _, file := range collection.Files {
					if file.Lost > 0 {
						found(rule.Finding{What: fmt.Sprintf("the dump %s is not whole: %s", file.Origin, phrase.Shorten(strings.Join(file.Remarks, "; "), 300)), Causes: []string{unreadFlows},
							Evidence: []string{collection.Source.Kind + " " + collection.Source.Name + ": " + file.Origin}, Next: []rule.Next{next}})
					}
				}
			}
			return nil
		},
	}
}
