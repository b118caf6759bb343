package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"

	"ovs-offline/pkg/openflow"
)

var metadata = regexp.MustCompile(`metadata=(0x[0-9a-f]+)`)

// writeFlows writes a dump of count flows: those of a real node, repeated for other
// logical datapaths. It writes the same flows to plain, as ovs-ofctl can add them.
func writeFlows(from string, count int, dump, plain io.Writer) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var lines []string
	for line := range strings.Lines(string(raw)) {
		if metadata.MatchString(line) && strings.Contains(line, "actions=") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return fmt.Errorf("%s has no flow of a logical datapath", from)
	}
	fmt.Fprintln(dump, "OFPST_FLOW reply (OF1.5) (xid=0x2):")
	for i := range count {
		line := metadata.ReplaceAllStringFunc(lines[i%len(lines)], func(field string) string {
			n, _ := strconv.ParseUint(strings.TrimPrefix(field, "metadata="), 0, 64)
			return fmt.Sprintf("metadata=%#x", n+uint64(i/len(lines)+1)<<8)
		})
		if _, err := io.WriteString(dump, line); err != nil {
			return err
		}
		for flow, problem := range openflow.Flows(strings.NewReader("\n" + line)) {
			if problem != nil {
				return fmt.Errorf("%s: %s", from, problem)
			}
			text, _ := openflow.Rewrite(flow.Text)
			fmt.Fprintln(plain, text)
		}
	}
	return nil
}

// writeDatabase writes a southbound database of about size bytes: logical flows
// in transactions of a thousand, as ovn-northd writes them.
func writeDatabase(w io.Writer, schema string, size int64) error {
	raw, err := os.ReadFile(schema)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<20)
	var parsed json.RawMessage = raw
	if raw, err = json.Marshal(parsed); err != nil {
		return err
	}
	written, err := writeRecord(out, raw)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	for n := 0; written < size; n += 1000 {
		rows := map[string]any{}
		for i := n; i < n+1000; i++ {
			rows[newUUID(random)] = logicalFlow(i)
		}
		raw, err := json.Marshal(map[string]any{"Logical_Flow": rows, "_date": 1760000000000 + n})
		if err != nil {
			return err
		}
		more, err := writeRecord(out, raw)
		if err != nil {
			return err
		}
		written += more
	}
	return out.Flush()
}

func writeRecord(w io.Writer, raw []byte) (int64, error) {
	raw = append(raw, '\n')
	n, err := fmt.Fprintf(w, "OVSDB JSON %d %x\n%s", len(raw), sha1.Sum(raw), raw)
	return int64(n), err
}

func newUUID(random *rand.Rand) string {
	a, b := random.Uint64(), random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&0xffffffffffff)
}

func logicalFlow(i int) map[string]any {
	return map[string]any{
		"pipeline": []string{"ingress", "egress"}[i%2], "table_id": i % 30, "priority": i%200 + 1,
		"match":        fmt.Sprintf(`reg0[7] == 1 && (outport == "lsp-%d" && ip4 && ip4.src == 10.%d.%d.0/24 && tcp.dst == %d)`, i, i>>16&255, i>>8&255, i&65535),
		"actions":      `reg0[1] = 1; next;`,
		"external_ids": []any{"map", []any{[]string{"source", "northd.c:6789"}, []string{"stage-name", "ls_in_acl_eval"}, []string{"stage-hint", fmt.Sprintf("%08x", i)}}},
	}
}

// writeLog writes size bytes of a log, which is what most of a report is.
func writeLog(w io.Writer, seed uint64, size int64) error {
	out := bufio.NewWriterSize(w, 1<<20)
	random := rand.New(rand.NewPCG(seed, 7))
	daemons := []string{"kubelet", "systemd", "ovs-vswitchd", "kernel", "crio", "NetworkManager", "sshd", "audit"}
	says := []string{"level=info msg=\"Checking image status\"", "Started Session", "blocked for more than", "I1013 reconciler.go:41] volume attached to pod",
		"bridge|INFO|bridge br-int: added interface", "device entered promiscuous mode", "exit code 0 duration", "error: timed out waiting for the condition on"}
	var written int64
	for second := 0; written < size; second++ {
		n, err := fmt.Fprintf(out, "Oct 13 %02d:%02d:%02d compute-2 %s[%d]: %s id=%016x size=%d\n", second/3600%24, second/60%60, second%60,
			daemons[random.IntN(len(daemons))], random.IntN(30000), says[random.IntN(len(says))], random.Uint64(), random.IntN(1<<20))
		if err != nil {
			return err
		}
		written += int64(n)
	}
	return out.Flush()
}
