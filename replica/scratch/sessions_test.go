package scratch

import (
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/test/check/expect"
)

// TestListingHasTheAssumedState puts the state of sessions into a recorded listing, and
// reads it as any recorded one.
func TestListingHasTheAssumedState(t *testing.T) {
	const known, other, added = "34074394-6134-4afa-ba2a-52f745309162", "e9a62737-e451-4d11-b66e-a08024923c08",
		"00000000-0000-4000-8000-000000000001"
	recorded := "_uuid               : " + known +
		"\nbfd_status          : {}\nname                : tun1\nofport              : 5\n\n" +
		"_uuid               : " + other + "\nbfd_status          : {state=up}\nname                : tun2\n"
	records, err := ovsdb.Listing(strings.NewReader(withSessions(recorded,
		[]Session{{known, "tun1", "gw1", true}, {added, "tun3", "gw3", false}})))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records {
		got = append(got, strings.Join([]string{r.UUID, r.Column("name"), r.Column("bfd_status"), r.Column("ofport")}, " "))
	}
	want := known + ` tun1 {forwarding="true", state=up} 5; ` + other + " tun2 {state=up} ; " + added +
		` tun3 {forwarding="false", state=down} `
	expect.Equal(t, strings.Join(got, "; "), want)
}

func TestAssumedSessionsAreDescribed(t *testing.T) {
	var many []Session
	for _, peer := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		many = append(many, Session{Peer: peer, Up: true})
	}
	for _, c := range []struct {
		sessions []Session
		want     string
	}{
		{nil, ""},
		{[]Session{{Peer: "gw2", Up: true}, {Peer: "gw1", Up: true}, {Peer: "gw1", Up: true}},
			"BFD sessions whose state was not recorded are up with gw1, gw2"},
		{[]Session{{Peer: "gw1"}, {Peer: "gw2", Up: true}},
			"BFD sessions whose state was not recorded are up with gw2, and down with gw1, since an end did not answer before"},
		{many, "BFD sessions whose state was not recorded are up with a, b, c, d, e and 2 more"},
	} {
		expect.Equal(t, DescribeSessions(c.sessions), c.want)
	}
}
