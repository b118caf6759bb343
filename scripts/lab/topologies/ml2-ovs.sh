# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by lib.sh
# A compute node of an ML2/OVS cloud: neutron's agent with the openvswitch
# firewall on br-int, tunnels with learned addresses on br-tun, two physical
# networks, a trunk bridge; bonds, a mirror, multicast snooping, groups and
# meters of every kind, and ports with every kind of failure.
#
# Networks: 101 is VXLAN (local VLAN 1), 102 GRE (2), VLAN 120 on br-vlan (3),
# the external one flat on br-ex (4).

TOPO_SUMMARY='ML2/OVS compute: agent flows, GRE and VXLAN with learn, bonds, mirror, groups, meters, sFlow, in-band, dead ports'
TOPO_HOST=compute-21
TOPO_SYSTEM_ID=e3b0c442-98fc-4c14-9afb-f4c8996fb921
TOPO_OVN=no
# Two tags deep, for the QinQ port.
TOPO_OVS_SETTINGS=(other_config:vlan-limit=2)

LOCAL_IP=10.20.0.21
COOKIE=0x8d7c3bb0f4ee2a1b

# name, local VLAN, MAC and address of the ports of br-int
VMS=(
    "tap1c0a5e21-0a 1 fa:16:3e:65:00:11 10.101.0.11"
    "tap2d1b6f32-1b 1 fa:16:3e:65:00:12 10.101.0.12"
    "tap3e2c7043-2c 2 fa:16:3e:66:00:11 10.102.0.11"
    "tap4f3d8154-3d 3 fa:16:3e:78:00:11 10.120.0.11"
)

topo_node() {
    underlay
    integration_bridge
    tunnel_bridge
    external_bridge
    vlan_bridge
    trunk_bridge
}

# The link of the routes to the other tunnel ends.
underlay() {
    in_ns node ip link add eth1 type veth peer name eth1-peer
    in_ns node ip addr add $LOCAL_IP/24 dev eth1
    in_ns node ip link set eth1 up
    in_ns node ip link set eth1-peer up
}

integration_bridge() {
    local vm name vlan mac ip
    ovs-vsctl add-br br-int -- set Bridge br-int fail_mode=secure datapath_type=system \
        protocols=OpenFlow10,OpenFlow13,OpenFlow14,OpenFlow15 \
        other_config:hwaddr='"7a:31:05:c2:44:4e"' other_config:mac-table-size=50000 \
        -- set-controller br-int tcp:127.0.0.1:6633 \
        -- set Controller br-int connection_mode=out-of-band inactivity_probe=10000
    ovs-vsctl add-port br-int patch-tun -- set Interface patch-tun type=patch options:peer=patch-int
    ovs-vsctl add-port br-int int-br-ex -- set Interface int-br-ex type=patch options:peer=phy-br-ex
    ovs-vsctl add-port br-int int-br-vlan -- set Interface int-br-vlan type=patch options:peer=phy-br-vlan
    for vm in "${VMS[@]}"; do
        read -r name vlan mac ip <<<"$vm"
        ovs-vsctl add-port br-int "$name" tag="$vlan" -- set Interface "$name" \
            external_ids:iface-id="${name#tap}c4-4d5e-8f60-a1b2c3d4e5f6" \
            external_ids:iface-status=active external_ids:attached-mac="\"$mac\"" \
            -- set Port "$name" other_config:tag="$vlan" other_config:net_uuid=net-10"$vlan"
    done
    # The ports of the router and of the DHCP server, a tap that is not yet
    # configured, service functions of a port chain, and a DPDK port left over
    # from a trial, which fails.
    ovs-vsctl add-port br-int qr-5a4e9265-4e tag=1 -- set Interface qr-5a4e9265-4e type=internal \
        external_ids:attached-mac='"fa:16:3e:65:00:01"'
    ovs-vsctl add-port br-int qg-6b5fa376-5f tag=4 -- set Interface qg-6b5fa376-5f type=internal \
        external_ids:attached-mac='"fa:16:3e:aa:00:05"'
    ovs-vsctl add-port br-int tap7c60b487-60 tag=1 -- set Interface tap7c60b487-60 type=internal \
        external_ids:attached-mac='"fa:16:3e:65:00:02"'
    ovs-vsctl add-port br-int tap8d71c598-71 tag=4095
    ovs-vsctl add-port br-int tap9e82d6a9-82
    ovs-vsctl add-port br-int tapaf93e7ba-93
    ovs-vsctl add-port br-int tapd2e1f3a4-c5
    ovs-vsctl --no-wait add-port br-int vhub0a4f8cb-a4 tag=2 \
        -- set Interface vhub0a4f8cb-a4 type=dpdkvhostuserclient \
        options:vhost-server-path=/var/lib/vhost_sockets/vhub0a4f8cb-a4
}

tunnel_bridge() {
    local octet hex
    ovs-vsctl add-br br-tun -- set Bridge br-tun fail_mode=secure datapath_type=system \
        protocols=OpenFlow10,OpenFlow13 other_config:hwaddr='"0e:95:61:d7:c1:45"' \
        -- set-controller br-tun tcp:127.0.0.1:6633 \
        -- set Controller br-tun connection_mode=out-of-band
    ovs-vsctl add-port br-tun patch-int -- set Interface patch-int type=patch options:peer=patch-tun
    for octet in 22 23 24; do
        hex=$(printf '0a1400%02x' $octet)
        ovs-vsctl add-port br-tun "vxlan-$hex" -- set Interface "vxlan-$hex" type=vxlan \
            options:local_ip=$LOCAL_IP options:remote_ip=10.20.0.$octet options:in_key=flow \
            options:out_key=flow options:df_default=true options:egress_pkt_mark=0
    done
    for octet in 22 25; do
        hex=$(printf '0a1400%02x' $octet)
        ovs-vsctl add-port br-tun "gre-$hex" -- set Interface "gre-$hex" type=gre \
            options:local_ip=$LOCAL_IP options:remote_ip=10.20.0.$octet options:in_key=flow \
            options:out_key=flow options:df_default=false options:tos=inherit
    done
    # The same tunnel twice: the second one fails.
    ovs-vsctl --no-wait add-port br-tun vxlan-dup -- set Interface vxlan-dup type=vxlan \
        options:local_ip=$LOCAL_IP options:remote_ip=10.20.0.22 options:in_key=flow \
        options:out_key=flow options:df_default=true options:egress_pkt_mark=0
}

# A bridge with only OpenFlow 1.3, an in-band controller that never answers, an
# active-backup bond, and sFlow.
external_bridge() {
    ovs-vsctl add-br br-ex -- set Bridge br-ex fail_mode=secure datapath_type=system \
        protocols=OpenFlow13 other_config:hwaddr='"52:54:00:2e:00:21"' \
        -- set-controller br-ex tcp:192.0.2.66:6653
    ovs-vsctl add-port br-ex phy-br-ex -- set Interface phy-br-ex type=patch options:peer=int-br-ex
    ovs-vsctl add-bond br-ex bond0 eth2 eth3 bond_mode=active-backup bond_updelay=0
    ovs-appctl netdev-dummy/ip4addr br-ex 203.0.113.21/24 >/dev/null
    ovs-vsctl -- --id=@s create sFlow agent=br-ex target='"127.0.0.1:6343"' \
        header=128 sampling=512 polling=30 -- set Bridge br-ex sflow=@s >/dev/null
}

# A plain learning switch: no controller, NORMAL, and all port settings.
vlan_bridge() {
    ovs-vsctl add-br br-vlan -- set Bridge br-vlan datapath_type=system \
        mcast_snooping_enable=true other_config:hwaddr='"52:54:00:2f:00:21"'
    ovs-vsctl add-port br-vlan phy-br-vlan -- set Interface phy-br-vlan type=patch options:peer=int-br-vlan
    ovs-vsctl add-bond br-vlan bond1 eth4 eth5 bond_mode=balance-slb trunks=30,120,121 \
        other_config:bond-rebalance-interval=3600000
    ovs-vsctl add-bond br-vlan bond2 eth6 eth7 bond_mode=balance-tcp lacp=active \
        other_config:lacp-fallback-ab=true other_config:lacp-time=fast vlan_mode=native-tagged \
        tag=121 trunks=30,121
    ovs-vsctl add-port br-vlan srv30 tag=30
    ovs-vsctl add-port br-vlan srv30b tag=30 vlan_mode=access
    ovs-vsctl add-port br-vlan qinq0 vlan_mode=dot1q-tunnel tag=121 cvlans=7,8
    ovs-vsctl add-port br-vlan native0 vlan_mode=native-untagged tag=30 trunks=120
    ovs-vsctl add-port br-vlan quiet0 tag=30
    ovs-vsctl add-port br-vlan dead0 tag=30
    ovs-vsctl add-port br-vlan guard0 tag=30 protected=true
    ovs-vsctl add-port br-vlan guard1 tag=30 protected=true
    ovs-vsctl add-port br-vlan span0 \
        -- --id=@out get Port span0 -- --id=@src get Port srv30 \
        -- --id=@m create Mirror name=tap-srv30 select_src_port=@src select_dst_port=@src \
        output_port=@out snaplen=256 -- set Bridge br-vlan mirrors=@m >/dev/null
    # A fake bridge: it is listed as a bridge, and has no flows of its own.
    ovs-vsctl add-br br-storage30 br-vlan 30
}

# The subports of a trunk: neutron gives every trunk a bridge.
trunk_bridge() {
    ovs-vsctl add-br tbr-c1b50ad9-b -- set Bridge tbr-c1b50ad9-b datapath_type=system
    ovs-vsctl add-port tbr-c1b50ad9-b tapc1b50ad9-b5
    ovs-vsctl add-port tbr-c1b50ad9-b tpt-c1b50ad9-b5 \
        -- set Interface tpt-c1b50ad9-b5 type=patch options:peer=tpi-c1b50ad9-b5
    ovs-vsctl add-port br-int tpi-c1b50ad9-b5 tag=1 \
        -- set Interface tpi-c1b50ad9-b5 type=patch options:peer=tpt-c1b50ad9-b5
    ovs-vsctl add-port tbr-c1b50ad9-b spt-d2c61bea-c6 tag=300 \
        -- set Interface spt-d2c61bea-c6 type=patch options:peer=spi-d2c61bea-c6
    ovs-vsctl add-port br-int spi-d2c61bea-c6 tag=3 \
        -- set Interface spi-d2c61bea-c6 type=patch options:peer=spt-d2c61bea-c6
}

# --- flows -----------------------------------------------------------------

# The pipeline of the agent with the openvswitch firewall; vm_flows (neutron.sh) adds the
# flows of each port. reg5 is the port, reg6 the local VLAN and conntrack zone.
integration_flows() {
    sed "s/^/cookie=$COOKIE,/" <<'EOF'
table=0,priority=65535,dl_vlan=4095,actions=drop
table=0,priority=3,in_port=@int-br-ex@,vlan_tci=0x0000/0x1fff,actions=mod_vlan_vid:4,resubmit(,58)
table=0,priority=3,in_port=@int-br-vlan@,dl_vlan=120,actions=mod_vlan_vid:3,resubmit(,58)
table=0,priority=2,in_port=@int-br-ex@,actions=drop
table=0,priority=2,in_port=@int-br-vlan@,actions=drop
table=0,priority=0,actions=resubmit(,58)
table=23,priority=0,actions=drop
table=24,priority=0,actions=drop
table=30,priority=0,actions=resubmit(,58)
table=31,priority=0,actions=resubmit(,58)
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
table=94,priority=12,reg6=0x1,dl_dst=fa:16:3e:65:00:01,actions=output:@qr-5a4e9265-4e@
table=94,priority=1,actions=NORMAL
EOF
    local vm
    for vm in "${VMS[@]}"; do
        # shellcheck disable=SC2086 # the fields are the arguments
        vm_flows $vm | sed "s/^/cookie=$COOKIE,/"
    done
    conjunctive_flows | sed "s/^/cookie=$COOKIE,/"
}

# A remote security group: any of its members, to any of the allowed ports.
conjunctive_flows() {
    local first ip tcp
    first=$(ofport tap1c0a5e21-0a)
    for ip in 10.101.0.12 10.101.0.13 10.101.0.21 10.102.0.11; do
        printf 'table=82,priority=73,ct_state=+est-rel-rpl,ip,reg6=0x1,nw_src=%s,actions=conjunction(16,1/2)\n' "$ip"
        printf 'table=82,priority=73,ct_state=+new-est,ip,reg6=0x1,nw_src=%s,actions=conjunction(17,1/2)\n' "$ip"
    done
    for tcp in 80 443 3306; do
        printf 'table=82,priority=73,ct_state=+est-rel-rpl,tcp,reg5=%s,tp_dst=%s,actions=conjunction(16,2/2)\n' "$first" "$tcp"
        printf 'table=82,priority=73,ct_state=+new-est,tcp,reg5=%s,tp_dst=%s,actions=conjunction(17,2/2)\n' "$first" "$tcp"
    done
    cat <<EOF
table=82,priority=73,conj_id=16,ct_state=+est-rel-rpl,ip,reg5=$first,actions=load:0x10->NXM_NX_REG7[],output:$first
table=82,priority=73,conj_id=17,ct_state=+new-est,ip,reg5=$first,actions=load:0x11->NXM_NX_REG7[],ct(commit,zone=NXM_NX_REG6[0..15]),output:$first,resubmit(,92)
EOF
}

# QoS: limits on the packets and bytes that a port sends. A datapath can drop,
# but not remark, so no node has a dscp_remark band.
integration_meters() {
    local meter
    for meter in \
        'meter=11 pktps burst stats bands=type=drop rate=1000 burst_size=100' \
        'meter=12 kbps burst stats bands=type=drop rate=20000 burst_size=16000' \
        'meter=13 kbps bands=type=drop rate=5000' \
        'meter=40 pktps stats bands=type=drop rate=50'; do
        ovs-ofctl -O OpenFlow13 add-meter br-int "$meter"
    done
    sed "s/^/cookie=$COOKIE,/" <<'EOF' | add_flows br-int OpenFlow13
table=58,priority=100,in_port=@tap1c0a5e21-0a@,actions=meter:11,resubmit(,59)
table=59,priority=200,in_port=@tap1c0a5e21-0a@,actions=meter:12,resubmit(,60)
table=59,priority=200,in_port=@tap3e2c7043-2c@,actions=meter:13,resubmit(,60)
table=0,priority=11,icmp,in_port=@tap2d1b6f32-1b@,icmp_type=8,nw_tos=184,actions=mod_nw_tos:104,resubmit(,25)
table=60,priority=95,dl_vlan=1,dl_dst=fa:16:3e:65:00:02,actions=meter:40,strip_vlan,output:@tap7c60b487-60@
EOF
}

# Port chains: groups of every type. tap8d71c598-71 is down, so fast failover
# skips it.
integration_groups() {
    numbered_ports <<'EOF' | ovs-ofctl -O OpenFlow15 add-groups br-int -
group_id=1,type=select,selection_method=dp_hash,bucket=bucket_id:0,weight:100,actions=mod_dl_dst:fa:16:3e:5f:00:01,resubmit(,5),bucket=bucket_id:1,weight:50,actions=mod_dl_dst:fa:16:3e:5f:00:02,resubmit(,5)
group_id=2,type=select,selection_method=hash,fields(ip_src,ip_dst,tcp_src),bucket=bucket_id:10,weight:10,actions=output:@tap9e82d6a9-82@,bucket=bucket_id:11,weight:10,actions=output:@tapaf93e7ba-93@
group_id=3,type=all,bucket=bucket_id:1,actions=output:@tap9e82d6a9-82@,bucket=bucket_id:2,actions=mod_vlan_vid:7,output:@tapaf93e7ba-93@
group_id=4,type=indirect,bucket=bucket_id:0,actions=mod_nw_tos:184,output:@tapaf93e7ba-93@
group_id=5,type=ff,bucket=bucket_id:1,watch_port:@tap8d71c598-71@,actions=output:@tap8d71c598-71@,bucket=bucket_id:2,watch_port:@tapaf93e7ba-93@,actions=output:@tapaf93e7ba-93@
group_id=6,type=select,bucket=bucket_id:1,weight:0,actions=output:@tap9e82d6a9-82@,bucket=bucket_id:2,weight:30,watch_port:@tapaf93e7ba-93@,actions=output:@tapaf93e7ba-93@,bucket=bucket_id:3,weight:70,watch_port:@tap8d71c598-71@,actions=output:@tap8d71c598-71@
group_id=7,type=ff,bucket=bucket_id:1,watch_group:5,actions=group:5,bucket=bucket_id:2,watch_group:4,actions=group:4
group_id=8,type=select,selection_method=dp_hash,selection_method_param=1,bucket=bucket_id:1,weight:1,actions=group:4,bucket=bucket_id:2,weight:1,actions=group:3,bucket=bucket_id:3,weight:2,actions=drop
EOF
    {
        local group
        for group in 1 2 3 4 5 6 7 8; do
            printf 'cookie=%s,table=0,priority=30,tcp,in_port=@tapd2e1f3a4-c5@,tp_dst=900%s,actions=group:%s\n' \
                "$COOKIE" $group $group
        done
        printf 'cookie=%s,table=5,priority=1,actions=mod_vlan_vid:3,output:@int-br-vlan@\n' "$COOKIE"
    } | add_flows br-int OpenFlow13
}

# Answers ARP for known addresses, floods the rest, and learns from incoming
# packets.
tunnel_flows() {
    sed "s/^/cookie=$COOKIE,/" <<'EOF'
table=0,priority=1,in_port=@patch-int@,actions=resubmit(,2)
table=0,priority=1,in_port=@vxlan-0a140016@,actions=resubmit(,4)
table=0,priority=1,in_port=@vxlan-0a140017@,actions=resubmit(,4)
table=0,priority=1,in_port=@vxlan-0a140018@,actions=resubmit(,4)
table=0,priority=1,in_port=@gre-0a140016@,actions=resubmit(,3)
table=0,priority=1,in_port=@gre-0a140019@,actions=resubmit(,3)
table=0,priority=0,actions=drop
table=2,priority=1,arp,dl_dst=ff:ff:ff:ff:ff:ff,actions=resubmit(,21)
table=2,priority=0,dl_dst=00:00:00:00:00:00/01:00:00:00:00:00,actions=resubmit(,20)
table=2,priority=0,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=resubmit(,22)
table=3,priority=1,tun_id=0x66,actions=mod_vlan_vid:2,resubmit(,10)
table=3,priority=0,actions=drop
table=4,priority=1,tun_id=0x65,actions=mod_vlan_vid:1,resubmit(,10)
table=4,priority=0,actions=drop
table=6,priority=0,actions=drop
table=20,priority=2,dl_vlan=1,dl_dst=fa:16:3e:65:00:21,actions=strip_vlan,load:0x65->NXM_NX_TUN_ID[],output:@vxlan-0a140016@
table=20,priority=0,actions=resubmit(,22)
table=21,priority=1,arp,dl_vlan=1,arp_tpa=10.101.0.21,actions=load:0x2->NXM_OF_ARP_OP[],move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],load:0xfa163e650021->NXM_NX_ARP_SHA[],load:0x0a650015->NXM_OF_ARP_SPA[],move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],mod_dl_src:fa:16:3e:65:00:21,IN_PORT
table=21,priority=0,actions=resubmit(,22)
table=22,priority=1,dl_vlan=1,actions=strip_vlan,load:0x65->NXM_NX_TUN_ID[],output:@vxlan-0a140016@,output:@vxlan-0a140017@,output:@vxlan-0a140018@
table=22,priority=1,dl_vlan=2,actions=strip_vlan,load:0x66->NXM_NX_TUN_ID[],output:@gre-0a140016@,output:@gre-0a140019@
table=22,priority=0,actions=drop
EOF
    printf 'cookie=%s,table=10,priority=1,actions=learn(table=20,hard_timeout=300,priority=1,cookie=%s,NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:0->NXM_OF_VLAN_TCI[],load:NXM_NX_TUN_ID[]->NXM_NX_TUN_ID[],output:OXM_OF_IN_PORT[]),output:@patch-int@\n' \
        "$COOKIE" "$COOKIE"
}

physical_flows() {
    sed "s/^/cookie=$COOKIE,/" <<'EOF' | add_flows br-ex OpenFlow13
table=0,priority=4,in_port=@phy-br-ex@,dl_vlan=4,actions=strip_vlan,NORMAL
table=0,priority=2,in_port=@phy-br-ex@,actions=drop
table=0,priority=0,actions=NORMAL
EOF
    sed "s/^/cookie=$COOKIE,/" <<'EOF' | add_flows br-vlan OpenFlow13
table=0,priority=4,in_port=@phy-br-vlan@,dl_vlan=3,actions=mod_vlan_vid:120,NORMAL
table=0,priority=2,in_port=@phy-br-vlan@,actions=drop
table=0,priority=0,actions=NORMAL
EOF
}

# --- live state --------------------------------------------------------------

learn_hosts() {
    local arp='arp,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1' vm name ip mac
    hear br-tun "in_port=@vxlan-0a140016@,tun_id=0x65,tun_src=10.20.0.22,tun_dst=$LOCAL_IP,$arp,dl_src=fa:16:3e:65:00:13,arp_spa=10.101.0.13,arp_tpa=10.101.0.11"
    hear br-tun "in_port=@vxlan-0a140018@,tun_id=0x65,tun_src=10.20.0.24,tun_dst=$LOCAL_IP,$arp,dl_src=fa:16:3e:65:00:14,arp_spa=10.101.0.14,arp_tpa=10.101.0.11"
    hear br-tun "in_port=@gre-0a140019@,tun_id=0x66,tun_src=10.20.0.25,tun_dst=$LOCAL_IP,$arp,dl_src=fa:16:3e:66:00:13,arp_spa=10.102.0.13,arp_tpa=10.102.0.11"
    for vm in "${VMS[@]}"; do
        read -r name _ mac ip <<<"$vm"
        hear br-int "in_port=@$name@,$arp,dl_src=$mac,arp_spa=$ip,arp_tpa=${ip%.*}.1"
    done
    hear br-int "in_port=@qr-5a4e9265-4e@,$arp,dl_src=fa:16:3e:65:00:01,arp_spa=10.101.0.1,arp_tpa=10.101.0.11"
    hear br-int "in_port=@qg-6b5fa376-5f@,$arp,dl_src=fa:16:3e:aa:00:05,arp_spa=203.0.113.5,arp_tpa=203.0.113.1"
    hear br-ex "in_port=@eth3@,$arp,dl_src=02:00:00:00:71:01,arp_spa=203.0.113.1,arp_tpa=203.0.113.21"
    hear br-ex "in_port=LOCAL,$arp,dl_src=52:54:00:2e:00:21,arp_spa=203.0.113.21,arp_tpa=203.0.113.1"
    hear br-vlan "in_port=@srv30@,$arp,dl_src=02:00:00:00:30:01,arp_spa=10.30.0.1,arp_tpa=10.30.0.2"
    hear br-vlan "in_port=@srv30b@,$arp,dl_src=02:00:00:00:30:02,arp_spa=10.30.0.2,arp_tpa=10.30.0.1"
    hear br-vlan "in_port=@native0@,dl_vlan=120,$arp,dl_src=02:00:00:00:78:09,arp_spa=10.120.0.9,arp_tpa=10.120.0.1"
    add_learned br-vlan eth4 120 02:00:00:00:78:01
    add_learned br-vlan eth5 30 02:00:00:00:30:09
    add_learned br-vlan eth6 121 02:00:00:00:79:01
    hear tbr-c1b50ad9-b "in_port=@tapc1b50ad9-b5@,dl_vlan=300,$arp,dl_src=fa:16:3e:78:00:44,arp_spa=10.120.0.44,arp_tpa=10.120.0.1"
}

# Without a partner LACP times out, and the bond falls back to active-backup;
# until then the state of its members changes.
settle_bonds() {
    ovs-appctl bond/set-active-member bond0 eth3 >/dev/null
    wait_for "LACP on bond2 to give up" 20 has_defaulted
    wait_for "bond2 to use eth7" 10 ovs-appctl bond/set-active-member bond2 eth7 >/dev/null 2>&1
}

has_defaulted() {
    [[ $(ovs-appctl lacp/show bond2 | grep -c ': defaulted') == 2 &&
        $(ovs-appctl bond/show bond2 | grep -c 'may_enable: true') == 2 ]]
}

# IGMPv2: a querier behind srv30b asks all hosts, srv30 joins 239.30.0.1.
join_groups() {
    ovs-appctl netdev-dummy/receive srv30b \
        01005e000001020000003002080046c0002000000000010239f70a1e0002e0000001940400001164ee9b000000000000000000000000000000000000
    wait_for "br-vlan to hear the querier" 10 has_group br-vlan querier
    ovs-appctl netdev-dummy/receive srv30 \
        01005e1e0001020000003001080046c000200000000001022ada0a1e0001ef1e0001940400001600fadfef1e00010000000000000000000000000000
    wait_for "br-vlan to hear of 239.30.0.1" 10 has_group br-vlan 239.30.0.1
}

# A balance-slb bond assigns each sender the next member in turn, and bond/show
# prints the member once the sender has sent a kilobyte. So the senders of later
# traces send first.
load_bond1() {
    local to30=020000003009 to120=020000007801
    talk srv30 020000003001 $to30
    talk srv30b 020000003002 $to30
    talk guard0 020000003011 $to30
    talk native0 020000003012 $to30
    talk dead0 020000003066 $to30
    talk br-storage30 5254002f0021 $to30
    talk native0 020000007809 $to120 120
    talk tap4f3d8154-3d fa163e780011 $to120 '' 0a78000b
    talk tapc1b50ad9-b5 fa163e780044 $to120 300
    wait_for "bond1 to count what it carried" 10 has_loads 8
}

# talk PORT MAC DESTINATION [VLAN [IP]]: makes PORT receive a long ARP request.
# All arguments except PORT and VLAN are hexadecimal digits.
talk() {
    local tag=
    [[ -z ${4-} ]] || tag=$(printf '8100%04x' "$4")
    ovs-appctl netdev-dummy/receive "$1" \
        "$3$2${tag}08060001080006040001$2${5-0a1e0063}0000000000000a1e0009$(printf '%02200d' 0)"
}

has_loads() {
    [[ $(ovs-appctl bond/show bond1 | grep -c ' kB load') -ge $1 ]]
}

topo_finish() {
    integration_flows | add_flows br-int OpenFlow13
    integration_meters
    integration_groups
    tunnel_flows | add_flows br-tun OpenFlow13
    physical_flows
    learn_hosts
    load_bond1
    # The ports with failures.
    ovs-ofctl -O OpenFlow13 mod-port br-vlan quiet0 no-flood
    ovs-ofctl -O OpenFlow13 mod-port br-vlan dead0 down
    ovs-appctl netdev-dummy/set-admin-state tap8d71c598-71 down >/dev/null
    ovs-appctl netdev-dummy/set-admin-state br-int down >/dev/null
    ovs-appctl netdev-dummy/set-admin-state br-tun down >/dev/null
    settle_bonds
    join_groups
}

topo_packets() {
    local a=in_port=@tap1c0a5e21-0a@ b=in_port=@tap2d1b6f32-1b@ c=in_port=@tap3e2c7043-2c@ d=in_port=@tap4f3d8154-3d@
    local ma='dl_src=fa:16:3e:65:00:11,nw_src=10.101.0.11' mb='dl_src=fa:16:3e:65:00:12,nw_src=10.101.0.12'
    local mc='dl_src=fa:16:3e:66:00:11,nw_src=10.102.0.11' md='dl_src=fa:16:3e:78:00:11,nw_src=10.120.0.11'
    local da=dl_dst=fa:16:3e:65:00:11 db=dl_dst=fa:16:3e:65:00:12 all=dl_dst=ff:ff:ff:ff:ff:ff
    local new='--ct-next trk,new' est='--ct-next trk,est' sf='in_port=@tapd2e1f3a4-c5@,tcp,dl_src=fa:16:3e:5f:00:09,dl_dst=fa:16:3e:5f:00:08'
    local v22="in_port=@vxlan-0a140016@,tun_src=10.20.0.22,tun_dst=$LOCAL_IP" g25="in_port=@gre-0a140019@,tun_src=10.20.0.25,tun_dst=$LOCAL_IP"
    local v23="in_port=@vxlan-0a140017@,tun_src=10.20.0.23,tun_dst=$LOCAL_IP"
    local s30='dl_src=02:00:00:00:30:01' h
    cat <<EOF
# between local ports, through the firewall
br-int||$a,icmp,$db,$ma,nw_dst=10.101.0.12,icmp_type=8,icmp_code=0,nw_ttl=64
br-int|$new $new|$a,tcp,$db,$ma,nw_dst=10.101.0.12,tp_src=4000,tp_dst=22,nw_ttl=64
br-int|$new $new|$a,tcp,$db,$ma,nw_dst=10.101.0.12,tp_src=4000,tp_dst=8001,nw_ttl=64
br-int|$new $new|$a,tcp,$db,$ma,nw_dst=10.101.0.12,tp_src=4000,tp_dst=9999,nw_ttl=64
br-int|$new $new|$b,tcp,$da,$mb,nw_dst=10.101.0.11,tp_src=4000,tp_dst=443,nw_ttl=64
br-int|$est $est|$b,tcp,$da,$mb,nw_dst=10.101.0.11,tp_src=4000,tp_dst=443,nw_ttl=64
br-int|$est,rpl $est,rpl|$b,tcp,$da,$mb,nw_dst=10.101.0.11,tp_src=22,tp_dst=4000,nw_ttl=64
br-int|--ct-next trk,inv|$b,tcp,$da,$mb,nw_dst=10.101.0.11,tp_src=22,tp_dst=4000,nw_ttl=64
br-int|$est|$a,tcp,$db,$ma,nw_dst=10.101.0.12,tp_src=4000,tp_dst=25,nw_ttl=64
br-int||$b,icmp,$da,$mb,nw_dst=10.101.0.11,icmp_type=8,icmp_code=0,nw_tos=184,nw_ttl=64
br-int|$new $new|$b,sctp,$da,$mb,nw_dst=10.101.0.11,sctp_src=4000,sctp_dst=3868,nw_ttl=64
br-int||$a,tcp,$db,dl_src=fa:16:3e:65:00:99,nw_src=10.101.0.11,nw_dst=10.101.0.12,tp_src=1,tp_dst=22,nw_ttl=64
br-int||$a,tcp,$db,dl_src=fa:16:3e:65:00:11,nw_src=10.101.0.99,nw_dst=10.101.0.12,tp_src=1,tp_dst=22,nw_ttl=64
br-int||$a,arp,$all,dl_src=fa:16:3e:65:00:11,arp_op=1,arp_spa=10.101.0.11,arp_tpa=10.101.0.21,arp_sha=fa:16:3e:65:00:11
br-int||$a,arp,$all,dl_src=fa:16:3e:65:00:11,arp_op=1,arp_spa=10.101.0.11,arp_tpa=10.101.0.77,arp_sha=fa:16:3e:65:00:11
br-int||$a,arp,$all,dl_src=fa:16:3e:65:00:11,arp_op=1,arp_spa=10.101.0.66,arp_tpa=10.101.0.21,arp_sha=fa:16:3e:65:00:11
br-int||$a,udp,$all,dl_src=fa:16:3e:65:00:11,nw_src=0.0.0.0,nw_dst=255.255.255.255,udp_src=68,udp_dst=67,nw_ttl=64
br-int||$a,udp,$all,$ma,nw_dst=255.255.255.255,udp_src=67,udp_dst=68,nw_ttl=64
br-int||$a,icmp6,dl_dst=33:33:ff:00:00:01,dl_src=fa:16:3e:65:00:11,ipv6_src=fe80::f816:3eff:fe65:11,ipv6_dst=ff02::1:ff00:1,icmpv6_type=135,icmpv6_code=0,nd_target=fe80::1,nd_sll=fa:16:3e:65:00:11,nw_ttl=255
br-int||$a,icmp6,dl_dst=33:33:00:00:00:01,dl_src=fa:16:3e:65:00:11,ipv6_src=fe80::f816:3eff:fe65:11,ipv6_dst=ff02::1,icmpv6_type=136,icmpv6_code=0,nd_target=fe80::f816:3eff:fe65:11,nw_ttl=255
# to other nodes: learned, known, unknown, flooded
br-int|$new|$a,tcp,dl_dst=fa:16:3e:65:00:13,$ma,nw_dst=10.101.0.13,tp_src=4000,tp_dst=80,nw_ttl=64
br-int|$est|$a,udp,dl_dst=fa:16:3e:65:00:14,$ma,nw_dst=10.101.0.14,udp_src=4000,udp_dst=53,nw_ttl=64
br-int|$est|$a,tcp,dl_dst=fa:16:3e:65:00:21,$ma,nw_dst=10.101.0.21,tp_src=4000,tp_dst=80,nw_ttl=64
br-int|$new|$a,tcp,dl_dst=fa:16:3e:65:00:55,$ma,nw_dst=10.101.0.55,tp_src=4000,tp_dst=80,nw_ttl=64
br-int|$new|$c,icmp,dl_dst=fa:16:3e:66:00:13,$mc,nw_dst=10.102.0.13,icmp_type=8,icmp_code=0,nw_tos=32,nw_ttl=64
br-int|$est|$c,tcp,dl_dst=fa:16:3e:66:00:55,$mc,nw_dst=10.102.0.55,tp_src=4000,tp_dst=80,nw_ttl=64
br-int||$c,arp,$all,dl_src=fa:16:3e:66:00:11,arp_op=1,arp_spa=10.102.0.11,arp_tpa=10.102.0.13,arp_sha=fa:16:3e:66:00:11
br-int|$new|$a,udp,dl_dst=01:00:5e:01:01:01,$ma,nw_dst=239.1.1.1,udp_src=5,udp_dst=6,nw_ttl=64
# to the router, the DHCP server, the physical networks
br-int|$new|$a,tcp,dl_dst=fa:16:3e:65:00:01,$ma,nw_dst=198.51.100.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int|$est|$a,tcp,dl_dst=fa:16:3e:65:00:01,$ma,nw_dst=198.51.100.9,tp_src=4000,tp_dst=443,nw_ttl=64
br-int||in_port=@qr-5a4e9265-4e@,tcp,$da,dl_src=fa:16:3e:65:00:01,nw_src=198.51.100.9,nw_dst=10.101.0.11,tp_src=4000,tp_dst=22,nw_ttl=63
br-int||in_port=@qr-5a4e9265-4e@,tcp,dl_dst=fa:16:3e:65:00:13,dl_src=fa:16:3e:65:00:01,nw_src=198.51.100.9,nw_dst=10.101.0.13,tp_src=4000,tp_dst=22,nw_ttl=63
br-int||in_port=@qr-5a4e9265-4e@,udp,dl_dst=fa:16:3e:65:00:02,dl_src=fa:16:3e:65:00:01,nw_src=10.101.0.1,nw_dst=10.101.0.2,udp_src=4000,udp_dst=53,nw_ttl=63
br-int||in_port=@tap7c60b487-60@,udp,$da,dl_src=fa:16:3e:65:00:02,nw_src=10.101.0.2,nw_dst=10.101.0.11,udp_src=67,udp_dst=68,nw_ttl=64
br-int||in_port=@qg-6b5fa376-5f@,tcp,dl_dst=02:00:00:00:71:01,dl_src=fa:16:3e:aa:00:05,nw_src=203.0.113.5,nw_dst=198.51.100.9,tp_src=4000,tp_dst=443,nw_ttl=63
br-int||in_port=@qg-6b5fa376-5f@,arp,$all,dl_src=fa:16:3e:aa:00:05,arp_op=1,arp_spa=203.0.113.5,arp_tpa=203.0.113.9,arp_sha=fa:16:3e:aa:00:05
br-int|$new|$d,tcp,dl_dst=02:00:00:00:78:09,$md,nw_dst=10.120.0.9,tp_src=4000,tp_dst=80,nw_ttl=64
br-int|$est|$d,tcp,dl_dst=02:00:00:00:78:01,$md,nw_dst=10.120.0.1,tp_src=4000,tp_dst=80,nw_ttl=64
br-int||in_port=@tap8d71c598-71@,arp,$all,dl_src=fa:16:3e:65:00:77,arp_op=1,arp_spa=10.101.0.77,arp_tpa=10.101.0.1
# from tunnels
br-tun||$v22,tun_id=0x65,icmp,$da,dl_src=fa:16:3e:65:00:13,nw_src=10.101.0.13,nw_dst=10.101.0.11,icmp_type=8,icmp_code=0,nw_ttl=64
br-tun|$new|$v22,tun_id=0x65,tcp,$da,dl_src=fa:16:3e:65:00:13,nw_src=10.101.0.13,nw_dst=10.101.0.11,tp_src=4000,tp_dst=3306,nw_ttl=64
br-tun|$est|$v23,tun_id=0x65,tcp,$da,dl_src=fa:16:3e:65:00:15,nw_src=10.101.0.15,nw_dst=10.101.0.11,tp_src=4000,tp_dst=3306,nw_ttl=64
br-tun||$v22,tun_id=0x99,tcp,$da,dl_src=fa:16:3e:65:00:13,nw_src=10.101.0.13,nw_dst=10.101.0.11,tp_src=4000,tp_dst=80,nw_ttl=64
br-tun||$v22,tun_id=0x65,arp,$all,dl_src=fa:16:3e:65:00:13,arp_op=1,arp_spa=10.101.0.13,arp_tpa=10.101.0.11,arp_sha=fa:16:3e:65:00:13
br-tun||$g25,tun_id=0x66,icmp,dl_dst=fa:16:3e:66:00:11,dl_src=fa:16:3e:66:00:13,nw_src=10.102.0.13,nw_dst=10.102.0.11,icmp_type=8,icmp_code=0,nw_ttl=64
br-tun||$g25,tun_id=0x66,tcp,dl_dst=fa:16:3e:66:00:99,dl_src=fa:16:3e:66:00:13,nw_src=10.102.0.13,nw_dst=10.102.0.99,tp_src=1,tp_dst=2,nw_ttl=64
br-int||$v22,tun_id=0x65,icmp,$da,dl_src=fa:16:3e:65:00:13,nw_src=10.101.0.13,nw_dst=10.101.0.11,icmp_type=8,icmp_code=0,nw_ttl=64
br-tun||in_port=LOCAL,icmp,$da,dl_src=fa:16:3e:65:00:13,nw_src=10.101.0.13,nw_dst=10.101.0.11,icmp_type=8,icmp_code=0,nw_ttl=64
# groups
EOF
    for h in 9001 9002 9003 9004 9005 9006 9007 9008; do
        printf 'br-int||%s,nw_src=10.99.0.1,nw_dst=10.99.0.2,tp_src=4000,tp_dst=%s,nw_ttl=64\n' "$sf" $h
    done
    for h in 3 4 5 6; do
        printf 'br-int||%s,nw_src=10.99.0.%s,nw_dst=10.99.0.2,tp_src=4001,tp_dst=9002,nw_ttl=64\n' "$sf" $h
    done
    cat <<EOF
# the trunk
tbr-c1b50ad9-b||in_port=@tapc1b50ad9-b5@,icmp,$da,dl_src=fa:16:3e:65:00:44,nw_src=10.101.0.44,nw_dst=10.101.0.11,icmp_type=8,icmp_code=0,nw_ttl=64
tbr-c1b50ad9-b||in_port=@tapc1b50ad9-b5@,dl_vlan=300,icmp,dl_dst=02:00:00:00:78:09,dl_src=fa:16:3e:78:00:44,nw_src=10.120.0.44,nw_dst=10.120.0.9,icmp_type=8,icmp_code=0,nw_ttl=64
tbr-c1b50ad9-b||in_port=@tapc1b50ad9-b5@,dl_vlan=301,arp,$all,dl_src=fa:16:3e:78:00:45,arp_op=1,arp_spa=10.121.0.44,arp_tpa=10.121.0.1
# the external bridge: sampled, in-band rules, active-backup
br-ex||in_port=@eth2@,arp,$all,dl_src=02:00:00:00:71:01,arp_op=1,arp_spa=203.0.113.1,arp_tpa=203.0.113.5,arp_sha=02:00:00:00:71:01
br-ex||in_port=@eth3@,tcp,dl_dst=fa:16:3e:aa:00:05,dl_src=02:00:00:00:71:01,nw_src=198.51.100.9,nw_dst=203.0.113.5,tp_src=443,tp_dst=4000,nw_ttl=60
br-ex||in_port=@eth3@,tcp,dl_dst=52:54:00:2e:00:21,dl_src=02:00:00:00:71:01,nw_src=192.0.2.66,nw_dst=203.0.113.21,tp_src=6653,tp_dst=40000,nw_ttl=60
br-ex||in_port=@eth3@,dl_vlan=9,tcp,dl_dst=fa:16:3e:aa:00:99,dl_src=02:00:00:00:71:02,nw_src=198.51.100.9,nw_dst=203.0.113.99,tp_src=443,tp_dst=4000,nw_ttl=60
br-ex||in_port=LOCAL,tcp,dl_dst=02:00:00:00:71:01,dl_src=52:54:00:2e:00:21,nw_src=203.0.113.21,nw_dst=192.0.2.66,tp_src=40000,tp_dst=6653,nw_ttl=64
br-ex||in_port=LOCAL,udp,$all,dl_src=52:54:00:2e:00:21,nw_src=0.0.0.0,nw_dst=255.255.255.255,udp_src=68,udp_dst=67,nw_ttl=64
br-ex||in_port=LOCAL,icmp,dl_dst=02:00:00:00:71:01,dl_src=52:54:00:2e:00:21,nw_src=203.0.113.21,nw_dst=203.0.113.1,icmp_type=8,icmp_code=0,nw_ttl=64
# the VLAN bridge: access, trunk, native, QinQ, protected, mirror, bonds
br-vlan||in_port=@srv30@,ip,dl_dst=02:00:00:00:30:02,$s30,nw_src=10.30.0.1,nw_dst=10.30.0.2,nw_proto=47,nw_ttl=64
br-vlan||in_port=@srv30b@,ip,dl_dst=02:00:00:00:30:01,dl_src=02:00:00:00:30:02,nw_src=10.30.0.2,nw_dst=10.30.0.1,nw_proto=47,nw_ttl=64
br-vlan||in_port=@srv30@,arp,$all,$s30,arp_op=1,arp_spa=10.30.0.1,arp_tpa=10.30.0.2
br-vlan||in_port=@srv30@,dl_vlan=30,ip,dl_dst=02:00:00:00:30:02,$s30,nw_src=10.30.0.1,nw_dst=10.30.0.2,nw_ttl=64
br-vlan||in_port=@srv30@,ip,dl_dst=02:00:00:00:30:09,$s30,nw_src=10.30.0.1,nw_dst=10.30.0.9,nw_ttl=64
br-vlan||in_port=@srv30@,udp,dl_dst=01:00:5e:1e:00:01,$s30,nw_src=10.30.0.1,nw_dst=239.30.0.1,udp_src=5,udp_dst=6,nw_ttl=64
br-vlan||in_port=@srv30b@,udp,dl_dst=01:00:5e:1e:00:01,dl_src=02:00:00:00:30:02,nw_src=10.30.0.2,nw_dst=239.30.0.1,udp_src=5,udp_dst=6,nw_ttl=64
br-vlan||in_port=@srv30b@,udp,dl_dst=01:00:5e:1e:00:02,dl_src=02:00:00:00:30:02,nw_src=10.30.0.2,nw_dst=239.30.0.2,udp_src=5,udp_dst=6,nw_ttl=64
br-vlan||in_port=@guard0@,arp,$all,dl_src=02:00:00:00:30:11,arp_op=1,arp_spa=10.30.0.11,arp_tpa=10.30.0.12
br-vlan||in_port=@native0@,arp,$all,dl_src=02:00:00:00:30:12,arp_op=1,arp_spa=10.30.0.12,arp_tpa=10.30.0.1
br-vlan||in_port=@native0@,dl_vlan=120,ip,dl_dst=fa:16:3e:78:00:11,dl_src=02:00:00:00:78:09,nw_src=10.120.0.9,nw_dst=10.120.0.11,nw_proto=1,nw_ttl=64
br-vlan||in_port=@native0@,dl_vlan=121,arp,$all,dl_src=02:00:00:00:79:12,arp_op=1,arp_spa=10.121.0.12,arp_tpa=10.121.0.1
br-vlan||in_port=@qinq0@,dl_vlan=7,ip,dl_dst=02:00:00:00:79:01,dl_src=02:00:00:00:79:07,nw_src=10.7.0.1,nw_dst=10.7.0.2,nw_ttl=64
br-vlan||in_port=@qinq0@,dl_vlan=9,ip,dl_dst=02:00:00:00:79:01,dl_src=02:00:00:00:79:07,nw_src=10.9.0.1,nw_dst=10.9.0.2,nw_ttl=64
br-vlan||in_port=@eth4@,dl_vlan=120,icmp,dl_dst=fa:16:3e:78:00:11,dl_src=02:00:00:00:78:01,nw_src=10.120.0.1,nw_dst=10.120.0.11,icmp_type=8,icmp_code=0,nw_ttl=64
br-vlan||in_port=@eth5@,dl_vlan=120,arp,$all,dl_src=02:00:00:00:78:01,arp_op=1,arp_spa=10.120.0.1,arp_tpa=10.120.0.11
br-vlan||in_port=@eth6@,ip,dl_dst=02:00:00:00:30:02,dl_src=02:00:00:00:79:01,nw_src=10.121.0.1,nw_dst=10.30.0.2,nw_ttl=64
br-vlan||in_port=@eth7@,dl_vlan=30,ip,dl_dst=02:00:00:00:30:02,dl_src=02:00:00:00:30:44,nw_src=10.30.0.44,nw_dst=10.30.0.2,nw_ttl=64
br-vlan||in_port=@dead0@,arp,$all,dl_src=02:00:00:00:30:66,arp_op=1,arp_spa=10.30.0.66,arp_tpa=10.30.0.1
br-vlan||in_port=LOCAL,ip,dl_dst=02:00:00:00:77:77,dl_src=52:54:00:2f:00:21,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64
br-vlan||in_port=@br-storage30@,arp,$all,dl_src=52:54:00:2f:00:21,arp_op=1,arp_spa=10.30.0.21,arp_tpa=10.30.0.1
EOF
}
