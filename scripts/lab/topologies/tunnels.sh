# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by lib.sh
# A gateway between overlays: Geneve, VXLAN, GRE and similar tunnels over IPv4
# and IPv6, with fixed ends, with ends and keys set by flows, and two tunnels
# that fail.
#
# Differences from a real node: no kernel builds the outer headers; the datapath
# gets the same metadata as the kernel would. GTP-U is missing, because the
# kernel's datapath does not support it.

TOPO_SUMMARY='Geneve, VXLAN (GBP, GPE), GRE, ERSPAN over IPv4 and IPv6, by flow and fixed; tunnel metadata'
TOPO_HOST=overlay-gw-02
TOPO_SYSTEM_ID=6f1a90d4-bb3e-4c7f-97a0-e85c5d1f0202
TOPO_OVN=no

LOCAL4=10.20.0.2
LOCAL6=fd00:20::2

topo_node() {
    underlay
    switched_bridge
    routed_bridge
    odd_bridge
}

underlay() {
    in_ns node ip link add eth1 type veth peer name eth1-peer
    in_ns node ip addr add $LOCAL4/24 dev eth1
    in_ns node ip addr add $LOCAL6/64 dev eth1 nodad
    in_ns node ip link set eth1 up
    in_ns node ip link set eth1-peer up
}

tunnel() {
    local bridge=$1 name=$2 type=$3 option
    shift 3
    local -a options=()
    for option; do
        case $option in
        *=*:*) options+=("options:${option%%=*}=\"${option#*=}\"") ;;
        *) options+=("options:$option") ;;
        esac
    done
    ovs-vsctl --no-wait add-port "$bridge" "$name" -- set Interface "$name" type="$type" "${options[@]}"
    wait_for "$name to open or fail" 5 has_number "$name"
}

has_number() { [[ $(ovs-vsctl get Interface "$1" ofport) != '[]' ]]; }

# Tunnels with fixed ends, and NORMAL between them.
switched_bridge() {
    ovs-vsctl add-br br-sw -- set Bridge br-sw datapath_type=system other_config:hwaddr='"52:54:00:f0:00:01"' \
        protocols=OpenFlow10,OpenFlow13,OpenFlow15
    ovs-vsctl add-port br-sw vm1 tag=10
    tunnel br-sw vxlan-a vxlan remote_ip=10.20.0.3 local_ip=$LOCAL4 key=1000
    ovs-vsctl set Port vxlan-a tag=10
    ovs-vsctl add-port br-sw vm2 tag=10
    tunnel br-sw geneve-a geneve remote_ip=10.20.0.4 local_ip=$LOCAL4 key=flow csum=true tos=inherit
    tunnel br-sw gre-a gre remote_ip=10.20.0.5 local_ip=$LOCAL4 key=77 ttl=inherit df_default=false
    ovs-vsctl set Port gre-a tag=20
    tunnel br-sw vxlan6 vxlan remote_ip=fd00:20::3 local_ip=$LOCAL6 key=1006 tos=32 ttl=5
    tunnel br-sw gre6 ip6gre remote_ip=fd00:20::5 local_ip=$LOCAL6 key=76
    ovs-vsctl add-port br-sw vm3 tag=20
    tunnel br-sw geneve6 geneve remote_ip=fd00:20::4 key=6 egress_pkt_mark=5
    tunnel br-sw vxlan-in vxlan remote_ip=10.20.0.6 in_key=5 out_key=6 dst_port=4799
    # a tunnel with the same type, key and remote end as vxlan-a
    tunnel br-sw vxlan-dup vxlan remote_ip=10.20.0.3 local_ip=$LOCAL4 key=1000
}

# Tunnels with ends, keys and options set by flows.
routed_bridge() {
    ovs-vsctl add-br br-flow -- set Bridge br-flow datapath_type=system fail_mode=secure \
        other_config:hwaddr='"52:54:00:f0:00:02"' protocols=OpenFlow10,OpenFlow13,OpenFlow15
    tunnel br-flow gnv geneve remote_ip=flow key=flow
    ovs-vsctl add-port br-flow pod1
    tunnel br-flow vxl vxlan remote_ip=flow local_ip=flow key=flow exts=gbp dst_port=4790
    ovs-vsctl add-port br-flow pod2
    tunnel br-flow greflow gre remote_ip=flow key=flow
    tunnel br-flow span erspan remote_ip=flow key=flow erspan_ver=flow
    tunnel br-flow span6 ip6erspan remote_ip=flow local_ip=$LOCAL6 key=flow erspan_ver=2 erspan_dir=1 erspan_hwid=4
}

# Layer 3 tunnels, tunnels for a single local address, and one without a remote
# end.
odd_bridge() {
    ovs-vsctl add-br br-odd -- set Bridge br-odd datapath_type=system fail_mode=secure \
        other_config:hwaddr='"52:54:00:f0:00:03"' protocols=OpenFlow13,OpenFlow15
    ovs-vsctl add-port br-odd host1
    tunnel br-odd gpe vxlan remote_ip=10.20.0.7 key=7 exts=gpe dst_port=4795 packet_type=legacy_l3
    tunnel br-odd gre-l3 gre remote_ip=10.20.0.8 key=8 packet_type=legacy_l3
    tunnel br-odd gre-any gre remote_ip=flow local_ip=$LOCAL4 in_key=9 out_key=flow
    tunnel br-odd span1 erspan remote_ip=10.20.0.9 key=9 erspan_ver=1 erspan_idx=3
    tunnel br-odd lost geneve key=5
}

topo_flows() {
    ovs-ofctl -O OpenFlow15 add-tlv-map br-flow \
        '{class=0x102,type=0x80,len=4}->tun_metadata0,{class=0x103,type=0x1,len=8}->tun_metadata1,{class=0,type=0x7,len=4}->tun_metadata63'
    add_flows br-flow OpenFlow15 <<FLOWS
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=1,actions=set_field:10.20.0.10->tun_dst,set_field:0x1234->tun_id,output:@gnv@
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=2,actions=set_field:10.20.0.10->tun_dst,set_field:0x1234->tun_id,set_field:0x10002->tun_metadata0,set_field:0x1122334455667788->tun_metadata1,set_field:7->tun_metadata63,output:@gnv@
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=3,actions=set_field:fd00:20::10->tun_ipv6_dst,set_field:$LOCAL6->tun_ipv6_src,set_field:3->tun_id,output:@gnv@
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=4,actions=set_field:10.20.0.11->tun_dst,set_field:$LOCAL4->tun_src,set_field:5->tun_id,set_field:0x222->tun_gbp_id,set_field:0x8->tun_gbp_flags,output:@vxl@
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=5,actions=set_field:10.20.0.12->tun_dst,set_field:6->tun_id,output:@greflow@
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=6,actions=set_field:10.20.0.13->tun_dst,set_field:7->tun_id,set_field:1->tun_erspan_ver,set_field:0x3->tun_erspan_idx,output:@span@
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=7,actions=set_field:fd00:20::13->tun_ipv6_dst,set_field:7->tun_id,output:@span6@
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=8,actions=set_field:$LOCAL4->tun_dst,set_field:8->tun_id,output:@gnv@
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=9,actions=output:@gnv@
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=10,actions=set_field:10.20.0.10->tun_dst,set_field:0xa->tun_id,output:@gnv@,set_field:10.20.0.14->tun_dst,output:@gnv@,output:@pod2@,output:@vxl@
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=11,actions=move:NXM_OF_IP_DST[]->NXM_NX_TUN_IPV4_DST[],load:0x63->NXM_NX_TUN_ID[0..23],set_field:128->pkt_mark,output:@gnv@
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=12,actions=set_field:10.20.0.10->tun_dst,set_field:oam->tun_flags,set_field:0xc->tun_id,output:@gnv@
table=0,priority=50,tcp,in_port=@pod1@,tp_dst=13,actions=clone(set_field:10.20.0.10->tun_dst,set_field:0xd->tun_id,output:@gnv@),output:@pod2@
table=0,priority=40,in_port=@gnv@,tun_id=0x1234,tun_metadata0=0x10000/0xffff0000,actions=move:NXM_NX_TUN_METADATA0[0..15]->NXM_NX_REG15[0..15],resubmit(,5)
table=0,priority=40,in_port=@gnv@,tun_metadata1,actions=output:@pod2@
table=0,priority=40,in_port=@gnv@,tun_flags=+oam,actions=drop
table=0,priority=39,in_port=@gnv@,tun_src=10.20.0.0/24,actions=output:@pod1@
table=0,priority=39,in_port=@gnv@,tun_ipv6_src=fd00:20::/64,actions=output:@pod1@,output:@pod2@
table=0,priority=40,in_port=@vxl@,tun_gbp_id=0x222,tun_gbp_flags=0x8/0x8,actions=output:@pod1@
table=0,priority=30,in_port=@vxl@,actions=output:@greflow@,output:@pod2@
table=0,priority=30,in_port=@greflow@,actions=move:NXM_NX_TUN_IPV4_SRC[]->NXM_NX_TUN_IPV4_DST[],set_field:0xff->tun_id,IN_PORT,output:@gnv@
table=0,priority=30,in_port=@span@,tun_erspan_ver=1,tun_erspan_idx=0x3,actions=output:@pod1@
table=0,priority=30,in_port=@span@,actions=drop
table=5,priority=2,reg15=0x2/0xffff,actions=output:@pod2@
table=5,priority=1,actions=output:@pod1@
FLOWS
    add_flows br-odd OpenFlow13 <<'FLOWS'
table=0,priority=50,tcp,in_port=@host1@,tp_dst=1,actions=output:@gpe@
table=0,priority=50,tcp,in_port=@host1@,tp_dst=2,actions=output:@gre-l3@
table=0,priority=50,tcp,in_port=@host1@,tp_dst=3,actions=set_field:10.20.0.15->tun_dst,set_field:11->tun_id,output:@gre-any@
table=0,priority=50,tcp,in_port=@host1@,tp_dst=4,actions=output:@span1@
table=0,priority=40,in_port=@gre-l3@,actions=mod_dl_dst:02:f3:00:00:00:01,output:@host1@
table=0,priority=40,in_port=@gpe@,actions=mod_dl_dst:02:f3:00:00:00:01,output:@host1@
table=0,priority=0,actions=NORMAL
FLOWS
}

topo_finish() {
    local arp='arp,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1'
    topo_flows
    hear br-sw "in_port=@vm1@,$arp,dl_src=02:f1:00:00:00:01"
    hear br-sw "in_port=@vxlan-a@,tun_src=10.20.0.3,tun_dst=$LOCAL4,tun_id=1000,$arp,dl_src=02:f1:00:00:00:0a"
    hear br-sw "in_port=@geneve-a@,tun_src=10.20.0.4,tun_dst=$LOCAL4,tun_id=4,dl_vlan=10,$arp,dl_src=02:f1:00:00:00:0b"
    hear br-sw "in_port=@gre-a@,tun_src=10.20.0.5,tun_dst=$LOCAL4,tun_id=77,$arp,dl_src=02:f1:00:00:00:0c"
    hear br-sw "in_port=@vxlan6@,tun_ipv6_src=fd00:20::3,tun_ipv6_dst=$LOCAL6,tun_id=1006,dl_vlan=10,$arp,dl_src=02:f1:00:00:00:0d"
    hear br-sw "in_port=@gre6@,tun_ipv6_src=fd00:20::5,tun_ipv6_dst=$LOCAL6,tun_id=76,dl_vlan=20,$arp,dl_src=02:f1:00:00:00:0e"
    hear br-sw "in_port=@geneve6@,tun_ipv6_src=fd00:20::4,tun_ipv6_dst=$LOCAL6,tun_id=6,dl_vlan=20,$arp,dl_src=02:f1:00:00:00:0f"
    hear br-sw "in_port=@vxlan-in@,tun_src=10.20.0.6,tun_dst=$LOCAL4,tun_id=5,dl_vlan=10,$arp,dl_src=02:f1:00:00:00:10"
}

topo_packets() {
    local all=dl_dst=ff:ff:ff:ff:ff:ff ip=nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64 n mac
    local v1=in_port=@vm1@,tcp,dl_src=02:f1:00:00:00:01 v3=in_port=@vm3@,tcp,dl_src=02:f1:00:00:00:03
    echo '# to every known host, by tunnels of every kind'
    for n in 0a 0b 0d 10; do
        printf 'br-sw||%s,dl_dst=02:f1:00:00:00:%s,%s,tp_src=1,tp_dst=2\n' "$v1" $n "$ip"
        printf 'br-sw||%s,dl_dst=02:f1:00:00:00:%s,%s,nw_tos=184,nw_ecn=1,tp_src=1,tp_dst=2\n' "$v1" $n "$ip"
    done
    for n in 0c 0e 0f; do
        printf 'br-sw||%s,dl_dst=02:f1:00:00:00:%s,%s,tp_src=1,tp_dst=2\n' "$v3" $n "$ip"
        printf 'br-sw||%s,dl_dst=02:f1:00:00:00:%s,nw_src=1.1.1.1,nw_dst=2.2.2.2,nw_ttl=3,nw_ecn=3,tp_src=1,tp_dst=2\n' "$v3" $n
    done
    cat <<PACKETS
br-sw||in_port=@vm2@,arp,$all,dl_src=02:f1:00:00:00:02,arp_op=1
br-sw||in_port=@vm3@,arp,$all,dl_src=02:f1:00:00:00:03,arp_op=1
br-sw||in_port=@vm1@,tcp6,dl_src=02:f1:00:00:00:01,dl_dst=02:f1:00:00:00:0a,ipv6_src=fd00::1,ipv6_dst=fd00::2,nw_ttl=9,tp_src=1,tp_dst=2
# the way back
br-sw||in_port=@vxlan-a@,tun_src=10.20.0.3,tun_dst=$LOCAL4,tun_id=1000,tcp,dl_dst=02:f1:00:00:00:01,dl_src=02:f1:00:00:00:0a,$ip,tp_src=2,tp_dst=1
br-sw||in_port=@vxlan-a@,tun_src=10.20.0.3,tun_dst=$LOCAL4,tun_id=1001,tcp,dl_dst=02:f1:00:00:00:01,dl_src=02:f1:00:00:00:0a,$ip,tp_src=2,tp_dst=1
br-sw||in_port=@vxlan-a@,tun_src=10.20.0.99,tun_dst=$LOCAL4,tun_id=1000,tcp,dl_dst=02:f1:00:00:00:01,dl_src=02:f1:00:00:00:0a,$ip,tp_src=2,tp_dst=1
br-sw||in_port=@vxlan-a@,tun_src=10.20.0.3,tun_dst=10.20.0.88,tun_id=1000,tcp,dl_dst=02:f1:00:00:00:01,dl_src=02:f1:00:00:00:0a,$ip,tp_src=2,tp_dst=1
br-sw||in_port=@geneve-a@,tun_src=10.20.0.4,tun_dst=$LOCAL4,tun_id=44,dl_vlan=10,tcp,dl_dst=02:f1:00:00:00:01,dl_src=02:f1:00:00:00:0b,$ip,tp_src=2,tp_dst=1
br-sw||in_port=@geneve-a@,tun_src=10.20.0.4,tun_dst=$LOCAL4,tun_id=44,tun_tos=3,dl_vlan=10,tcp,dl_dst=02:f1:00:00:00:01,dl_src=02:f1:00:00:00:0b,$ip,nw_ecn=1,tp_src=2,tp_dst=1
br-sw||in_port=@geneve-a@,tun_src=10.20.0.4,tun_dst=$LOCAL4,tun_id=44,tun_tos=3,dl_vlan=10,tcp,dl_dst=02:f1:00:00:00:01,dl_src=02:f1:00:00:00:0b,$ip,nw_ecn=0,tp_src=2,tp_dst=1
br-sw||in_port=@gre-a@,tun_src=10.20.0.5,tun_dst=$LOCAL4,tun_id=77,arp,$all,dl_src=02:f1:00:00:00:0c,arp_op=1
br-sw||in_port=@vxlan6@,tun_ipv6_src=fd00:20::3,tun_ipv6_dst=$LOCAL6,tun_id=1006,dl_vlan=10,tcp,dl_dst=02:f1:00:00:00:01,dl_src=02:f1:00:00:00:0d,$ip,tp_src=2,tp_dst=1
br-sw||in_port=@gre6@,tun_ipv6_src=fd00:20::5,tun_ipv6_dst=$LOCAL6,tun_id=76,dl_vlan=20,arp,$all,dl_src=02:f1:00:00:00:0e,arp_op=1
br-sw||in_port=@geneve6@,tun_ipv6_src=fd00:20::4,tun_ipv6_dst=$LOCAL6,tun_id=6,dl_vlan=20,tcp,dl_dst=02:f1:00:00:00:0c,dl_src=02:f1:00:00:00:0f,$ip,tp_src=2,tp_dst=1
br-sw||in_port=@vxlan-in@,tun_src=10.20.0.6,tun_dst=$LOCAL4,tun_id=5,dl_vlan=10,tcp,dl_dst=02:f1:00:00:00:0d,dl_src=02:f1:00:00:00:10,$ip,tp_src=2,tp_dst=1
br-sw||in_port=@vxlan-in@,tun_src=10.20.0.6,tun_dst=$LOCAL4,tun_id=6,dl_vlan=10,tcp,dl_dst=02:f1:00:00:00:0d,dl_src=02:f1:00:00:00:10,$ip,tp_src=2,tp_dst=1
# by flow
PACKETS
    for n in {1..13}; do
        printf 'br-flow||in_port=@pod1@,tcp,dl_src=02:f2:00:00:00:01,dl_dst=02:f2:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.20.0.77,nw_ttl=64,tp_src=1,tp_dst=%d\n' "$n"
    done
    cat <<PACKETS
br-flow||in_port=@gnv@,tun_src=10.20.0.10,tun_dst=$LOCAL4,tun_id=0x1234,tun_metadata0=0x10002,tcp,$ip,tp_src=1,tp_dst=2
br-flow||in_port=@gnv@,tun_src=10.20.0.10,tun_dst=$LOCAL4,tun_id=0x1234,tun_metadata0=0x10003,tcp,$ip,tp_src=1,tp_dst=2
br-flow||in_port=@gnv@,tun_src=10.20.0.10,tun_dst=$LOCAL4,tun_id=0x1234,tun_metadata0=0x20002,tcp,$ip,tp_src=1,tp_dst=2
br-flow||in_port=@gnv@,tun_src=10.20.0.10,tun_dst=$LOCAL4,tun_id=1,tun_metadata1=0x99,tcp,$ip,tp_src=1,tp_dst=2
br-flow||in_port=@gnv@,tun_src=10.20.0.10,tun_dst=$LOCAL4,tun_id=1,tun_flags=oam,tcp,$ip,tp_src=1,tp_dst=2
br-flow||in_port=@gnv@,tun_ipv6_src=fd00:20::10,tun_ipv6_dst=$LOCAL6,tun_id=1,tcp,$ip,tp_src=1,tp_dst=2
br-flow||in_port=@gnv@,tun_src=192.0.2.1,tun_dst=$LOCAL4,tun_id=1,tcp,$ip,tp_src=1,tp_dst=2
br-flow||in_port=@vxl@,tun_src=10.20.0.11,tun_dst=$LOCAL4,tun_id=1,tun_gbp_id=0x222,tun_gbp_flags=8,tcp,$ip,tp_src=1,tp_dst=2
br-flow||in_port=@vxl@,tun_src=10.20.0.11,tun_dst=$LOCAL4,tun_id=1,tcp,$ip,tp_src=1,tp_dst=2
br-flow||in_port=@greflow@,tun_src=10.20.0.12,tun_dst=$LOCAL4,tun_id=1,tcp,$ip,tp_src=1,tp_dst=2
br-flow||in_port=@span@,tun_src=10.20.0.13,tun_dst=$LOCAL4,tun_id=1,tun_erspan_ver=1,tun_erspan_idx=3,tcp,$ip,tp_src=1,tp_dst=2
br-flow||in_port=@span@,tun_src=10.20.0.13,tun_dst=$LOCAL4,tun_id=1,tcp,$ip,tp_src=1,tp_dst=2
br-flow||in_port=LOCAL,tcp,$ip,tp_src=1,tp_dst=2
# layer 3, and the rest
PACKETS
    for n in 1 2 3 4 5; do
        printf 'br-odd||in_port=@host1@,tcp,dl_src=02:f3:00:00:00:01,dl_dst=02:f3:00:00:00:02,%s,tp_src=1,tp_dst=%d\n' "$ip" "$n"
    done
    cat <<PACKETS
br-odd||in_port=@gre-l3@,tun_src=10.20.0.8,tun_dst=$LOCAL4,tun_id=8,packet_type=(1,0x800),ip,$ip
br-odd||in_port=@gre-any@,tun_src=10.20.0.15,tun_dst=$LOCAL4,tun_id=9,tcp,dl_dst=02:f3:00:00:00:01,$ip,tp_src=1,tp_dst=2
br-odd||in_port=@gre-any@,tun_src=10.20.0.15,tun_dst=$LOCAL4,tun_id=10,tcp,dl_dst=02:f3:00:00:00:01,$ip,tp_src=1,tp_dst=2
br-odd||in_port=@span1@,tun_src=10.20.0.9,tun_dst=$LOCAL4,tun_id=9,tun_erspan_ver=1,tun_erspan_idx=3,tcp,dl_dst=02:f3:00:00:00:01,$ip,tp_src=1,tp_dst=2
PACKETS
}
