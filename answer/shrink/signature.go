package shrink

import (
	"cmp"
	"slices"
	"strings"

	"ovs-offline/answer/trace/answer"
)

// signature is what stays of an answer while the database gets smaller.
type signature struct {
	verdict answer.Verdict
	drop    string // why and where the packet is dropped, or the reply to it
	ends    string // where the packet comes out
}

func signatureOf(a *answer.Answer) signature {
	if a == nil {
		return signature{}
	}
	s := signature{verdict: a.Verdict, drop: dropOf(a)}
	if a.Return != nil && a.Verdict == answer.OneWay {
		s.drop = dropOf(a.Return)
	}
	var ends []string
	for _, outcome := range a.Outcomes {
		if outcome.Destination || outcome.Answer {
			ends = append(ends, outcome.Node+" "+outcome.Port)
		}
	}
	slices.Sort(ends)
	s.ends = strings.Join(slices.Compact(ends), ", ")
	return s
}

// dropOf describes a drop by what does not change with the rest of the database: words and cookies of rules do, and so do
// keys of datapaths.
func dropOf(a *answer.Answer) string {
	if a.Drop == nil {
		return ""
	}
	rule := a.Drop.Row
	if a.Drop.ACL != nil {
		rule = a.Drop.ACL.UUID
	}
	return strings.Join([]string{a.Drop.Reason, a.Drop.Node, a.Drop.Pipeline, cmp.Or(a.Drop.Name, a.Drop.Chain), rule}, " ")
}
