package file

import (
	"bytes"
	"encoding/json"
	"fmt"

	"ovs-offline/internal/lazyregexp"
)

// cutOff begins the reason to leave out a record that ends before its length.
const cutOff = "cut off"

// repair returns the text of a record whose length or sum is wrong, or the reason to
// leave it out. Text that is still a JSON object was rewritten on purpose, as by `sos
// clean`: then only the header is wrong.
func (c *converter) repair(record *record) (body []byte, reason string) {
	body = bytes.TrimSpace(record.body)
	if int64(len(record.body)) < record.size || len(body) == 0 || body[0] != '{' || !json.Valid(body) {
		if record.last && record.size < record.length {
			return nil, fmt.Sprintf("%s after %d of %d bytes", cutOff, record.size, record.length)
		}
		return nil, "its text is not valid JSON"
	}
	body, n := repairUUIDs(body)
	c.repaired++
	c.altered = c.altered || record.size == record.length
	c.uuids += n
	return body, ""
}

// mangledUUID matches a UUID that `sos clean` mistook for a 64-bit MAC address: its
// pattern for one matched the middle of every UUID, which became 53:4f:53 ("SOS") and
// three random bytes, the same for the same middle (sos issue 3736, up to sos 4.8.0):
// 0190fe17-d1ae-7091-a034-22ade2121dc0 -> 01953:4f:53:1b:2c:3d-22ade2121dc0.
var mangledUUID = lazyregexp.New(`\b([0-9a-f]{3})53:4f:53:([0-9a-f]{2}):([0-9a-f]{2}):([0-9a-f])([0-9a-f])-([0-9a-f]{12})\b`)

// repairUUIDs gives mangled UUIDs the form of a UUID, always the same for the same
// text, and returns their number. ovsdb-server refuses a row without a UUID, and the
// whole transaction with it. The random bytes go to the end of the first part, which
// ovsdb-server uses as the hash of a row (uuid_hash() in lib/uuid.h of Open vSwitch):
// rows with equal hashes would load slowly.
func repairUUIDs(body []byte) ([]byte, int) {
	if !bytes.Contains(body, []byte("53:4f:53:")) {
		return body, 0
	}
	n := len(mangledUUID.FindAllIndex(body, -1))
	return mangledUUID.ReplaceAll(body, []byte("$1$2$3$4-${5}534-f530-0000-$6")), n
}
