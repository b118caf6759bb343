# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of sets
# What neutron's openvswitch agent writes for distributed routers (ovs_dvr_neutron_agent.py):
# a router has the same MAC on each node, so that what it sends to other nodes leaves with the
# MAC of the node, and the other node puts the router's MAC back. A set defines:
#   DVR_MAC     the MAC of each node
#   DVR_PORTS   interfaces of distributed routers: name, network, MAC, address
#   DVR_NODES   the nodes where the routers are
#   DVR_SNAT    ports of snat namespaces: name, node, network, MAC, address

# other_macs: prints the MACs of the other nodes.
other_macs() {
    local node
    for node in "${SET_NODES[@]}"; do
        [[ $node == "$NODE" ]] || echo "${DVR_MAC[$node]}"
    done
}

has_routers() { [[ " ${DVR_NODES[*]} " == *" $NODE "* ]]; }

dvr_integration() {
    local mac port
    cat <<EOT
table=1,priority=1,actions=drop
table=2,priority=1,actions=drop
table=0,priority=5,in_port=@patch-tun@,dl_dst=${DVR_MAC[$NODE]},actions=resubmit(,3)
table=0,priority=5,in_port=@int-br-ex@,dl_dst=${DVR_MAC[$NODE]},actions=resubmit(,4)
EOT
    for mac in $(other_macs); do
        echo "table=0,priority=2,in_port=@patch-tun@,dl_src=$mac,actions=resubmit(,1)"
        echo "table=0,priority=4,in_port=@int-br-ex@,dl_src=$mac,actions=resubmit(,2)"
    done
    ! has_routers || for port in "${DVR_PORTS[@]}"; do
        dvr_interface "$port"
    done
}

# dvr_interface PORT: prints the flows of br-int of an interface of a router: the ports of its
# network on this node, and ARP replies for it.
dvr_interface() {
    local name network gateway address other node mac vlan
    read -r name network gateway address <<<"$1"
    vlan=${LOCAL_VLAN[$NODE:$network]}
    for other in "${PORTS[@]}" "${DVR_SNAT[@]}"; do
        read -r other node _ mac _ <<<"$other"
        [[ $node == "$NODE" && $(network_of "$other") == "$network" ]] || continue
        cat <<EOT
table=1,priority=20,dl_vlan=$vlan,dl_dst=$mac,actions=mod_dl_src:$gateway,resubmit(,58)
table=60,priority=20,dl_vlan=$vlan,dl_dst=$mac,actions=strip_vlan,output:@$(port_name "$other")@
EOT
    done
    cat <<EOT
table=3,priority=5,dl_vlan=$vlan,dl_dst=${DVR_MAC[$NODE]},actions=mod_dl_dst:$gateway,strip_vlan,output:@$(port_name "$name")@
table=0,priority=99,arp,dl_dst=${DVR_MAC[$NODE]},arp_op=2,arp_tha=$gateway,actions=mod_dl_dst:$gateway,resubmit(,58)
EOT
}

# network_of NAME: prints the network of a port.
network_of() {
    local port name network
    for port in "${PORTS[@]}" "${DVR_SNAT[@]}"; do
        read -r name _ network _ <<<"$port"
        [[ $name != "$1" ]] || echo "$network"
    done
}

dvr_tunnel() {
    local mac port name network address vlan
    cat <<EOT
table=0,priority=1,in_port=@patch-int@,actions=resubmit(,1)
table=1,priority=0,actions=resubmit(,2)
table=9,priority=0,actions=resubmit(,10)
EOT
    for mac in $(other_macs); do
        echo "table=9,priority=1,dl_src=$mac,actions=output:@patch-int@"
    done
    for network in "${TUNNELS[@]}"; do
        printf 'table=4,priority=1,tun_id=0x%x,actions=mod_vlan_vid:%s,resubmit(,9)\n' "$network" "${LOCAL_VLAN[$NODE:$network]}"
    done
    ! has_routers || for port in "${DVR_PORTS[@]}"; do
        read -r name network mac address <<<"$port"
        vlan=${LOCAL_VLAN[$NODE:$network]}
        cat <<EOT
table=22,priority=3,arp,dl_vlan=$vlan,arp_tpa=$address,actions=drop
table=1,priority=2,dl_vlan=$vlan,dl_dst=$mac,actions=drop
table=1,priority=1,dl_vlan=$vlan,dl_src=$mac,actions=mod_dl_src:${DVR_MAC[$NODE]},resubmit(,2)
EOT
    done
}

dvr_physical() {
    local mac
    cat <<EOT
table=0,priority=2,in_port=@phy-br-ex@,actions=resubmit(,1)
table=0,priority=1,actions=resubmit(,3)
table=1,priority=0,actions=resubmit(,2)
table=2,priority=4,in_port=@phy-br-ex@,dl_vlan=${LOCAL_VLAN[$NODE:flat]},actions=strip_vlan,NORMAL
table=2,priority=2,in_port=@phy-br-ex@,actions=drop
table=3,priority=1,actions=NORMAL
EOT
    for mac in $(other_macs); do
        echo "table=3,priority=2,dl_src=$mac,actions=output:@phy-br-ex@"
    done
}
