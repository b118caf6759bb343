# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of sets
# What nova and neutron's firewall iptables_hybrid do for a VM: its tap is in a Linux bridge, qbr,
# whose other port, qvb, leads to br-int by qvo. The rules of the node's own namespace filter what
# passes the bridge (neutron/agent/linux/iptables_firewall.py).

# hybrid_devices NAMESPACE ID TAP: makes the bridge of a VM, with the first letters of the port's id.
hybrid_devices() {
    in_namespace "$1" ip -batch - <<EOT
link add qvb$2 address fe:00:00:00:00:${3: -2} mtu 1430 type veth peer name qvo$2 address fe:00:00:00:01:${3: -2} mtu 1430
link add qbr$2 mtu 1430 type bridge stp_state 0 forward_delay 0 ageing_time 0 mcast_snooping 0
link set qbr$2 addrgenmode none
link set qvb$2 addrgenmode none
link set qvo$2 addrgenmode none
link set $3 addrgenmode none mtu 1430
link set qvb$2 master qbr$2
link set $3 master qbr$2
link set qbr$2 up
link set qvb$2 up
link set qvo$2 up
link set $3 up
EOT
}

# hybrid_filters: prints the rules of the node for iptables-restore. VMS has a line for each VM:
# the first letters of the port's id, its tap, MAC, address, and conntrack zone.
hybrid_filters() {
    local vm id tap mac ip zone
    echo '*raw'
    hybrid_chains PREROUTING OUTPUT
    for vm in "${VMS[@]}"; do
        read -r id tap mac ip zone <<<"$vm"
        cat <<EOT
-A neutron-openvswi-PREROUTING -m physdev --physdev-in qvb$id -m comment --comment "Set zone for ${id%-}" -j CT --zone $zone
-A neutron-openvswi-PREROUTING -i qvb$id -m comment --comment "Set zone for ${id%-}" -j CT --zone $zone
-A neutron-openvswi-PREROUTING -m physdev --physdev-in $tap -m comment --comment "Set zone for ${id%-}" -j CT --zone $zone
EOT
    done
    echo COMMIT
    echo '*filter'
    cat <<EOT
:neutron-filter-top - [0:0]
:neutron-openvswi-local - [0:0]
:neutron-openvswi-sg-chain - [0:0]
:neutron-openvswi-sg-fallback - [0:0]
-A FORWARD -j neutron-filter-top
-A OUTPUT -j neutron-filter-top
-A neutron-filter-top -j neutron-openvswi-local
EOT
    hybrid_chains INPUT FORWARD OUTPUT
    for vm in "${VMS[@]}"; do
        read -r id tap mac ip zone <<<"$vm"
        hybrid_vm "${id:0:10}" "$tap" "$mac" "$ip"
    done
    cat <<EOT
-A neutron-openvswi-sg-chain -j ACCEPT
-A neutron-openvswi-sg-fallback -m comment --comment "Default drop rule for unmatched traffic." -j DROP
COMMIT
EOT
}

hybrid_chains() {
    local chain
    for chain; do
        printf ':neutron-openvswi-%s - [0:0]\n' "$chain"
    done
    for chain; do
        printf -- '-A %s -j neutron-openvswi-%s\n' "$chain" "$chain"
    done
}

# hybrid_vm ID TAP MAC IP: prints the chains of a VM. Its security group takes ssh and pings from
# all, and http from members of a group, which are in an ipset.
hybrid_vm() {
    local id=$1 tap=$2 mac=${3^^} ip=$4
    cat <<EOT
:neutron-openvswi-i$id - [0:0]
:neutron-openvswi-o$id - [0:0]
:neutron-openvswi-s$id - [0:0]
-A neutron-openvswi-FORWARD -m physdev --physdev-out $tap --physdev-is-bridged -m comment --comment "Direct traffic from the VM interface to the security group chain." -j neutron-openvswi-sg-chain
-A neutron-openvswi-FORWARD -m physdev --physdev-in $tap --physdev-is-bridged -m comment --comment "Direct traffic from the VM interface to the security group chain." -j neutron-openvswi-sg-chain
-A neutron-openvswi-INPUT -m physdev --physdev-in $tap --physdev-is-bridged -m comment --comment "Direct incoming traffic from VM to the security group chain." -j neutron-openvswi-o$id
-A neutron-openvswi-sg-chain -m physdev --physdev-out $tap --physdev-is-bridged -m comment --comment "Jump to the VM specific chain." -j neutron-openvswi-i$id
-A neutron-openvswi-sg-chain -m physdev --physdev-in $tap --physdev-is-bridged -m comment --comment "Jump to the VM specific chain." -j neutron-openvswi-o$id
-A neutron-openvswi-i$id -m state --state RELATED,ESTABLISHED -m comment --comment "Direct packets associated with a known session to the RETURN chain." -j RETURN
-A neutron-openvswi-i$id -d $ip/32 -p udp -m udp --sport 67 --dport 68 -j RETURN
-A neutron-openvswi-i$id -d 255.255.255.255/32 -p udp -m udp --sport 67 --dport 68 -j RETURN
-A neutron-openvswi-i$id -p tcp -m tcp --dport 22 -j RETURN
-A neutron-openvswi-i$id -p icmp -j RETURN
-A neutron-openvswi-i$id -p tcp -m tcp -m set --match-set $GROUP src -m multiport --dports 80:81 -j RETURN
-A neutron-openvswi-i$id -m state --state INVALID -m comment --comment "Drop packets that appear related to an existing connection (e.g. TCP ACK/FIN) but do not have an entry in conntrack." -j DROP
-A neutron-openvswi-i$id -m comment --comment "Send unmatched traffic to the fallback chain." -j neutron-openvswi-sg-fallback
-A neutron-openvswi-o$id -s 0.0.0.0/32 -d 255.255.255.255/32 -p udp -m udp --sport 68 --dport 67 -m comment --comment "Allow DHCP client traffic." -j RETURN
-A neutron-openvswi-o$id -j neutron-openvswi-s$id
-A neutron-openvswi-o$id -p udp -m udp --sport 68 --dport 67 -m comment --comment "Allow DHCP client traffic." -j RETURN
-A neutron-openvswi-o$id -p udp -m udp --sport 67 --dport 68 -m comment --comment "Prevent DHCP Spoofing by VM." -j DROP
-A neutron-openvswi-o$id -m state --state RELATED,ESTABLISHED -m comment --comment "Direct packets associated with a known session to the RETURN chain." -j RETURN
-A neutron-openvswi-o$id -j RETURN
-A neutron-openvswi-o$id -m state --state INVALID -m comment --comment "Drop packets that appear related to an existing connection (e.g. TCP ACK/FIN) but do not have an entry in conntrack." -j DROP
-A neutron-openvswi-o$id -m comment --comment "Send unmatched traffic to the fallback chain." -j neutron-openvswi-sg-fallback
-A neutron-openvswi-s$id -s $ip/32 -m mac --mac-source $mac -m comment --comment "Allow traffic from defined IP/MAC pairs." -j RETURN
-A neutron-openvswi-s$id -m comment --comment "Drop traffic without an IP/MAC allow rule." -j DROP
EOT
}
