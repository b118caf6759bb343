package page

import (
	"fmt"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestFlowsOfTheDatapathWithTheMostPacketsAreShown has more flows of the datapath than a page shows.
func TestFlowsOfTheDatapathWithTheMostPacketsAreShown(t *testing.T) {
	var r reading
	for packets := range uint64(5) {
		r.content.Datapath = append(r.content.Datapath, DatapathFlow{Packets: packets})
	}
	r.leastDatapath(2)
	var kept []string
	for _, f := range r.content.Datapath {
		kept = append(kept, fmt.Sprint(f.Packets))
	}
	expect.Equal(t, kept, []string{"4", "3"}, "packets of the flows")
}
