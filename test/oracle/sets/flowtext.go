package sets

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/internal/command"
)

// describe fills in the flow of each packet and output. Open vSwitch itself reads the
// frames.
func (s *Set) describe(ctx context.Context) error {
	var frames []string
	var texts []*string
	numbers := map[*string]string{}
	outputs := func(list []Output) {
		for i := range list {
			frames, texts = append(frames, list[i].Bytes), append(texts, &list[i].Flow)
		}
	}
	for _, list := range [][]*Packet{s.Earlier, s.Packets, s.Talks} {
		for _, p := range list {
			port, err := s.port(p.From)
			if err != nil {
				return err
			}
			numbers[&p.Flow] = port.Number
			frames, texts = append(frames, p.Bytes), append(texts, &p.Flow)
			outputs(p.Outputs)
			outputs(p.Tunnels)
			outputs(p.Passed)
		}
	}
	flows, err := flowTexts(ctx, s.Dir, frames)
	if err != nil {
		return err
	}
	for i, text := range texts {
		*text = flows[i]
		if number, sent := numbers[text]; sent && number != noPort {
			*text = "in_port=" + number + "," + flows[i]
		}
	}
	return nil
}

// flowTexts returns the flow of each frame, as ofproto/trace takes it.
func flowTexts(ctx context.Context, dir string, frames []string) ([]string, error) {
	var pcap bytes.Buffer
	for _, word := range []any{uint32(0xa1b2c3d4), uint16(2), uint16(4), uint32(0), uint32(0), uint32(65535), uint32(1)} {
		_ = binary.Write(&pcap, binary.LittleEndian, word) // a buffer takes all
	}
	for _, digits := range frames {
		raw, err := decode(digits)
		if err != nil {
			return nil, err
		}
		_ = binary.Write(&pcap, binary.LittleEndian, []uint32{0, 0, uint32(len(raw)), uint32(len(raw))})
		pcap.Write(raw)
	}
	file := filepath.Join(dir, "frames.pcap")
	if err := os.WriteFile(file, pcap.Bytes(), 0o644); err != nil {
		return nil, err
	}
	defer os.Remove(file)
	out, err := command.Run(ctx, command.Command{Argv: []string{"ovs-ofctl", "parse-pcap", file}})
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(frames) {
		return nil, fmt.Errorf("ovs-ofctl parse-pcap printed %d lines for %d frames", len(lines), len(frames))
	}
	for i, line := range lines {
		lines[i] = asTraced(line)
	}
	return lines, nil
}

// asTraced changes names of fields that Open vSwitch prints and cannot read again, and
// leaves out fields that say nothing.
func asTraced(flow string) string {
	protocol, _, _ := strings.Cut(flow, ",")
	var fields []string
	for field := range strings.SplitSeq(flow, ",") {
		name, value, _ := strings.Cut(field, "=")
		switch {
		case name == "in_port", strings.HasPrefix(name, "vlan_tci"), name == "nw_frag" && value == "no":
			continue
		case (name == "nd_sll" || name == "nd_tll") && value == "00:00:00:00:00:00":
			continue
		case strings.HasPrefix(name, "tp_"):
			kind := strings.TrimSuffix(protocol, "6")
			field = kind + strings.TrimPrefix(name, "tp") + "=" + value
		case strings.HasPrefix(name, "icmp_") && protocol == "icmp6":
			field = "icmpv6" + strings.TrimPrefix(name, "icmp") + "=" + value
		}
		fields = append(fields, field)
	}
	return strings.Join(fields, ",")
}
