package trace

import "fmt"

// The sizes that a frame may have in bytes: from an Ethernet header alone to the largest IP
// packet in a frame with a VLAN tag.
const (
	minSize = 14
	maxSize = 65535 + 18
)

// CheckSize returns an error for a number of bytes that no frame has. 0 stands for a frame
// that fits everywhere.
func CheckSize(size int) error {
	if size != 0 && (size < minSize || size > maxSize) {
		return fmt.Errorf("%w: a frame has %d to %d bytes, not %d", ErrQuestion, minSize, maxSize, size)
	}
	return nil
}
