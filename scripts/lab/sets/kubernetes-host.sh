# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by set.sh and lib.sh
# The cluster of the set kubernetes-ic, whose nodes have their own network namespace: the kernel
# is behind the management port and behind the bridge to the outside, with the addresses, routes
# and rules of ovnkube. worker3 also has a second interface, by which the egress IP of ns2/db-1
# leaves.

# shellcheck source=scripts/lab/sets/kubernetes-ic.sh
. "$HERE/sets/kubernetes-ic.sh"
# shellcheck source=scripts/lab/namespaces.sh
. "$HERE/namespaces.sh"

SET_SUMMARY='OVN-Kubernetes whose nodes have a kernel: management ports, egress IP on a second interface, as root'
SET_NETWORKS=(underlay second)
SET_NAMESPACES=yes

MANAGEMENT=ovn-k8s-mp0
SECOND_IP=10.10.0
# The network of ovnkube's masquerade addresses on the node.
MASQUERADE_LENGTH=29
KUBELET=10250

# renew PREFIX FUNCTION: keeps what a function of the set below does under the name PREFIX_FUNCTION.
renew() { eval "$1_$(declare -f "$2")"; }
renew cluster set_fabric
renew cluster node_switch
renew cluster nb_egress

set_fabric() {
    cluster_set_fabric
    fabric_outside second ext1
}

# host_devices: prints the devices of the node's kernel.
host_devices() {
    printf '%s\n' $MANAGEMENT breth0
    [[ $NUMBER != 3 ]] || printf 'eth1\n'
}

node_switch() {
    local -a devices
    mapfile -t devices < <(host_devices)
    start_namespace $OWN --listen=$KUBELET "${devices[@]}"
    cluster_node_switch
    into_namespace $MANAGEMENT
    into_namespace breth0
    [[ $NUMBER != 3 ]] || second_interface
    host_network
    host_rules | in_namespace $OWN nft -f -
}

# into_namespace INTERFACE: joins an interface of the node with the kernel's device.
into_namespace() {
    ovs-vsctl set Interface "$1" options:stream="unix:$SET/wires/$NODE-$1.sock" \
        options:rxq_pcap="$LAB/pcap/$1.out.pcap"
    sed -i "s/^\([^ ]* $1 [^ ]*\) host \(.*\)/\1 namespace \2 $OWN/" "$LAB/ports"
}

# second_interface: what leaves by it is recorded where the cable ends.
second_interface() {
    fabric ovs-vsctl add-port second "$NODE-eth1" -- set Interface "$NODE-eth1" \
        options:stream="unix:$SET/wires/$NODE-eth1.sock" options:rxq_pcap="$LAB/pcap/eth1.pcap"
    printf -- '- eth1 - uplink %s\n' "$NODE:eth1" >>"$LAB/ports"
}

host_network() {
    local n=$NUMBER timeout
    for timeout in tcp_timeout_syn_sent tcp_timeout_syn_recv tcp_timeout_unacknowledged tcp_timeout_max_retrans udp_timeout udp_timeout_stream icmp_timeout; do
        in_namespace $OWN sysctl -qw "net.netfilter.nf_conntrack_$timeout=3600"
    done
    in_namespace $OWN sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.$MANAGEMENT.rp_filter=2 \
        net.ipv4.tcp_synack_retries=0 net.ipv4.icmp_ratemask=0 net.ipv6.conf.all.disable_ipv6=1
    in_namespace $OWN ip -batch - <<EOT
link set $MANAGEMENT address $(pod_mac "$n" 2) mtu 1400 up
link set breth0 address $UPLINK_MAC mtu 1500 up
address add 10.244.$n.2/24 brd + dev $MANAGEMENT
address add $(node_ip "$n")/24 brd + dev breth0
address add 169.254.169.2/$MASQUERADE_LENGTH brd + dev breth0
route add default via 172.18.0.1 dev breth0
route add 10.244.0.0/16 via 10.244.$n.1 dev $MANAGEMENT
route add 10.96.0.0/16 via 169.254.169.4 dev breth0 src 169.254.169.2 mtu 1400
route add 169.254.169.3 via 10.244.$n.1 dev $MANAGEMENT
route add 169.254.169.1 dev breth0 src $(node_ip "$n") mtu 1400
neigh add 169.254.169.4 lladdr 0a:58:a9:fe:a9:04 dev breth0 nud permanent
EOT
    [[ $n == 3 ]] || return 0
    in_namespace $OWN ip -batch - <<EOT
link set eth1 address 02:42:0a:0a:00:03 mtu 1500 up
address add $SECOND_IP.3/24 brd + dev eth1
address add $SECOND_IP.100/32 dev eth1
route add default via $SECOND_IP.1 dev eth1 table 1004
route add $SECOND_IP.0/24 dev eth1 table 1004
rule add from 10.244.3.5 table 1004 priority 6000
EOT
}

# host_rules: prints the rules of ovnkube for nft.
host_rules() {
    cat <<EOT
table inet ovn-kubernetes {
    set mgmtport-no-snat-nodeports {
        type inet_proto . inet_service
        comment "NodePorts not subject to management port SNAT"
    }
    chain mgmtport-snat {
        comment "OVN SNAT to Management Port"
        type nat hook postrouting priority srcnat; policy accept;
        oifname != "$MANAGEMENT" return
        ip saddr 10.244.$NUMBER.2 return
        meta l4proto . th dport @mgmtport-no-snat-nodeports counter return
        counter snat ip to 10.244.$NUMBER.2
    }
}
EOT
    [[ $NUMBER == 3 ]] || return 0
    cat <<EOT
table ip nat {
    chain OVN-KUBE-EGRESS-IP-MULTI-NIC {
        ip saddr 10.244.3.5 oifname "eth1" counter snat to $SECOND_IP.100
    }
    chain POSTROUTING {
        type nat hook postrouting priority srcnat; policy accept;
        counter jump OVN-KUBE-EGRESS-IP-MULTI-NIC
    }
}
EOT
}

nb_egress() {
    cluster_nb_egress
    [[ $NUMBER != 3 ]] ||
        NB+=(-- lr-policy-add ovn_cluster_router 100 'ip4.src == 10.244.3.5' reroute 10.244.3.2)
}
