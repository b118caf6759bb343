# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by lib.sh
# A node with the userspace datapath: DPDK ports in bonds, vhost-user ports,
# and native tunnels, whose headers ovs-vswitchd builds from routes,
# neighbours and the addresses of its bridges.
#
# Differences from a real node: DPDK's ports and the netdev datapath are
# dummies, which run the same code; the report is changed to that of a DPDK
# node, without the ports' queues and PMD threads. The link br-phy of the node's
# namespace replaces the tap that the bridge has on a real node, and provides
# the routes.

TOPO_SUMMARY='userspace datapath: dpdk and vhost-user ports, native tunnels with routes and neighbours, lb-output bond'
TOPO_HOST=dpdk-compute-09
TOPO_SYSTEM_ID=b2e0c7a9-4d15-4e6c-8f3a-90d17c5e0909
TOPO_OVN=no
TOPO_DATAPATH=netdev
TOPO_FEATURES=()
TOPO_OVS_SETTINGS=(
    other_config:dpdk-init=true other_config:dpdk-socket-mem='"2048,2048"'
    other_config:pmd-cpu-mask=0x30 other_config:dpdk-lcore-mask=0x3
    other_config:vlan-limit=2 other_config:userspace-tso-enable=false
)
TOPO_DISGUISE=(
    "dpdk0 dpdk dpdk-devargs=0000:3b:00.0 n_rxq=2"
    "dpdk1 dpdk dpdk-devargs=0000:3b:00.1 n_rxq=2"
    "dpdk2 dpdk dpdk-devargs=0000:5e:00.0"
    "dpdk3 dpdk dpdk-devargs=0000:5e:00.1"
    "vhu1a2b3c4d-01 dpdkvhostuserclient vhost-server-path=/var/lib/vhost_sockets/vhu1a2b3c4d-01"
    "vhu1a2b3c4d-02 dpdkvhostuserclient vhost-server-path=/var/lib/vhost_sockets/vhu1a2b3c4d-02"
    "vhu1a2b3c4d-03 dpdkvhostuserclient vhost-server-path=/var/lib/vhost_sockets/vhu1a2b3c4d-03"
    "vhu1a2b3c4d-04 dpdkvhostuser"
    "vhudead0000-05 dpdkvhostuserclient vhost-server-path=/var/lib/vhost_sockets/vhudead0000-05"
)

LOCAL4=10.30.0.9
LOCAL6=fd00:30::9
TAP_MAC=52:54:00:ab:00:01

topo_node() {
    start_partner
    partner ovs-vsctl --no-wait add-br sw-phy -- set Bridge sw-phy other_config:hwaddr='"02:1a:c5:00:02:01"' \
        -- add-bond sw-phy lag dpdk0 dpdk1 bond_mode=balance-tcp lacp=active other_config:lacp-time=fast \
        -- set Interface dpdk0 "$(far_end dpdk0)" -- set Interface dpdk1 "$(far_end dpdk1)"
    underlay
    physical_bridge
    integration_bridge
    provider_bridge
    neighbours
}

# As on a real node, routes come from the kernel, for a link with the bridge's
# name.
underlay() {
    in_ns node ip link add br-phy type veth peer name br-phy-peer
    in_ns node ip link set br-phy address $TAP_MAC
    in_ns node ip addr add $LOCAL4/24 dev br-phy
    in_ns node ip addr add $LOCAL6/64 dev br-phy nodad
    in_ns node ip link set br-phy up
    in_ns node ip link set br-phy-peer up
    in_ns node ip route add 10.31.0.0/16 via 10.30.0.1 dev br-phy
    in_ns node ip -6 route add fd00:31::/64 via fd00:30::1 dev br-phy
}

physical_bridge() {
    ovs-vsctl add-br br-phy -- set Bridge br-phy datapath_type=system protocols=OpenFlow10,OpenFlow13,OpenFlow15 \
        other_config:hwaddr="\"$TAP_MAC\""
    ovs-vsctl add-bond br-phy dpdkbond0 dpdk0 dpdk1 bond_mode=balance-tcp lacp=active \
        other_config:lacp-time=fast other_config:lb-output-action=true \
        -- set Interface dpdk0 "$(near_end dpdk0)" -- set Interface dpdk1 "$(near_end dpdk1)"
    ovs-appctl netdev-dummy/ip4addr br-phy $LOCAL4/24 >/dev/null
    ovs-appctl netdev-dummy/ip6addr br-phy $LOCAL6/64 >/dev/null
}

integration_bridge() {
    ovs-vsctl add-br br-int -- set Bridge br-int datapath_type=system fail_mode=secure \
        protocols=OpenFlow10,OpenFlow13,OpenFlow15 other_config:hwaddr='"52:54:00:ab:00:02"'
    ovs-vsctl add-port br-int vhu1a2b3c4d-01 tag=1
    ovs-vsctl add-port br-int vhu1a2b3c4d-02 tag=1
    add_tunnel vxlan-a vxlan remote_ip=10.30.0.21 local_ip=$LOCAL4 key=flow
    add_tunnel geneve-a geneve remote_ip=10.30.0.22 key=flow csum=true
    ovs-vsctl add-port br-int vhu1a2b3c4d-03 tag=2 -- set Port vhu1a2b3c4d-03 qos=@q \
        -- --id=@q create QoS type=egress-policer other_config:cir=46000000 other_config:cbs=2048 >/dev/null
    add_tunnel gre-a gre remote_ip=10.31.4.23 local_ip=$LOCAL4 key=23
    add_tunnel vxlan6 vxlan 'remote_ip="fd00:30::24"' "local_ip=\"$LOCAL6\"" key=24
    add_tunnel vxlan-lost vxlan remote_ip=192.0.2.25 key=25
    add_tunnel vxlan-unheard vxlan remote_ip=10.30.0.26 key=26
    add_tunnel gnv-flow geneve remote_ip=flow key=flow
    add_tunnel gtp gtpu remote_ip=10.30.0.27 key=27
    ovs-vsctl --no-wait add-port br-int vhudead0000-05 tag=1 -- set Interface vhudead0000-05 \
        type=dpdkvhostuserclient options:vhost-server-path=/var/lib/vhost_sockets/vhudead0000-05
    ovs-vsctl add-port br-int vhu1a2b3c4d-04 tag=2
    ovs-vsctl add-port br-int int-br-prov -- set Interface int-br-prov type=patch options:peer=phy-br-prov
}

add_tunnel() {
    local name=$1 type=$2 option
    local -a options=()
    shift 2
    for option; do options+=("options:$option"); done
    ovs-vsctl add-port br-int "$name" -- set Interface "$name" type="$type" "${options[@]}"
}

provider_bridge() {
    ovs-vsctl add-br br-prov -- set Bridge br-prov datapath_type=system protocols=OpenFlow10,OpenFlow13 \
        other_config:hwaddr='"52:54:00:ab:00:03"' \
        -- add-port br-prov phy-br-prov -- set Interface phy-br-prov type=patch options:peer=int-br-prov
    ovs-vsctl add-bond br-prov dpdkbond1 dpdk2 dpdk3 bond_mode=active-backup other_config:bond-primary=dpdk3
}

neighbours() {
    ovs-appctl tnl/neigh/set br-phy 10.30.0.1 02:30:00:00:00:01 >/dev/null
    ovs-appctl tnl/neigh/set br-phy 10.30.0.21 02:30:00:00:00:21 >/dev/null
    ovs-appctl tnl/neigh/set br-phy 10.30.0.22 02:30:00:00:00:22 >/dev/null
    ovs-appctl tnl/neigh/set br-phy 10.30.0.27 02:30:00:00:00:27 >/dev/null
    ovs-appctl tnl/neigh/set br-phy fd00:30::24 02:30:00:00:00:24 >/dev/null
    ovs-appctl ovs/route/add 10.32.0.0/16 br-phy 10.30.0.1 >/dev/null
}

topo_flows() {
    local meter
    for meter in 'meter=1 pktps burst stats bands=type=drop rate=1000 burst_size=100' \
        'meter=2 kbps stats bands=type=drop rate=20000'; do
        ovs-ofctl -O OpenFlow13 add-meter br-int "$meter"
    done
    ovs-ofctl -O OpenFlow15 add-tlv-map br-int '{class=0x102,type=0x80,len=4}->tun_metadata0'
    numbered_ports <<'GROUPS' | ovs-ofctl -O OpenFlow15 add-groups br-int -
group_id=1,type=select,selection_method=dp_hash,bucket=bucket_id:0,weight:100,actions=output:@vhu1a2b3c4d-02@,bucket=bucket_id:1,weight:100,actions=set_field:5->tun_id,output:@vxlan-a@
group_id=2,type=select,selection_method=hash,fields(ip_src,tcp_src),bucket=bucket_id:1,actions=output:@vhu1a2b3c4d-02@,bucket=bucket_id:2,actions=output:@vhu1a2b3c4d-03@
group_id=3,type=all,bucket=bucket_id:1,actions=set_field:1->tun_id,output:@vxlan-a@,bucket=bucket_id:2,actions=set_field:2->tun_id,output:@geneve-a@
GROUPS
    add_flows br-int OpenFlow15 <<'FLOWS'
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=1,actions=set_field:0x64->tun_id,output:@vxlan-a@
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=2,actions=set_field:0x65->tun_id,set_field:0x77->tun_metadata0,output:@geneve-a@
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=3,actions=output:@gre-a@
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=4,actions=output:@vxlan6@
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=5,actions=output:@vxlan-lost@
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=6,actions=output:@vxlan-unheard@
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=7,actions=set_field:10.32.0.7->tun_dst,set_field:7->tun_id,output:@gnv-flow@
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=8,actions=output:@gtp@
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=9,actions=group:1
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=10,actions=group:2
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=11,actions=group:3
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=12,actions=meter:1,output:@vhu1a2b3c4d-02@
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=13,actions=drop
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=14,actions=ct(table=5,zone=1)
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=15,actions=mod_nw_ttl:9,set_field:0x64->tun_id,output:@vxlan-a@,set_field:0x65->tun_id,output:@geneve-a@,output:@vhu1a2b3c4d-02@
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=16,actions=check_pkt_larger(1400)->NXM_NX_REG0[0],resubmit(,6)
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=17,actions=meter:2,clone(set_field:0x64->tun_id,output:@vxlan-a@),output:@vhu1a2b3c4d-02@
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=18,actions=push_mpls:0x8847,set_field:9->mpls_label,output:@vhu1a2b3c4d-02@
table=0,priority=60,tcp,in_port=@vhu1a2b3c4d-01@,tp_dst=19,actions=mod_vlan_vid:120,output:@int-br-prov@
table=0,priority=50,icmp6,icmp_type=135,actions=set_field:fd00::78->nd_target,IN_PORT
table=0,priority=40,in_port=@vxlan-a@,tun_id=0x64,actions=mod_vlan_vid:1,NORMAL
table=0,priority=40,in_port=@geneve-a@,tun_metadata0=0x77,actions=output:@vhu1a2b3c4d-01@
table=0,priority=40,in_port=@gnv-flow@,actions=output:@vhu1a2b3c4d-02@
table=0,priority=0,actions=NORMAL
table=5,priority=10,ct_state=+trk+new,ip,actions=ct(commit,zone=1,nat(src=10.9.0.1)),output:@vhu1a2b3c4d-02@
table=5,priority=10,ct_state=+trk+est,ip,actions=set_field:0x64->tun_id,output:@vxlan-a@
table=5,priority=0,actions=drop
table=6,priority=2,reg0=0x1/0x1,actions=controller(max_len=128)
table=6,priority=1,actions=output:@geneve-a@
FLOWS
    # The filter of the underlay: tunnels pass through it like all other
    # traffic.
    add_flows br-phy OpenFlow13 <<'FLOWS'
table=0,priority=60,udp,tp_dst=4789,nw_src=10.30.0.66,actions=drop
table=0,priority=50,ip,nw_dst=10.31.0.0/16,actions=mod_vlan_vid:31,NORMAL
table=0,priority=0,actions=NORMAL
FLOWS
}

is_negotiated() {
    [[ $(ovs-appctl lacp/show dpdkbond0 | grep -c ': current attached') == 2 &&
        $(ovs-appctl bond/show dpdkbond0 | grep -c 'may_enable: true') == 2 ]]
}

topo_finish() {
    local arp='arp,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1'
    topo_flows
    wait_for "LACP to be negotiated" 15 is_negotiated
    ovs-appctl bond/set-active-member dpdkbond0 dpdk1 >/dev/null
    hear br-phy "in_port=@dpdk0@,$arp,dl_src=02:30:00:00:00:21,arp_spa=10.30.0.21,arp_tpa=$LOCAL4,arp_sha=02:30:00:00:00:21"
    hear br-phy "in_port=@dpdk1@,$arp,dl_src=02:30:00:00:00:22,arp_spa=10.30.0.22,arp_tpa=$LOCAL4,arp_sha=02:30:00:00:00:22"
    hear br-phy "in_port=@dpdk1@,$arp,dl_src=02:30:00:00:00:01,arp_spa=10.30.0.1,arp_tpa=$LOCAL4,arp_sha=02:30:00:00:00:01"
    hear br-phy "in_port=@dpdk1@,dl_vlan=31,$arp,dl_src=02:30:00:00:00:01"
    hear br-int "in_port=@vhu1a2b3c4d-01@,$arp,dl_src=02:a1:00:00:00:01"
    hear br-int "in_port=@vhu1a2b3c4d-02@,$arp,dl_src=02:a1:00:00:00:02"
    hear br-prov "in_port=@dpdk3@,dl_vlan=120,$arp,dl_src=02:12:00:00:00:01"
    met_before
}

topo_packets() {
    local all=dl_dst=ff:ff:ff:ff:ff:ff ip=nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64 n
    local outer=dl_dst=$TAP_MAC,nw_dst=$LOCAL4,nw_ttl=64 vm1=in_port=@vhu1a2b3c4d-01@,tcp,dl_src=02:a1:00:00:00:01
    for n in {1..19}; do
        printf 'br-int||%s,dl_dst=02:a1:00:00:00:02,%s,tp_src=4000,tp_dst=%d\n' "$vm1" "$ip" "$n"
    done
    for n in 1 2 3; do
        printf 'br-int||%s,dl_dst=02:a1:00:00:00:02,%s,nw_tos=184,tp_src=400%d,tp_dst=1\n' "$vm1" "$ip" "$n"
        printf 'br-phy||in_port=LOCAL,tcp,dl_src=%s,dl_dst=02:30:00:00:00:21,%s,tp_src=400%d,tp_dst=22\n' $TAP_MAC "$ip" "$n"
    done
    cat <<PACKETS
br-int|--ct-next trk,est|$vm1,dl_dst=02:a1:00:00:00:02,$ip,tp_src=4000,tp_dst=14
br-int|--ct-next trk,new|$vm1,dl_dst=02:a1:00:00:00:02,$ip,tp_src=4000,tp_dst=14
br-int|--ct-next trk,inv|$vm1,dl_dst=02:a1:00:00:00:02,$ip,tp_src=4000,tp_dst=14
br-int||in_port=@vhu1a2b3c4d-02@,tcp,dl_src=02:a1:00:00:00:02,dl_dst=02:a1:00:00:00:01,$ip,tp_src=4000,tp_dst=80
br-int||in_port=@vhu1a2b3c4d-03@,arp,$all,dl_src=02:a1:00:00:00:03,arp_op=1
br-int||in_port=@vhu1a2b3c4d-04@,udp,dl_dst=02:a1:00:00:00:99,dl_src=02:a1:00:00:00:04,$ip,udp_src=1,udp_dst=2
br-int||in_port=@vhu1a2b3c4d-01@,icmp6,dl_src=02:a1:00:00:00:01,dl_dst=33:33:ff:00:00:77,ipv6_src=fd00::1,ipv6_dst=ff02::1:ff00:77,icmpv6_type=135,icmpv6_code=0,nd_target=fd00::77,nd_sll=02:a1:00:00:00:01,nw_ttl=255
# inside tunnels
br-int||in_port=@vxlan-a@,tun_src=10.30.0.21,tun_dst=$LOCAL4,tun_id=0x64,tcp,dl_dst=02:a1:00:00:00:01,dl_src=02:a1:00:00:00:21,$ip,tp_src=1,tp_dst=2
br-int||in_port=@vxlan-a@,tun_src=10.30.0.21,tun_dst=$LOCAL4,tun_id=0x65,tcp,dl_dst=02:a1:00:00:00:01,dl_src=02:a1:00:00:00:21,$ip,tp_src=1,tp_dst=2
br-int||in_port=@geneve-a@,tun_src=10.30.0.22,tun_dst=$LOCAL4,tun_id=1,tun_metadata0=0x77,tcp,dl_dst=02:a1:00:00:00:01,dl_src=02:a1:00:00:00:22,$ip,tp_src=1,tp_dst=2
br-int||in_port=@gnv-flow@,tun_src=10.30.0.88,tun_dst=$LOCAL4,tun_id=1,arp,$all,dl_src=02:a1:00:00:00:88,arp_op=1
br-int||in_port=@vxlan6@,tun_ipv6_src=fd00:30::24,tun_ipv6_dst=$LOCAL6,tun_id=24,dl_vlan=1,arp,$all,dl_src=02:a1:00:00:00:24,arp_op=1
# on the wire: packets that are decapsulated, or not
br-phy||in_port=@dpdk0@,udp,dl_src=02:30:00:00:00:21,$outer,nw_src=10.30.0.21,udp_src=50000,udp_dst=4789
br-phy||in_port=@dpdk1@,udp,dl_src=02:30:00:00:00:22,$outer,nw_src=10.30.0.22,udp_src=50000,udp_dst=6081
br-phy||in_port=@dpdk1@,ip,dl_src=02:30:00:00:00:01,$outer,nw_src=10.31.4.23,nw_proto=47
br-phy||in_port=@dpdk1@,udp,dl_src=02:30:00:00:00:66,$outer,nw_src=10.30.0.66,udp_src=50000,udp_dst=4789
br-phy||in_port=@dpdk1@,udp,dl_src=02:30:00:00:00:22,$outer,nw_src=10.30.0.22,udp_src=50000,udp_dst=4790
br-phy||in_port=@dpdk1@,udp,dl_src=02:30:00:00:00:27,$outer,nw_src=10.30.0.27,udp_src=50000,udp_dst=2152
br-phy||in_port=@dpdk0@,udp6,dl_src=02:30:00:00:00:24,dl_dst=$TAP_MAC,ipv6_src=fd00:30::24,ipv6_dst=$LOCAL6,nw_ttl=64,udp_src=50000,udp_dst=4789
br-phy||in_port=@dpdk0@,arp,$all,dl_src=02:30:00:00:00:21,arp_op=1,arp_spa=10.30.0.21,arp_tpa=$LOCAL4,arp_sha=02:30:00:00:00:21
br-phy||in_port=@dpdk0@,arp,dl_dst=$TAP_MAC,dl_src=02:30:00:00:00:21,arp_op=2,arp_spa=10.30.0.21,arp_tpa=$LOCAL4,arp_sha=02:30:00:00:00:21,arp_tha=$TAP_MAC
br-phy||in_port=@dpdk0@,dl_vlan=7,arp,$all,dl_src=02:30:00:00:00:21,arp_op=1
br-phy||in_port=LOCAL,arp,$all,dl_src=$TAP_MAC,arp_op=1,arp_spa=$LOCAL4,arp_tpa=10.30.0.26,arp_sha=$TAP_MAC
br-phy||in_port=LOCAL,ip,dl_dst=02:30:00:00:00:01,dl_src=$TAP_MAC,nw_src=$LOCAL4,nw_dst=10.31.4.23,nw_proto=47,nw_ttl=64
# the provider's network, through an active-backup bond
br-prov||in_port=@dpdk3@,dl_vlan=120,tcp,dl_dst=02:a1:00:00:00:01,dl_src=02:12:00:00:00:01,$ip,tp_src=1,tp_dst=2
br-prov||in_port=@dpdk2@,dl_vlan=120,arp,$all,dl_src=02:12:00:00:00:02,arp_op=1
br-prov||in_port=@dpdk3@,dl_vlan=1,arp,$all,dl_src=02:12:00:00:00:03,arp_op=1
br-prov||in_port=LOCAL,arp,$all,dl_src=52:54:00:ab:00:03,arp_op=1
PACKETS
}
