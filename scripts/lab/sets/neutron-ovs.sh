# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by set.sh and lib.sh
# An ML2/OVS cloud: two computes and a network node, with neutron's openvswitch firewall
# on br-int and tunnels with known and learned addresses on br-tun. Network 101 is VXLAN
# over IPv6, network 120 a VLAN of the provider, and the external network flat. Each node
# has its own local VLANs. Routers are namespaces of the network node: packets for them
# come out of its interfaces.

SET_SUMMARY='ML2/OVS: two computes and a network node, VXLAN over IPv6, provider VLAN'
SET_NODES=(compute1 compute2 network)
SET_NETWORKS=(underlay physnet1)
SET_CENTRAL=none
COOKIE=0x8d7c3bb0f4ee2a1b

declare -gA OCTET=([compute1]=11 [compute2]=12 [network]=13)
# The local VLANs of the networks, by node.
declare -gA LOCAL_VLAN=(
    [compute1:101]=1 [compute2:101]=3 [network:101]=2
    [compute1:120]=4 [compute2:120]=5 [network:120]=6
    [network:flat]=9
)

# name, node, network, MAC, address, firewall or not
PORTS=(
    'vm1 compute1 101 fa:16:3e:65:00:11 10.101.0.11 firewall'
    'vm2 compute2 101 fa:16:3e:65:00:12 10.101.0.12 firewall'
    'vm3 compute1 101 fa:16:3e:65:00:13 10.101.0.13 firewall'
    'vm6 compute2 101 fa:16:3e:65:00:16 10.101.0.16 open'
    'vm4 compute1 120 fa:16:3e:78:00:11 10.120.0.11 firewall'
    'vm5 compute2 120 fa:16:3e:78:00:12 10.120.0.12 firewall'
    'dhcp network 101 fa:16:3e:65:00:02 10.101.0.2 open'
    'qr network 101 fa:16:3e:65:00:01 10.101.0.1 open'
    'qg network flat fa:16:3e:aa:00:05 203.0.113.5 open'
)

port_name() {
    local id
    id=$(made_uuid "ovs-port-$1")
    case $1 in
    qr | qg) printf '%s-%s' "$1" "${id:0:11}" ;;
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

node_switch() {
    local other
    ovs-vsctl add-br br-int -- set Bridge br-int fail_mode=secure datapath_type=system \
        other_config:mac-aging-time=3600 \
        -- add-br br-tun -- set Bridge br-tun fail_mode=secure datapath_type=system \
        -- add-br br-ex -- set Bridge br-ex fail_mode=secure datapath_type=system \
        other_config:mac-aging-time=3600
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
    local port name node network mac ip interface vlan
    for port in "${PORTS[@]}"; do
        read -r name node network mac ip _ <<<"$port"
        [[ $node == "$NODE" ]] || continue
        interface=$(port_name "$name")
        vlan=${LOCAL_VLAN[$NODE:$network]}
        local -a words=(mtu_request=1430)
        [[ $name != q* ]] || words=(type=internal)
        add_port br-int "$interface" edge "$name" "${words[@]}" \
            external_ids:iface-id="$(made_uuid "ovs-port-$name")" external_ids:iface-status=active \
            external_ids:attached-mac="\"$mac\"" \
            -- set Port "$interface" tag="$vlan" other_config:tag="$vlan" other_config:net_uuid="$(made_uuid "ovs-net-$network")"
    done
}

node_finish() {
    integration_base | sed "s/^/cookie=$COOKIE,/" | add_flows br-int OpenFlow13
    firewall | sed "s/^/cookie=$COOKIE,/" | add_flows br-int OpenFlow13
    tunnel_base | sed "s/^/cookie=$COOKIE,/" | add_flows br-tun OpenFlow13
    physical_base | sed "s/^/cookie=$COOKIE,/" | add_flows br-ex OpenFlow13
}

integration_base() {
    local vlan=${LOCAL_VLAN[$NODE:120]}
    cat <<EOT
table=0,priority=65535,dl_vlan=4095,actions=drop
table=0,priority=3,in_port=@int-br-ex@,dl_vlan=120,actions=mod_vlan_vid:$vlan,resubmit(,58)
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
    [[ -z ${LOCAL_VLAN[$NODE:flat]-} ]] ||
        echo "table=0,priority=3,in_port=@int-br-ex@,vlan_tci=0x0000/0x1fff,actions=mod_vlan_vid:${LOCAL_VLAN[$NODE:flat]},resubmit(,58)"
}

# vm1 also takes http from members of a remote group, by a conjunctive match.
firewall() {
    local port name node network mac ip kind interface
    for port in "${PORTS[@]}"; do
        read -r name node network mac ip kind <<<"$port"
        [[ $node == "$NODE" && $kind == firewall ]] || continue
        interface=$(port_name "$name")
        vm_flows "$interface" "${LOCAL_VLAN[$NODE:$network]}" "$mac" "$ip"
        firewall6 "$(ofport "$interface")" "${LOCAL_VLAN[$NODE:$network]}" "$mac" "fd00:$network::${ip##*.}"
        [[ $name != vm1 ]] || remote_group "$(ofport "$interface")" "${LOCAL_VLAN[$NODE:$network]}"
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

remote_group() {
    local reg="reg5=$1" member
    for member in 10.101.0.12 10.101.0.16; do
        printf 'table=82,priority=73,ct_state=+est-rel-rpl,ip,reg6=%s,nw_src=%s,actions=conjunction(16,1/2)\n' "$2" "$member"
        printf 'table=82,priority=73,ct_state=+new-est,ip,reg6=%s,nw_src=%s,actions=conjunction(17,1/2)\n' "$2" "$member"
    done
    printf 'table=82,priority=73,ct_state=+est-rel-rpl,tcp,%s,tp_dst=80,actions=conjunction(16,2/2)\n' "$reg"
    printf 'table=82,priority=73,ct_state=+new-est,tcp,%s,tp_dst=80,actions=conjunction(17,2/2)\n' "$reg"
    printf 'table=82,priority=73,conj_id=16,ct_state=+est-rel-rpl,ip,%s,actions=load:0x10->NXM_NX_REG7[],output:%s\n' "$reg" "$1"
    printf 'table=82,priority=73,conj_id=17,ct_state=+new-est,ip,%s,actions=load:0x11->NXM_NX_REG7[],ct(commit,zone=NXM_NX_REG6[0..15]),output:%s,resubmit(,92)\n' "$reg" "$1"
}

# With l2pop, the agent knows where VMs are, and answers ARP for them; others are learned.
tunnel_base() {
    local vlan=${LOCAL_VLAN[$NODE:101]} port name node network mac ip other flood='' hex
    for other in "${SET_NODES[@]}"; do
        [[ $other != "$NODE" ]] || continue
        flood+=",output:@$(hex_of "$other")@"
        echo "table=0,priority=1,in_port=@$(hex_of "$other")@,actions=resubmit(,4)"
    done
    cat <<EOT
table=0,priority=1,in_port=@patch-int@,actions=resubmit(,2)
table=0,priority=0,actions=drop
table=2,priority=1,arp,dl_dst=ff:ff:ff:ff:ff:ff,actions=resubmit(,21)
table=2,priority=0,dl_dst=00:00:00:00:00:00/01:00:00:00:00:00,actions=resubmit(,20)
table=2,priority=0,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=resubmit(,22)
table=3,priority=0,actions=drop
table=4,priority=1,tun_id=0x65,actions=mod_vlan_vid:$vlan,resubmit(,10)
table=4,priority=0,actions=drop
table=6,priority=0,actions=drop
table=10,priority=1,actions=learn(table=20,hard_timeout=3600,priority=1,cookie=$COOKIE,NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:0->NXM_OF_VLAN_TCI[],load:NXM_NX_TUN_ID[]->NXM_NX_TUN_ID[],output:OXM_OF_IN_PORT[]),output:@patch-int@
table=20,priority=0,actions=resubmit(,22)
table=21,priority=0,actions=resubmit(,22)
table=22,priority=1,dl_vlan=$vlan,actions=strip_vlan,load:0x65->NXM_NX_TUN_ID[]$flood
table=22,priority=0,actions=drop
EOT
    for port in "${PORTS[@]}"; do
        read -r name node network mac ip _ <<<"$port"
        [[ $network == 101 && $node != "$NODE" && $name == vm* && $name != vm6 ]] || continue
        hex=${mac//:/}
        echo "table=20,priority=2,dl_vlan=$vlan,dl_dst=$mac,actions=strip_vlan,load:0x65->NXM_NX_TUN_ID[],output:@$(hex_of "$node")@"
        echo "table=21,priority=1,arp,dl_vlan=$vlan,arp_tpa=$ip,actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],mod_dl_src:$mac,load:0x2->NXM_OF_ARP_OP[],move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],load:0x$hex->NXM_NX_ARP_SHA[],load:$(hex_ip "$ip")->NXM_OF_ARP_SPA[],IN_PORT"
    done
}

hex_ip() {
    local a b c d
    IFS=. read -r a b c d <<<"$1"
    printf '0x%02x%02x%02x%02x' "$a" "$b" "$c" "$d"
}

physical_base() {
    cat <<EOT
table=0,priority=4,in_port=@phy-br-ex@,dl_vlan=${LOCAL_VLAN[$NODE:120]},actions=mod_vlan_vid:120,NORMAL
table=0,priority=2,in_port=@phy-br-ex@,actions=drop
table=0,priority=0,actions=NORMAL
EOT
    [[ -z ${LOCAL_VLAN[$NODE:flat]-} ]] ||
        echo "table=0,priority=4,in_port=@phy-br-ex@,dl_vlan=${LOCAL_VLAN[$NODE:flat]},actions=strip_vlan,NORMAL"
}
