package recording

import (
	"bytes"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/workdir"
)

// HostFile is a file of the machine from which a text in host/ is made.
type HostFile struct {
	archive.File
	Text   string // the text's name: workdir.HostCertificates, HostCPUSets or HostUnitMemory
	Origin string // its path in the source
}

var (
	// certificatePath matches the paths of certificates, and what sos prints of their dates.
	certificatePath = lazyregexp.New(`(?:^|/)(?:etc/(?:ovn|openvswitch|neutron)/|var/lib/openvswitch/pki/|var/snap/[a-z-]+/common/data/pki/|sos_commands/ovn_(?:host|central)/openssl_x509_)`)
	novaPath        = lazyregexp.New(`(?:^|/)etc/nova/nova\.conf$|(?:^|/)var/snap/openstack-hypervisor/common/etc/nova/nova\.conf$`)
	unitMemoryPath  = lazyregexp.New(`(?:^|/)sys/fs/cgroup/.*\b(?:ovn|openvswitch|ovs)[^/]*\.service/memory\.(?:current|usage_in_bytes)$`)
)

// mayHaveText matches a part of all the paths above. A source can have a million.
var mayHaveText = lazyregexp.New(`etc/|/pki/|openssl_x509_|/memory\.`)

// HostTextOf returns the text in host/ for which a file is used, judged by its path and its beginning. A
// file with a private key is never used.
func HostTextOf(file string, start []byte) (text string, ok bool) {
	switch {
	case !containsAny(file, "etc/", "pki/", "_x509_", "cgroup/"): // a source can have a million names
	case !mayHaveText.MatchString(file), bytes.Contains(start, []byte("PRIVATE KEY")):
	case certificatePath.MatchString(file) && (bytes.Contains(start, []byte("-----BEGIN CERTIFICATE-----")) || bytes.Contains(start, []byte("notAfter="))):
		return workdir.HostCertificates, true
	case novaPath.MatchString(file):
		return workdir.HostCPUSets, true
	case unitMemoryPath.MatchString(file):
		return workdir.HostUnitMemory, true
	}
	return "", false
}

// MayHaveHostText reports whether HostTextOf may be true for a path.
func MayHaveHostText(file string) bool {
	return mayHaveText.MatchString(file) && (certificatePath.MatchString(file) || novaPath.MatchString(file) || unitMemoryPath.MatchString(file))
}
