//go:build linux

package keeper_test

import (
	"testing"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// agents are rules as Neutron, OVN-Kubernetes, kube-proxy, kube-ovn, docker, libvirt, firewalld and ufw write them.
const agents = `*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:neutron-openvswi-PREROUTING - [0:0]
-A PREROUTING -j neutron-openvswi-PREROUTING
-A neutron-openvswi-PREROUTING -m physdev --physdev-in qvb0cde78aa-12 -m comment --comment "Set zone for 0cde78aa-12" -j CT --zone 4097
-A neutron-openvswi-PREROUTING -i qvb0cde78aa-12 -m comment --comment "Set zone for 0cde78aa-12" -j CT --zone 4097
-A PREROUTING -p udp -m udp --dport 6081 -j NOTRACK
-A PREROUTING -m rpfilter --invert -j DROP
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:OVN-KUBE-ITP - [0:0]
-A PREROUTING -m connmark ! --mark 0x0/0xffff0000 -j CONNMARK --restore-mark --nfmask 0xffff0000 --ctmask 0xffff0000
-A PREROUTING -m conntrack --ctstate NEW -j CONNMARK --set-xmark 0x0/0xffffffff
-A PREROUTING -d 169.254.169.254/32 -i qr-+ -p tcp -m tcp --dport 80 -j MARK --set-xmark 0x1/0xffff
-A PREROUTING -p tcp -m socket --transparent -j MARK --set-xmark 0x40/0x40
-A PREROUTING -p tcp -m tcp --dport 443 -j TPROXY --on-port 15001 --on-ip 0.0.0.0 --tproxy-mark 0x1/0xffffffff
-A OVN-KUBE-ITP -d 10.96.0.10/32 -p udp -m udp --dport 53 -j MARK --set-xmark 0x1745ec/0xffffffff
-A POSTROUTING -p udp -m udp --dport 68 -j CHECKSUM --checksum-fill
-A POSTROUTING -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
-A POSTROUTING -p tcp -m tcp --tcp-flags SYN,RST SYN -m tcpmss --mss 1400:65495 -j TCPMSS --set-mss 1360
-A POSTROUTING -m dscp --dscp 0x10 -j DSCP --set-dscp 0x00
-A POSTROUTING -m ttl --ttl-eq 1 -j TTL --ttl-inc 1
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SEP-BBBBBBBBBBBBBBBB - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-CCCCCCCCCCCCCCCC - [0:0]
:OVN-KUBE-EGRESS-SVC - [0:0]
:OVN-KUBE-NODEPORT - [0:0]
:DOCKER - [0:0]
:LIBVIRT_PRT - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A PREROUTING -j OVN-KUBE-NODEPORT
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A POSTROUTING -s 10.244.0.0/16 -m set ! --match-set ovn40subnets dst -j MASQUERADE --random-fully
-A POSTROUTING -j OVN-KUBE-EGRESS-SVC
-A DOCKER -i docker0 -j RETURN
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-NODEPORTS -p tcp -m comment --comment "default/web:http" -m tcp --dport 30080 -j KUBE-SVC-CCCCCCCCCCCCCCCC
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m comment --comment "default/web:http" -m recent --set --name KUBE-SEP-AAAAAAAAAAAAAAAA --mask 255.255.255.255 --rsource -m tcp -j DNAT --to-destination 10.244.0.5:80
-A KUBE-SEP-BBBBBBBBBBBBBBBB -s 10.244.0.6/32 -m comment --comment "default/web:http" -j KUBE-MARK-MASQ
-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-CCCCCCCCCCCCCCCC
-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-SVC-CCCCCCCCCCCCCCCC ! -s 10.244.0.0/16 -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:http cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
-A KUBE-SVC-CCCCCCCCCCCCCCCC -m comment --comment "default/web:http -> 10.244.0.5:80" -m recent --rcheck --seconds 10800 --reap --name KUBE-SEP-AAAAAAAAAAAAAAAA --mask 255.255.255.255 --rsource -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SVC-CCCCCCCCCCCCCCCC -m comment --comment "default/web:http -> 10.244.0.5:80" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SVC-CCCCCCCCCCCCCCCC -m comment --comment "default/web:http -> 10.244.0.6:80" -j KUBE-SEP-BBBBBBBBBBBBBBBB
-A OVN-KUBE-EGRESS-SVC -s 10.244.0.5/32 -m comment --comment "default/egress" -j SNAT --to-source 172.18.0.100
-A OVN-KUBE-NODEPORT -p tcp -m addrtype --dst-type LOCAL -m tcp --dport 31000 -j DNAT --to-destination 10.96.0.20:80
-A LIBVIRT_PRT -s 192.168.122.0/24 -d 224.0.0.0/24 -j RETURN
-A LIBVIRT_PRT -s 192.168.122.0/24 ! -d 192.168.122.0/24 -p tcp -j MASQUERADE --to-ports 1024-65535
-A PREROUTING -d 169.254.169.254/32 -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 8775
-A POSTROUTING -s 10.9.0.0/24 -j NETMAP --to 10.10.0.0/24
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:neutron-openvswi-i0cde78aa-1 - [0:0]
:neutron-openvswi-sg-fallback - [0:0]
:neutron-openvswi-sg-chain - [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-FORWARD - [0:0]
:ufw-user-limit - [0:0]
-A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i lo -j ACCEPT
-A INPUT -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A INPUT -p icmp -m icmp --icmp-type 3/4 -j ACCEPT
-A INPUT -m mac --mac-source FA:16:3E:00:00:05 -j ACCEPT
-A INPUT -p tcp -m multiport --dports 22,80,8000:8080 -j ACCEPT
-A INPUT -m iprange --src-range 10.0.0.1-10.0.0.9 -j ACCEPT
-A INPUT -m pkttype --pkt-type broadcast -j DROP
-A INPUT -p tcp -m u32 --u32 "0x0>>0x16&0x3c@0x0=0x1:0xffff" -j DROP
-A INPUT -p tcp -m connlimit --connlimit-above 20 --connlimit-mask 32 --connlimit-saddr -j REJECT --reject-with tcp-reset
-A INPUT -p tcp -m hashlimit --hashlimit-upto 5/sec --hashlimit-burst 10 --hashlimit-mode srcip --hashlimit-name http -j ACCEPT
-A INPUT -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW BLOCK] "
-A INPUT -m length --length 1000:65535 -j NFLOG --nflog-prefix "long one" --nflog-group 5
-A INPUT -p udp -m udp --sport 67 --dport 68 -j NFQUEUE --queue-num 3 --queue-bypass
-A INPUT -p esp -j ACCEPT
-A INPUT -p sctp -m sctp --dport 36412 -j ACCEPT
-A INPUT -m time --timestart 01:00:00 --timestop 02:00:00 -j DROP
-A FORWARD -m physdev --physdev-out tap0cde78aa-12 --physdev-is-bridged -m comment --comment "Direct traffic from the VM interface to the security group chain." -j neutron-openvswi-sg-chain
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A neutron-openvswi-sg-chain -m physdev --physdev-out tap0cde78aa-12 --physdev-is-bridged -j neutron-openvswi-i0cde78aa-1
-A neutron-openvswi-i0cde78aa-1 -m state --state RELATED,ESTABLISHED -m comment --comment "Direct packets associated with a known session to the RETURN chain." -j RETURN
-A neutron-openvswi-i0cde78aa-1 -d 10.1.0.5/32 -p udp -m udp --sport 67 --dport 68 -j RETURN
-A neutron-openvswi-i0cde78aa-1 -m set --match-set NIPv4aaaa src -j RETURN
-A neutron-openvswi-i0cde78aa-1 -m state --state INVALID -m comment --comment "Drop packets that appear related to an existing connection (e.g. TCP ACK/FIN) but do not have an entry in conntrack." -j DROP
-A neutron-openvswi-i0cde78aa-1 -m comment --comment "Send unmatched traffic to the fallback chain." -j neutron-openvswi-sg-fallback
-A neutron-openvswi-sg-fallback -m comment --comment "Default drop rule for unmatched traffic." -j DROP
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
-A ufw-user-limit -j REJECT --reject-with icmp-port-unreachable
-A OUTPUT -m owner --uid-owner 0 -j ACCEPT
-A OUTPUT -p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN -m conntrack --ctstate NEW --ctdir ORIGINAL -g ufw-user-limit
COMMIT
`

const agents6 = `*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 135 -j ACCEPT
-A INPUT -s fe80::/10 -p ipv6-icmp -m icmp6 --icmpv6-type 130 -m hl --hl-eq 255 -j ACCEPT
-A INPUT -m rt --rt-type 0 -j DROP
-A INPUT -d fe80::/64 -p udp -m udp --dport 546 -m conntrack --ctstate NEW -j ACCEPT
-A FORWARD -s fd00::1/128 -j REJECT --reject-with icmp6-port-unreachable
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -d fd00::10/128 -p tcp -m tcp --dport 80 -j DNAT --to-destination [fd00::20]:8080
-A POSTROUTING -s fd00::/64 -j MASQUERADE --random-fully
COMMIT
`

// TestRulesOfAgentsReadBackIdentical restores rules of all agents: each is in the kernel, or this kernel does not
// have what it needs and it is named.
func TestRulesOfAgentsReadBackIdentical(t *testing.T) {
	ovs.Need(t, "iptables-nft-restore", "ipset")
	wd := newWorkdir(t)
	simple(t, wd, "node")
	write(t, wd.NamespaceRecorded("node", workdir.NamespaceFilters), agents)
	write(t, wd.NamespaceRecorded("node", workdir.NamespaceFilters6), agents6)
	write(t, wd.NamespaceRecorded("node", workdir.NamespaceSets),
		"create NIPv4aaaa hash:net family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x123\nadd NIPv4aaaa 10.1.0.0/24\ncreate ovn40subnets hash:net family inet hashsize 1024 maxelem 1048576\n")
	list, _ := restored(t, wd)
	complete(t, list)
}
