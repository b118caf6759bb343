package openflow

import (
	"fmt"
	"slices"
)

// Version is a version of the OpenFlow protocol. Versions are ordered: a newer
// one is greater. The zero Version is unknown.
type Version uint8

// The versions that Open vSwitch speaks.
const (
	OpenFlow10 Version = iota + 1
	OpenFlow11
	OpenFlow12
	OpenFlow13
	OpenFlow14
	OpenFlow15
)

// versionNames are the names in which ovs-ofctl(8) takes versions (-O).
var versionNames = [...]string{"", "OpenFlow10", "OpenFlow11", "OpenFlow12", "OpenFlow13", "OpenFlow14", "OpenFlow15"}

// Versions lists all versions, the newest first.
func Versions() []Version {
	return []Version{OpenFlow15, OpenFlow14, OpenFlow13, OpenFlow12, OpenFlow11, OpenFlow10}
}

// ParseVersion returns the version with that name, for example "OpenFlow15".
// It returns the zero Version for any other text.
func ParseVersion(name string) Version {
	return Version(max(0, slices.Index(versionNames[:], name)))
}

// String returns the name that ovs-ofctl takes, "" for the zero Version.
func (v Version) String() string { return versionNames[v] }

// MarshalText implements encoding.TextMarshaler.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. The empty text is the zero Version.
func (v *Version) UnmarshalText(text []byte) error {
	*v = ParseVersion(string(text))
	if *v == 0 && len(text) > 0 {
		return fmt.Errorf("%q is not an OpenFlow version", text)
	}
	return nil
}

// In reports whether a bridge with these protocols (the column protocols of its
// row in the database) speaks v. A bridge without protocols speaks all versions.
func (v Version) In(protocols []string) bool {
	return len(protocols) == 0 || slices.Contains(protocols, v.String())
}
