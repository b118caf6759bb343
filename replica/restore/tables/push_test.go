package tables

import (
	"errors"
	"testing"

	"ovs-offline/internal/command"
)

// TestRejectedEntry reads error messages of ovs-ofctl 3.1.0.
func TestRejectedEntry(t *testing.T) {
	const closing = "ovs-ofctl: talking to unix:br-int.mgmt (Protocol error)\n"
	for name, c := range map[string]struct {
		stderr string
		n      int
		bad    int
		known  bool
	}{
		"a line": {"ovs-ofctl: -:4: invalid group type nonsense\n", 10, 3, true},
		"a group that was refused when it came": {"Error OFPGMFC_INVALID_GROUP for: OFPT_GROUP_MOD (OF1.5) (xid=0x4): ***decode error: OFPGMFC_INVALID_GROUP***\n" +
			"00000000  06 0f 00 18 00 00 00 04-00 00 02 00 00 00 00 03 |................|\n" + closing, 4, 2, true},
		"a group that was refused in the end": {"Error OFPGMFC_GROUP_EXISTS for: OFPT_GROUP_MOD (OF1.5) (xid=0x4):\n ADD group_id=2,type=all,bucket=bucket_id:0,actions=drop\n" +
			"Error OFPBFC_MSG_FAILED for: OFPT_BUNDLE_CONTROL (OF1.5) (xid=0x8):\n bundle_id=0 type=COMMIT_REQUEST flags=atomic ordered\n" + closing, 4, 2, true},
		"a flow": {"Error OFPBAC_BAD_OUT_GROUP for: OFPT_FLOW_MOD (OF1.5) (xid=0x3): ADD priority=4,ip actions=group:999\n" +
			"Error OFPBFC_MSG_FAILED for: OFPT_BUNDLE_CONTROL (OF1.5) (xid=0x6):\n bundle_id=0 type=COMMIT_REQUEST flags=atomic ordered\n" + closing, 2, 1, true},
		"a flow, after names were asked for": {"Error OFPBAC_BAD_OUT_GROUP for: OFPT_FLOW_MOD (OF1.5) (xid=0x7): ADD priority=4,ip actions=group:999\n" +
			"Error OFPBFC_MSG_FAILED for: OFPT_BUNDLE_CONTROL (OF1.5) (xid=0xa):\n bundle_id=0 type=COMMIT_REQUEST flags=atomic ordered\n" + closing, 2, 1, true},
		"another message": {"Error OFPBRC_BAD_TYPE for: OFPT_BUNDLE_CONTROL (OF1.5) (xid=0x4):\n" + closing, 9, 0, false},
		"a number too far": {"Error OFPBAC_BAD_OUT_GROUP for: OFPT_FLOW_MOD (OF1.5) (xid=0x77): ADD actions=group:999\n" +
			closing, 2, 0, false},
		"nothing":         {"", 2, 0, false},
		"nothing, of one": {"", 1, 0, true},
	} {
		err := &command.Error{Argv: []string{"ovs-ofctl"}, Stderr: c.stderr, Err: errors.New("exit status 1")}
		if bad, known := rejectedEntry(err, c.n); bad != c.bad || known != c.known {
			t.Errorf("%s: %d %v, want %d %v", name, bad, known, c.bad, c.known)
		}
	}
}
