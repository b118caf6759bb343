package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir/services"
)

// The external_ids in which kube-ovn writes what a row stands for.
const (
	idVendor = "vendor"
	idPolicy = "np" // NAMESPACE/NAME, of an address set with the direction after it
	idAdmin  = "anp"
	idBase   = "banp"
	idMember = "sg"     // the security group
	idSubnet = "subnet" // whose row it is
	idNode   = "node"
	idSwitch = "ls"     // the subnet of a port
	idRouter = "lr"     // the VPC of a port
	idParent = "parent" // of an ACL: its port group or its subnet
)

const vendor = "kube-ovn"

// denyAll is the security group by which kube-ovn drops what no other allows.
const denyAll = "kubeovn_deny_all"

// kubeOVN has the networks of kube-ovn.
type kubeOVN struct {
	isVPC    map[string]bool // by name
	isSubnet map[string]bool
	isDNAT   map[string]bool // the load balancers of OvnDnatRules, by UUID: those of routers
	services services.Names
}

// has reports whether kube-ovn wrote the database.
func (k kubeOVN) has() bool { return len(k.isVPC) > 0 }

func readKubeOVN(nb *file.Index) kubeOVN {
	k := kubeOVN{isVPC: map[string]bool{}, isSubnet: map[string]bool{}, isDNAT: map[string]bool{}}
	_ = ovn.EachRouter(nb, func(r *ovn.Router) { // rows that can't be read keep their own names
		if r.IDs[idVendor] != vendor {
			return
		}
		k.isVPC[r.Name] = true
		for _, id := range r.Balancers {
			k.isDNAT[id] = true
		}
	})
	if !k.has() {
		return k
	}
	k.services = services.Beside(nb)
	_ = ovn.EachSwitch(nb, func(s *ovn.Switch) {
		if s.IDs[idVendor] == vendor {
			k.isSubnet[s.Name] = true
		}
	})
	return k
}

// newKubeOVN returns a function that reads the networks of kube-ovn once.
func newKubeOVN(nb *file.Index) func() kubeOVN {
	return sync.OnceValue(func() kubeOVN {
		if nb == nil {
			return kubeOVN{}
		}
		return readKubeOVN(nb)
	})
}

// ownedByKubeOVN names the object that kube-ovn made a port group, an address set or a policy route
// from, "" for none.
func ownedByKubeOVN(ids map[string]string) string {
	subnet, node := ids[idSubnet], ids[idNode]
	policy := strings.Split(ids[idPolicy], "/")
	admin, _, _ := strings.Cut(ids[idAdmin], "/") // of an address set with the direction after it
	base, _, _ := strings.Cut(ids[idBase], "/")
	switch {
	case ids[idMember] == denyAll:
		return "security groups: default deny"
	case ids[idMember] != "":
		return "security group " + ids[idMember]
	case admin != "":
		return "AdminNetworkPolicy " + admin
	case base != "":
		return "BaselineAdminNetworkPolicy " + base
	case subnet != "" && node != "":
		return fmt.Sprintf("subnet %s, pods on %s", subnet, node)
	case node != "":
		return "node " + node
	case subnet != "":
		return "subnet " + subnet
	case len(policy) > 1:
		return "NetworkPolicy " + policy[0] + "/" + policy[1]
	}
	return ""
}

// kubeOVNACL names the object that kube-ovn made an ACL from, "" for none: its port group has the
// object, or it belongs to a subnet.
func (n *Northbound) kubeOVNACL(row ovsdb.Row, group portGroup) string {
	ids := row.Map("external_ids")
	owner, parent := ownedByKubeOVN(group.ids), ids[idParent]
	switch {
	case group.ids[idMember] != "" && group.ids[idMember] != denyAll:
		return owner + groupRule(number(row, "priority"))
	case owner != "" && group.ids[idNode] != "":
		return owner + " and its pods"
	case owner != "":
		return owner
	case ids[idSubnet] != "": // of its spec.acls
		return "subnet " + ids[idSubnet]
	case n.kubeOVN().isSubnet[parent]:
		return "private subnet " + parent
	}
	return ""
}

// groupRule names the rule of a security group that an ACL with a priority is for. The priorities of
// kube-ovn's ACLs are in its pkg/util/const.go: 2300 less the priority of the rule, which is at most
// 200; 2004 where members reach each other; 2005 for what each group allows.
func groupRule(priority int) string {
	const highest, members, always = 2300, 2004, 2005
	switch {
	case priority == members:
		return ", traffic between members"
	case priority == always:
		return ", ARP, DHCP and neighbours"
	case priority < highest && priority >= highest-200:
		return fmt.Sprintf(", rule priority %d", highest-priority)
	}
	return ""
}

// setOfKubeOVN names the object that kube-ovn made an address set from, "" for none. The end of the
// set's name says what of a NetworkPolicy it has: .DIRECTION.allow.IPv4.RULE or .DIRECTION.except...
func setOfKubeOVN(name string, ids map[string]string) string {
	owner := ownedByKubeOVN(ids)
	if owner == "" {
		return ""
	}
	words := strings.Split(name, ".")
	if isOfPolicy := strings.Count(ids[idPolicy], "/") == 2; !isOfPolicy || len(words) < 4 {
		_, direction, _ := strings.Cut(cmp.Or(ids[idAdmin], ids[idBase]), "/")
		family := map[string]string{"v4": "IPv4", "v6": "IPv6", "IPv4": "IPv4", "IPv6": "IPv6"}[words[len(words)-1]]
		for _, detail := range []string{direction, family} {
			if detail != "" {
				owner += ", " + detail
			}
		}
		return owner
	}
	direction, what, family, rule := words[len(words)-4], words[len(words)-3], words[len(words)-2], words[len(words)-1]
	if rule != "all" {
		direction += " rule " + rule
	}
	if what == "except" {
		family += ", exceptions"
	}
	return owner + ", " + direction + ", " + family
}

// network names a switch or a router of kube-ovn, "" for another one.
func (n *Northbound) network(table string, row ovsdb.Row) string {
	if row.Value("external_ids", idVendor) != vendor {
		return ""
	}
	if table == "Logical_Router" {
		return "VPC " + row.String("name")
	}
	return "subnet " + row.String("name")
}

// called returns what a user of kube-ovn calls a datapath, "" for another one.
func (n *Northbound) called(d ovn.Datapath) string {
	k := n.kubeOVN()
	switch {
	case d.Router && k.isVPC[d.Name]:
		return "VPC " + d.Name
	case !d.Router && k.isSubnet[d.Name]:
		return "subnet " + d.Name
	}
	return ""
}

// natOfKubeOVN names a NAT rule of kube-ovn, "" for another one; shared is set for a flow of several
// rules with its address.
func (n *Northbound) natOfKubeOVN(row ovsdb.Row, shared bool) string {
	if !n.kubeOVN().has() {
		return ""
	}
	eip, logical := "EIP "+row.String("external_ip"), row.String("logical_ip")
	switch kind := row.String("type"); {
	case kind == "snat" && shared:
		return eip + ", SNAT"
	case kind == "snat":
		return eip + ", SNAT for " + logical
	case kind != "dnat_and_snat":
		return ""
	}
	if pod := n.podOf(row.String("logical_port")); pod != "" {
		return fmt.Sprintf("%s, FIP for %s (%s)", eip, pod, logical)
	}
	return eip + ", FIP for " + logical
}

// podOf returns the name of the pod of a port, "" for another port.
func (n *Northbound) podOf(port string) string {
	owner := n.owners()[port]
	row, ok, err := n.nb.Row(owner.Table, owner.UUID, "type", "external_ids", "addresses")
	if port == "" || !ok || err != nil {
		return ""
	}
	return ovn.PodName(port, row.String("type"), row.Map("external_ids"), row.Strings("addresses"))
}

// port names a port of kube-ovn that is of no pod, "" for another one. The name of a port between a
// subnet and a VPC, or between two VPCs, is those of both with "-" between them.
func (n *Northbound) port(name string, ids map[string]string) string {
	subnet, vpc := ids[idSwitch], ids[idRouter]
	toVPC, isOfSubnet := strings.CutPrefix(name, subnet+"-")
	there, isOfVPC := strings.CutPrefix(strings.TrimPrefix(name, "cr-"), vpc+"-") // cr-PORT is the port on its gateway
	switch {
	case ids[idVendor] != vendor:
		return ""
	case strings.HasPrefix(name, "localnet.") && subnet != "":
		return "subnet " + subnet + " to its physical network"
	case isOfSubnet && subnet != "":
		return "subnet " + subnet + " to VPC " + toVPC
	case isOfVPC && vpc != "":
		return "VPC " + vpc + " to " + n.kubeOVN().kindOf(there) + there
	}
	return ""
}

// kindOf returns the word before the name of a network.
func (k kubeOVN) kindOf(name string) string {
	if k.isVPC[name] {
		return "VPC "
	}
	return "subnet "
}

// balancerOfKubeOVN names a load balancer of kube-ovn, "" for another one. rule is the one of a logical
// flow, which may be for one VIP, or the zero Rule.
func (n *Northbound) balancerOfKubeOVN(row ovsdb.Row, rule Rule) string {
	k := n.kubeOVN()
	name := row.String("name")
	if !k.has() || ownerOfBalancer(row) != "" {
		return ""
	}
	text := KindLoadBalancer + " " + name
	if k.isDNAT[row.UUID] {
		return underOwner("OvnDnatRule "+name, text)
	}
	if service := k.serviceOf(row, rule.Match); service != "" {
		return underOwner("Service "+service, text)
	}
	if vpc := k.vpcOf(name); vpc != "" {
		return underOwner("services of VPC "+vpc, text)
	}
	return ""
}

// serviceOf returns the service of the only VIP of a load balancer that the match of a logical flow
// names, "" if there is none or if there are several.
func (k kubeOVN) serviceOf(row ovsdb.Row, match string) string {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(match) {
		words[strings.Trim(word, "()")] = true
	}
	atAddress, atPort := map[string]bool{}, map[string]bool{}
	for vip := range row.Map("vips") {
		address, port := cutVIP(vip)
		service := k.services.Of(row.String("protocol"), vip)
		if service == "" || !words[address] {
			continue
		}
		atAddress[service] = true
		if words[port] {
			atPort[service] = true
		}
	}
	return cmp.Or(only(atPort), only(atAddress))
}

// only returns the only element of a set, "" if it has none or several.
func only(set map[string]bool) string {
	if len(set) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(set))[0]
}

// vpcOf returns the VPC whose services a load balancer has: vpc-NAME-PROTOCOL-load, with "-sess"
// for those with session affinity; cluster-PROTOCOL-loadbalancer is that of the default VPC.
func (k kubeOVN) vpcOf(balancer string) string {
	if strings.HasPrefix(balancer, "cluster-") && strings.HasSuffix(balancer, "-loadbalancer") {
		return defaultVPC
	}
	name, found := strings.CutSuffix(strings.TrimPrefix(balancer, "vpc-"), "-load")
	name = strings.TrimSuffix(name, "-sess")
	if at := strings.LastIndexByte(name, '-'); found && at > 0 && k.isVPC[name[:at]] {
		return name[:at]
	}
	return ""
}

// defaultVPC is what kube-ovn calls the VPC of the cluster unless an administrator chose another name.
const defaultVPC = "ovn-cluster"
