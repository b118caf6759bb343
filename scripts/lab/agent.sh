# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by set.sh and lib.sh
# Nodes of ML2/OVS clouds, as neutron's openvswitch agent makes them: the bridges, the ports
# of VMs with the openvswitch firewall on br-int, and tunnels with known and learned addresses
# on br-tun. Sets of such clouds source this file and define:
#   OCTET         the last part of the addresses of each node
#   TUNNELS       networks that are VXLAN over IPv6; the number is the VNI
#   VLANS         networks that are a VLAN of the provider; the number is the VLAN
#   LOCAL_VLAN    the local VLANs of networks, by NODE:NETWORK; of the network "flat" the
#                 provider's without a tag
#   PORTS         the ports of br-int: name, node, network, MAC, address, firewall or not
#   UNKNOWN       the names of VMs that l2pop does not know
#   POPULATED     further ports that l2pop knows: name, node, network, MAC, address

COOKIE=0x8d7c3bb0f4ee2a1b
UNKNOWN=()
POPULATED=()
VLANS=()

port_name() {
    local id
    id=$(made_uuid "ovs-port-$1")
    case $1 in
    q[rg]* | sg* | fg* | ha*) printf '%s-%s' "${1%%.*}" "${id:0:11}" ;;
    *) printf 'tap%s' "${id:0:11}" ;;
    esac
}

node_identity() {
    TOPO_HOST=$1
    TOPO_SYSTEM_ID=$(made_uuid "$1")
    UNDERLAY_IP=fd00:24::${OCTET[$1]}
    TOPO_OVS_SETTINGS=(other_config:vlan-limit=2)
}

set_fabric() {
    local node
    for node in "${SET_NODES[@]}"; do
        fabric_wire underlay "$node" eth0
        fabric_wire physnet1 "$node" eth1
    done
    fabric_outside physnet1 ext0
}

hex_of() { printf 'vxlan-%04x' "${OCTET[$1]}"; }

# agent_switch: makes the bridges, tunnels and ports of a node.
agent_switch() {
    local other
    add_bridge br-int fail_mode=secure other_config:mac-aging-time=3600
    add_bridge br-tun fail_mode=secure
    add_bridge br-ex fail_mode=secure other_config:mac-aging-time=3600
    take_down br-int
    take_down br-tun
    add_underlay br-eth0 eth0 "$UNDERLAY_IP/64" "52:54:00:28:00:${OCTET[$NODE]}"
    add_local br-ex "52:54:00:29:00:${OCTET[$NODE]}"
    add_wire br-ex eth1 uplink
    patch br-int patch-tun br-tun patch-int
    patch br-int int-br-ex br-ex phy-br-ex
    for other in "${SET_NODES[@]}"; do
        [[ $other != "$NODE" ]] || continue
        meet br-eth0 "fd00:24::${OCTET[$other]}" "52:54:00:28:00:${OCTET[$other]}"
        ovs-vsctl add-port br-tun "$(hex_of "$other")" -- set Interface "$(hex_of "$other")" type=vxlan \
            options:local_ip="\"$UNDERLAY_IP\"" options:remote_ip="\"fd00:24::${OCTET[$other]}\"" \
            options:in_key=flow options:out_key=flow options:df_default=true options:egress_pkt_mark=0
    done
    node_ports
}

# patch BRIDGE PORT OTHER-BRIDGE OTHER-PORT
patch() {
    ovs-vsctl add-port "$1" "$2" -- set Interface "$2" type=patch options:peer="$4" \
        -- add-port "$3" "$4" -- set Interface "$4" type=patch options:peer="$2"
}

node_ports() {
    local port name node network mac interface
    for port in "${PORTS[@]}"; do
        read -r name node network mac _ <<<"$port"
        [[ $node == "$NODE" ]] || continue
        interface=$(port_name "$name")
        local -a words=(mtu_request=1430)
        [[ $name != q* ]] || words=(type=internal)
        add_port br-int "$interface" edge "$name" "${words[@]}"
        bind_port "$name" "$interface" "$network" "$mac"
    done
}

# bind_port NAME INTERFACE NETWORK MAC: says whose port an interface of br-int is, as
# neutron does, and gives it the network's local VLAN.
bind_port() {
    local vlan=${LOCAL_VLAN[$NODE:$3]}
    ovs-vsctl set Interface "$2" external_ids:iface-id="$(made_uuid "ovs-port-$1")" external_ids:iface-status=active \
        external_ids:attached-mac="\"$4\"" \
        -- set Port "$2" tag="$vlan" other_config:tag="$vlan" other_config:net_uuid="$(made_uuid "ovs-net-$3")"
}

# agent_flows: writes what the agent writes into the bridges. br-int is last: until then nothing
# leaves a port, and no other node learns an address from a bridge that is not ready.
agent_flows() {
    {
        tunnel_base
        dvr_tunnel
    } | write_flows br-tun
    {
        physical_base
        dvr_physical
    } | write_flows br-ex
    {
        integration_base
        firewall
        dvr_integration
        more_flows
    } | write_flows br-int
}

write_flows() { sed "s/^/cookie=$COOKIE,/" | add_flows "$1" OpenFlow13; }

# What sets with distributed routers (dvr.sh) and other sets write too.
dvr_tunnel() { :; }
dvr_physical() { :; }
dvr_integration() { :; }
more_flows() { :; }

integration_base() {
    local network
    cat <<EOT
table=0,priority=65535,dl_vlan=4095,actions=drop
table=0,priority=2,in_port=@int-br-ex@,actions=drop
table=0,priority=0,actions=resubmit(,58)
table=23,priority=0,actions=drop
table=24,priority=0,actions=drop
table=30,priority=0,actions=resubmit(,58)
table=58,priority=0,actions=resubmit(,59)
table=59,priority=0,actions=resubmit(,60)
table=60,priority=3,actions=NORMAL
table=62,priority=3,actions=NORMAL
table=71,priority=110,ct_state=+trk,actions=ct_clear,resubmit(,71)
table=71,priority=0,actions=drop
table=72,priority=0,actions=drop
table=73,priority=0,actions=drop
table=81,priority=0,actions=drop
table=82,priority=0,actions=drop
table=91,priority=1,actions=resubmit(,94)
table=92,priority=0,actions=drop
table=93,priority=0,actions=drop
table=94,priority=1,actions=NORMAL
EOT
    for network in "${VLANS[@]}"; do
        echo "table=0,priority=3,in_port=@int-br-ex@,dl_vlan=$network,actions=mod_vlan_vid:${LOCAL_VLAN[$NODE:$network]},resubmit(,58)"
    done
    [[ -z ${LOCAL_VLAN[$NODE:flat]-} ]] ||
        echo "table=0,priority=3,in_port=@int-br-ex@,vlan_tci=0x0000/0x1fff,actions=mod_vlan_vid:${LOCAL_VLAN[$NODE:flat]},resubmit(,58)"
}

firewall() {
    local port name node network mac ip kind interface
    for port in "${PORTS[@]}"; do
        read -r name node network mac ip kind <<<"$port"
        [[ $node == "$NODE" && $kind == firewall ]] || continue
        interface=$(port_name "$name")
        vm_flows "$interface" "${LOCAL_VLAN[$NODE:$network]}" "$mac" "$ip"
        firewall6 "$(ofport "$interface")" "${LOCAL_VLAN[$NODE:$network]}" "$mac" "fd00:$network::${ip##*.}"
    done
}

# firewall6 PORT VLAN MAC IP: the same group for IPv6, with pings and ssh.
firewall6() {
    local port=$1 vlan=$2 mac=$3 ip=$4 reg=reg5=$1
    cat <<EOT
table=24,priority=2,icmp6,in_port=$port,icmp_type=136,nd_target=$ip,actions=resubmit(,25)
table=71,priority=95,icmp6,$reg,in_port=$port,dl_src=$mac,icmp_type=136,nd_target=$ip,actions=resubmit(,94)
table=71,priority=65,ipv6,$reg,in_port=$port,dl_src=$mac,ipv6_src=$ip,actions=ct(table=72,zone=NXM_NX_REG6[0..15])
table=72,priority=74,ct_state=+est-rel-rpl,ipv6,$reg,actions=resubmit(,73)
table=72,priority=74,ct_state=+new-est,ipv6,$reg,actions=resubmit(,73)
table=73,priority=90,ct_state=+new-est,ipv6,$reg,actions=ct(commit,zone=NXM_NX_REG6[0..15]),resubmit(,91)
table=81,priority=100,icmp6,$reg,icmp_type=136,actions=output:$port
table=81,priority=90,ct_state=-trk,ipv6,$reg,actions=ct(table=82,zone=NXM_NX_REG6[0..15])
table=82,priority=75,ct_state=+est-rel-rpl,icmp6,$reg,actions=output:$port
table=82,priority=75,ct_state=+new-est,icmp6,$reg,icmp_type=128,actions=ct(commit,zone=NXM_NX_REG6[0..15]),output:$port,resubmit(,92)
table=82,priority=77,ct_state=+est-rel-rpl,tcp6,$reg,tp_dst=22,actions=output:$port
table=82,priority=77,ct_state=+new-est,tcp6,$reg,tp_dst=22,actions=ct(commit,zone=NXM_NX_REG6[0..15]),output:$port,resubmit(,92)
EOT
}

# trusted_flows: prints the flows of ports without firewall: devices of routers, and VMs without
# port security. What they send to VMs of the node meets the firewall of those.
trusted_flows() {
    local port name node network kind interface number
    for port in "${PORTS[@]}"; do
        read -r name node network _ _ kind <<<"$port"
        [[ $node != "$NODE" || $kind != open ]] || trusted_port "$(ofport "$(port_name "$name")")" "${LOCAL_VLAN[$NODE:$network]}"
    done
    while read -r _ interface number kind _; do
        [[ $kind != namespace ]] || trusted_port "$number" "$(ovs-vsctl get Port "$interface" tag)"
    done <"$LAB/ports"
}

trusted_port() {
    cat <<EOT
table=60,priority=100,in_port=$1,actions=load:$1->NXM_NX_REG5[],load:$2->NXM_NX_REG6[],resubmit(,73)
table=73,priority=80,reg5=$1,actions=resubmit(,94)
EOT
}

# With l2pop, the agent knows where VMs are, and answers ARP for them; others are learned.
tunnel_base() {
    local other network
    for other in "${SET_NODES[@]}"; do
        [[ $other == "$NODE" ]] || echo "table=0,priority=1,in_port=@$(hex_of "$other")@,actions=resubmit(,4)"
    done
    cat <<EOT
table=0,priority=1,in_port=@patch-int@,actions=resubmit(,2)
table=0,priority=0,actions=drop
table=2,priority=1,arp,dl_dst=ff:ff:ff:ff:ff:ff,actions=resubmit(,21)
table=2,priority=0,dl_dst=00:00:00:00:00:00/01:00:00:00:00:00,actions=resubmit(,20)
table=2,priority=0,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=resubmit(,22)
table=3,priority=0,actions=drop
table=4,priority=0,actions=drop
table=6,priority=0,actions=drop
table=10,priority=1,actions=learn(table=20,hard_timeout=3600,priority=1,cookie=$COOKIE,NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:0->NXM_OF_VLAN_TCI[],load:NXM_NX_TUN_ID[]->NXM_NX_TUN_ID[],output:OXM_OF_IN_PORT[]),output:@patch-int@
table=20,priority=0,actions=resubmit(,22)
table=21,priority=0,actions=resubmit(,22)
table=22,priority=0,actions=drop
EOT
    for network in "${TUNNELS[@]}"; do
        tunnel_network "$network"
    done
}

# tunnel_network NETWORK: prints the flows of br-tun of a network.
tunnel_network() {
    local vlan=${LOCAL_VLAN[$NODE:$1]} key port name node network mac ip other flood='' hex
    key=$(printf '0x%x' "$1")
    for other in "${SET_NODES[@]}"; do
        [[ $other == "$NODE" ]] || flood+=",output:@$(hex_of "$other")@"
    done
    cat <<EOT
table=4,priority=1,tun_id=$key,actions=mod_vlan_vid:$vlan,resubmit(,10)
table=22,priority=1,dl_vlan=$vlan,actions=strip_vlan,load:$key->NXM_NX_TUN_ID[]$flood
EOT
    for port in "${PORTS[@]}" "${POPULATED[@]}"; do
        read -r name node network mac ip _ <<<"$port"
        [[ $network == "$1" && $node != "$NODE" && " ${UNKNOWN[*]} " != *" $name "* ]] || continue
        hex=${mac//:/}
        echo "table=20,priority=2,dl_vlan=$vlan,dl_dst=$mac,actions=strip_vlan,load:$key->NXM_NX_TUN_ID[],output:@$(hex_of "$node")@"
        echo "table=21,priority=1,arp,dl_vlan=$vlan,arp_tpa=$ip,actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],mod_dl_src:$mac,load:0x2->NXM_OF_ARP_OP[],move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],load:0x$hex->NXM_NX_ARP_SHA[],load:$(hex_ip "$ip")->NXM_OF_ARP_SPA[],IN_PORT"
    done
}

hex_ip() {
    local a b c d
    IFS=. read -r a b c d <<<"$1"
    printf '0x%02x%02x%02x%02x' "$a" "$b" "$c" "$d"
}

physical_base() {
    local network
    cat <<EOT
table=0,priority=2,in_port=@phy-br-ex@,actions=drop
table=0,priority=0,actions=NORMAL
EOT
    for network in "${VLANS[@]}"; do
        echo "table=0,priority=4,in_port=@phy-br-ex@,dl_vlan=${LOCAL_VLAN[$NODE:$network]},actions=mod_vlan_vid:$network,NORMAL"
    done
    [[ -z ${LOCAL_VLAN[$NODE:flat]-} ]] ||
        echo "table=0,priority=4,in_port=@phy-br-ex@,dl_vlan=${LOCAL_VLAN[$NODE:flat]},actions=strip_vlan,NORMAL"
}
