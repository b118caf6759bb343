# shellcheck shell=bash
# What ovnkube writes itself: the flows of the bridge to the outside. Topologies use it.

# breth0_flows UPLINK PATCH HOST [NETWORK]: prints the flows of a node with the address HOST, the
# MAC $UPLINK_MAC and pods in $POD_SUBNET. The host and the gateway router share one
# address; the marks of conntrack zone 64000 give the owner of a connection (1:
# the router, 2: the host), 64001 to 64003 carry host to service traffic. NETWORK is the patch
# port of a user-defined network (network_flows).
breth0_flows() {
    local up=$1 ovn=$2 host=$3 all=output:$2,${4:+output:$4,} mac=$UPLINK_MAC c=cookie=0xdeff105 svc=10.96.0.0/16
    cat <<EOF
$c,table=0,priority=500,ip,in_port=LOCAL,nw_dst=169.254.169.1,actions=ct(table=5,zone=64002,nat)
$c,table=0,priority=500,ip,in_port=LOCAL,nw_dst=$svc,actions=ct(commit,table=2,zone=64001,nat(src=169.254.169.2))
$c,table=0,priority=550,ip,in_port=LOCAL,nw_src=169.254.169.0/29,nw_dst=$svc,actions=ct(commit,table=2,zone=64001)
$c,table=0,priority=500,ip,in_port=$ovn,nw_src=$svc,nw_dst=169.254.169.2,actions=ct(table=3,zone=64001,nat)
$c,table=0,priority=500,ip,in_port=$ovn,nw_src=$host,nw_dst=169.254.169.2,actions=ct(commit,table=4,zone=64001,nat(dst=$host))
$c,table=0,priority=500,ipv6,in_port=LOCAL,ipv6_dst=fd69::1,actions=ct(table=5,zone=64002,nat)
$c,table=0,priority=500,ipv6,in_port=LOCAL,ipv6_dst=fd00:10:96::/112,actions=ct(commit,table=2,zone=64001,nat(src=fd69::2))
$c,table=0,priority=205,udp,in_port=$up,dl_dst=$mac,tp_dst=6081,actions=LOCAL
$c,table=0,priority=200,udp,in_port=$up,tp_dst=6081,actions=NORMAL
$c,table=0,priority=200,udp,in_port=LOCAL,tp_dst=6081,actions=output:$up
cookie=0x3f2a9c,table=0,priority=110,tcp,in_port=$up,tp_dst=31000,actions=check_pkt_larger(1414)->NXM_NX_REG0[0],resubmit(,11)
cookie=0x3f2a9c,table=0,priority=110,tcp,in_port=$ovn,tp_src=31000,actions=output:$up
cookie=0x3f2a9d,table=0,priority=110,tcp,in_port=$up,tp_dst=31001,actions=ct(commit,zone=64003,nat(dst=$host:8443),table=6)
cookie=0x3f2a9d,table=6,priority=110,actions=output:LOCAL
cookie=0x3f2a9d,table=0,priority=110,tcp,in_port=LOCAL,tp_src=8443,actions=ct(zone=64003,nat,table=7)
cookie=0x3f2a9d,table=7,priority=110,actions=output:$up
cookie=0x51c8d7,table=0,priority=110,tcp,in_port=$up,nw_dst=192.0.2.80,tp_dst=80,actions=output:$ovn
cookie=0x51c8d7,table=0,priority=110,arp,in_port=$up,arp_op=1,arp_tpa=192.0.2.80,actions=output:$ovn
$c,table=0,priority=105,pkt_mark=0x3f0,ip,in_port=$ovn,dl_src=$mac,actions=ct(commit,zone=64000,nat(src=$host),exec(set_field:0x1->ct_mark)),output:$up
$c,table=0,priority=104,ip,in_port=$ovn,nw_src=$POD_SUBNET,actions=ct(commit,zone=64000,nat(src=$host),exec(set_field:0x1->ct_mark)),output:$up
$c,table=0,priority=100,ip,in_port=$ovn,dl_src=$mac,actions=ct(commit,zone=64000,exec(set_field:0x1->ct_mark)),output:$up
$c,table=0,priority=100,ip,in_port=LOCAL,actions=ct(commit,zone=64000,exec(set_field:0x2->ct_mark)),output:$up
$c,table=0,priority=100,ipv6,in_port=$ovn,dl_src=$mac,actions=ct(commit,zone=64000,exec(set_field:0x1->ct_mark)),output:$up
$c,table=0,priority=100,ipv6,in_port=LOCAL,actions=ct(commit,zone=64000,exec(set_field:0x2->ct_mark)),output:$up
$c,table=0,priority=50,ip,in_port=$up,dl_dst=$mac,actions=ct(zone=64000,nat,table=1)
$c,table=0,priority=50,ipv6,in_port=$up,dl_dst=$mac,actions=ct(zone=64000,nat,table=1)
$c,table=0,priority=14,icmp6,in_port=$up,icmp_type=134,actions=FLOOD
$c,table=0,priority=14,icmp6,in_port=$up,icmp_type=136,actions=FLOOD
$c,table=0,priority=10,in_port=$ovn,dl_src=$mac,actions=NORMAL
$c,table=0,priority=10,in_port=$up,dl_dst=$mac,actions=${all}LOCAL
$c,table=0,priority=10,arp,in_port=$up,arp_op=2,actions=${all}LOCAL
$c,table=0,priority=9,in_port=$ovn,actions=drop
$c,table=0,priority=0,actions=NORMAL
$c,table=1,priority=100,ip,ct_state=+trk+est,ct_mark=0x1,actions=output:$ovn
$c,table=1,priority=100,ip,ct_state=+trk+rel,ct_mark=0x1,actions=output:$ovn
$c,table=1,priority=100,ip,ct_state=+trk+est,ct_mark=0x2,actions=LOCAL
$c,table=1,priority=100,ip,ct_state=+trk+rel,ct_mark=0x2,actions=LOCAL
$c,table=1,priority=100,ipv6,ct_state=+trk+est,ct_mark=0x1,actions=output:$ovn
$c,table=1,priority=100,ipv6,ct_state=+trk+est,ct_mark=0x2,actions=LOCAL
$c,table=1,priority=15,ip,nw_dst=10.244.0.0/16,actions=ct(commit,zone=64000,exec(set_field:0x1->ct_mark)),output:$ovn
$c,table=1,priority=14,ip,nw_proto=2,actions=LOCAL
$c,table=1,priority=14,icmp6,icmp_type=130,actions=LOCAL
$c,table=1,priority=13,udp,in_port=$up,tp_dst=3784,actions=output:$ovn,LOCAL
$c,table=1,priority=10,dl_dst=$mac,actions=LOCAL
$c,table=1,priority=0,actions=NORMAL
$c,table=2,priority=100,actions=set_field:$mac->eth_dst,set_field:$mac->eth_src,output:$ovn
$c,table=3,priority=100,ip,actions=move:NXM_OF_ETH_DST[]->NXM_OF_ETH_SRC[],set_field:$mac->eth_dst,LOCAL
$c,table=4,priority=100,ip,actions=ct(commit,zone=64002,nat(src=169.254.169.1),table=3)
$c,table=5,priority=100,ip,actions=ct(commit,table=2,zone=64001,nat)
$c,table=11,priority=100,reg0=0x1,actions=LOCAL
$c,table=11,priority=1,actions=output:$ovn
EOF
}

# network_flows UPLINK PATCH HOST NETWORK: prints the further flows of a node with a primary
# user-defined network, with its masquerade addresses and marks and a node port, 31002. Services that
# the network may use of the default network go there.
network_flows() {
    local up=$1 ovn=$2 host=$3 udn=$4 mac=$UPLINK_MAC c=cookie=0xdeff105 svc=10.96.0.0/16 subnet=$MASQUERADE.0/24 ip
    cat <<EOF
$c,table=0,priority=550,ip,in_port=LOCAL,nw_src=$subnet,nw_dst=$svc,actions=ct(commit,table=2,zone=64001)
$c,table=0,priority=500,ip,in_port=$ovn,nw_src=$svc,nw_dst=$subnet,actions=ct(table=3,zone=64001,nat)
$c,table=0,priority=500,ip,in_port=$udn,nw_src=$svc,nw_dst=$subnet,actions=ct(table=3,zone=64001,nat)
$c,table=0,priority=500,ip,in_port=$udn,nw_src=$host,nw_dst=$MASQUERADE.2,actions=ct(commit,table=4,zone=64001,nat(dst=$host))
$c,table=0,priority=115,ip,in_port=$ovn,nw_dst=$svc,actions=drop
$c,table=0,priority=115,ip,in_port=$udn,nw_dst=$svc,actions=drop
cookie=0x5b1e70,table=0,priority=110,tcp,in_port=$up,tp_dst=31002,actions=output:$udn
cookie=0x5b1e70,table=0,priority=110,tcp,in_port=$udn,tp_src=31002,actions=output:$up
$c,table=0,priority=105,pkt_mark=0x3f0,ip,in_port=$udn,dl_src=$mac,actions=ct(commit,zone=64000,nat(src=$host),exec(set_field:$NETWORK_CT_MARK->ct_mark)),output:$up
$c,table=0,priority=103,ip,in_port=$udn,nw_src=10.100.0.0/16,actions=drop
$c,table=0,priority=100,ip,in_port=$udn,dl_src=$mac,nw_src=$NETWORK_GATEWAY,actions=ct(commit,zone=64000,nat(src=$host),exec(set_field:$NETWORK_CT_MARK->ct_mark)),output:$up
$c,table=0,priority=10,in_port=$udn,dl_src=$mac,actions=NORMAL
$c,table=0,priority=9,in_port=$udn,actions=drop
$c,table=1,priority=100,ip,ct_state=+trk+est,ct_mark=$NETWORK_CT_MARK,actions=output:$udn
$c,table=1,priority=100,ip,ct_state=+trk+rel,ct_mark=$NETWORK_CT_MARK,actions=output:$udn
$c,table=2,priority=250,ip,pkt_mark=$NETWORK_MARK,actions=set_field:$mac->eth_dst,output:$udn
$c,table=2,priority=200,ip,nw_src=$NETWORK_HOST,actions=drop
EOF
    for ip in $DNS_IP $API_IP; do
        printf '%s,table=2,priority=300,ip,nw_dst=%s,actions=set_field:%s->eth_dst,output:%s\n' "$c" "$ip" "$mac" "$ovn"
    done
}

# cookie NAMESPACE/NAME TOKEN PORT: prints the cookie of a service's flows: FNV-1a, 64 bits.
cookie() {
    local text=${1/\//}$2$3 i byte hash=$((16#cbf29ce484222325))
    for ((i = 0; i < ${#text}; i++)); do
        printf -v byte %d "'${text:i:1}"
        hash=$(((hash ^ byte) * 16#100000001b3))
    done
    printf '0x%x' "$hash"
}

# port_flows UPLINK PATCH NAMESPACE/NAME PROTOCOL PORT [ADDRESS]: prints the flows of a node port, or of a
# port of an address outside, which lead to OVN.
port_flows() {
    local up=$1 ovn=$2 to='' from='' c
    c=$(cookie "$3" "${6:-$4}" "$5")
    if [[ -n ${6:-} ]]; then
        to=nw_dst=$6, from=nw_src=$6,
        arp_flow "$up" "$c" "$6"
    fi
    cat <<EOF
cookie=$c,table=0,priority=110,$4,in_port=$up,${to}tp_dst=$5,actions=output:$ovn
cookie=$c,table=0,priority=110,$4,in_port=$ovn,dl_src=$UPLINK_MAC,${from}tp_src=$5,actions=output:$up
EOF
}

# host_port_flows UPLINK HOST TARGET NAMESPACE/NAME PROTOCOL PORT [ADDRESS]: prints those of a service with
# externalTrafficPolicy Local, of which the node itself has an endpoint, at HOST:TARGET.
host_port_flows() {
    local up=$1 host=$2 target=$3 to='' c
    c=$(cookie "$4" "${7:-$5}" "$6")
    if [[ -n ${7:-} ]]; then
        to=nw_dst=$7,
        arp_flow "$up" "$c" "$7"
    fi
    cat <<EOF
cookie=$c,table=0,priority=110,$5,in_port=$up,${to}tp_dst=$6,actions=ct(commit,zone=64003,nat(dst=$host:$target),table=6)
cookie=0xe745ecf105,table=6,priority=110,actions=output:LOCAL
cookie=$(cookie "$4" "$5" "$target"),table=0,priority=110,$5,in_port=LOCAL,tp_src=$target,actions=ct(zone=64003,nat,table=7)
cookie=0xe745ecf105,table=7,priority=110,actions=output:$up
EOF
}

# arp_flow UPLINK COOKIE ADDRESS: prints the flow that keeps requests for an address outside from OVN.
arp_flow() {
    printf 'cookie=%s,table=0,priority=110,arp,in_port=%s,arp_op=1,arp_tpa=%s,actions=output:LOCAL\n' "$2" "$1" "$3"
}
