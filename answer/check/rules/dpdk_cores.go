package rules

import (
	"context"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
)

// dpdkCores finds processors that DPDK's threads were not given, or share with others.
func dpdkCores() rule.Rule {
	return rule.Rule{
		Name: "dpdk-cores", Severity: rule.Warning,
		Needs:   []rule.Data{rule.Either(rule.OVS(), rule.Output(workdir.RecordedOtherConfig))},
		Follows: "the threads that forward packets wait for others on the same processors, and packets are lost",
		Sources: []string{"ovs-vswitchd.conf.db(5), Open_vSwitch, other_config:pmd-cpu-mask and dpdk-lcore-mask", "nova.conf: cpu_dedicated_set, cpu_shared_set"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			config, err := switchConfig(n)
			if err != nil || !isTrue(config["dpdk-init"]) {
				return err
			}
			const pmd, lcore = "pmd-cpu-mask", "dpdk-lcore-mask"
			next := []rule.Next{rule.OnTheNode("ovs-vsctl get Open_vSwitch . other_config")}
			var missing []string
			for _, key := range []string{pmd, lcore} {
				if config[key] == "" {
					missing = append(missing, key)
				}
			}
			if len(missing) > 0 {
				found(rule.Finding{What: fmt.Sprintf("Open vSwitch uses DPDK, and other_config lacks %s", strings.Join(missing, " and ")), Evidence: []string{"Open_vSwitch: other_config"}, Next: next,
					Follows: "the threads that forward packets run on processors that others use as well"})
				return nil
			}
			if cores := common(mask(config[pmd]), mask(config[lcore])); cores != "" {
				found(rule.Finding{What: fmt.Sprintf("%s and %s have the same processors: %s", pmd, lcore, cores), Evidence: []string{"Open_vSwitch: other_config"}, Next: next})
			}
			sets, err := n.HostOutput(workdir.HostCPUSets)
			for line := range strings.Lines(sets) {
				setting, value, _ := strings.Cut(line, "=")
				key := setting[strings.LastIndexByte(setting, ' ')+1:]
				if cores := common(mask(config[pmd]), processors(value)); cores != "" {
					found(rule.Finding{What: fmt.Sprintf("%s and nova's %s have the same processors: %s", pmd, key, cores), Evidence: []string{"Open_vSwitch: other_config", strings.TrimSpace(line)}, Next: next})
				}
			}
			return err
		},
	}
}

// switchConfig returns other_config of the row of Open_vSwitch, of the database or as it was printed.
func switchConfig(n *rule.Node) (config map[string]string, err error) {
	err = n.OVS.Each(ovsdb.OVS, func(row ovsdb.Row) { config = row.Map("other_config") }, "other_config")
	if config == nil && err == nil {
		var text string
		text, err = n.Output(workdir.RecordedOtherConfig)
		config = file.PrintedMap(strings.TrimSpace(text))
	}
	return config, err
}

func isTrue(text string) bool { return strings.EqualFold(text, "true") || text == "try" }

// mask returns the processors of a mask in hexadecimal notation.
func mask(text string) *big.Int {
	number, ok := new(big.Int).SetString(strings.TrimPrefix(strings.ToLower(text), "0x"), 16)
	if !ok {
		return new(big.Int)
	}
	return number
}

// maxProcessor bounds the numbers of processors.
const maxProcessor = 1 << 14

// processors reads a list such as "5-10,16".
func processors(text string) *big.Int {
	set := new(big.Int)
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		first, last, ranged := strings.Cut(strings.TrimSpace(part), "-")
		if !ranged {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		for i := from; err1 == nil && err2 == nil && i <= min(to, maxProcessor) && i >= 0; i++ {
			set.SetBit(set, i, 1)
		}
	}
	return set
}

// common returns the processors of both sets, "" for none.
func common(a, b *big.Int) string {
	both := new(big.Int).And(a, b)
	var list []string
	for i := range both.BitLen() {
		if both.Bit(i) == 1 {
			list = append(list, strconv.Itoa(i))
		}
	}
	return strings.Join(list, ",")
}
