package devices

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// auxiliarySize is the size of struct tpacket_auxdata of <linux/if_packet.h>.
const auxiliarySize = 20

// addresses is the size of the addresses at the start of a frame, which a tag follows.
const addresses = 12

// withTag returns a frame with the tag of a VLAN that the kernel tells beside it.
func withTag(frame, extra []byte) ([]byte, error) {
	messages, err := unix.ParseSocketControlMessage(extra)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_PACKET || m.Header.Type != unix.PACKET_AUXDATA || len(m.Data) < auxiliarySize {
			continue
		}
		status := binary.NativeEndian.Uint32(m.Data)
		if status&unix.TP_STATUS_VLAN_VALID == 0 {
			continue
		}
		protocol := uint16(unix.ETH_P_8021Q)
		if status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
			protocol = binary.NativeEndian.Uint16(m.Data[18:])
		}
		tag := binary.BigEndian.AppendUint16(nil, protocol)
		tag = binary.BigEndian.AppendUint16(tag, binary.NativeEndian.Uint16(m.Data[16:]))
		return slices.Insert(frame, addresses, tag...), nil
	}
	return frame, nil
}
