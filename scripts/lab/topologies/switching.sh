# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is read by lib.sh
# A node that switches: spanning trees whose blocked ports are blocked by a
# real neighbour, multicast groups that real members have joined, every VLAN
# mode, QinQ, mirrors, and ports with restrictions.
#
# Differences from a real node: cables are sockets between two dummies. STP runs
# with the shortest timers that the standard allows, and time is warped until it
# settles.

TOPO_SUMMARY='spanning trees with blocked ports, IGMP and MLD members, VLAN modes, QinQ, mirrors, port settings, static fdb'
TOPO_HOST=edge-switch-03
TOPO_SYSTEM_ID=91c7f2a4-6d0b-4e35-8b1e-2f9a60c3d803
TOPO_OVN=no
TOPO_OVS_SETTINGS=(other_config:vlan-limit=2)

VERSIONS=OpenFlow10,OpenFlow13,OpenFlow15

topo_node() {
    start_partner
    neighbours
    tree_bridges
    vlan_bridge
    qinq_bridge
    multicast_bridge
    settings_bridge
}

# The neighbour is the root of both trees.
neighbours() {
    partner ovs-vsctl --no-wait add-br up-rstp \
        -- set Bridge up-rstp rstp_enable=true other_config:rstp-priority=4096 \
        other_config:hwaddr='"02:1a:c5:00:01:01"' \
        -- add-port up-rstp uplink0 -- set Interface uplink0 "$(far_end uplink0)" \
        -- add-port up-rstp uplink1 -- set Interface uplink1 "$(far_end uplink1)"
    partner ovs-vsctl add-br up-stp -- set Bridge up-stp stp_enable=true \
        other_config:stp-priority=4096 other_config:stp-forward-delay=4 \
        other_config:stp-max-age=6 other_config:stp-hello-time=1 \
        other_config:hwaddr='"02:1a:c5:00:01:02"' \
        -- add-port up-stp old0 -- set Interface old0 "$(far_end old0)" \
        -- add-port up-stp old1 -- set Interface old1 "$(far_end old1)"
}

tree_bridges() {
    ovs-vsctl add-br br-rstp -- set Bridge br-rstp datapath_type=system protocols=$VERSIONS rstp_enable=true \
        other_config:hwaddr='"52:54:00:c0:00:01"' other_config:rstp-priority=32768
    ovs-vsctl add-br br-stp -- set Bridge br-stp datapath_type=system protocols=$VERSIONS stp_enable=true \
        other_config:hwaddr='"52:54:00:c0:00:02"' other_config:stp-forward-delay=4 \
        other_config:stp-max-age=6 other_config:stp-hello-time=1
    ovs-vsctl add-port br-rstp host0 tag=10 -- set Port host0 other_config:rstp-port-admin-edge=true
    ovs-vsctl add-port br-rstp uplink0 -- set Interface uplink0 "$(near_end uplink0)"
    ovs-vsctl add-port br-stp old0 -- set Interface old0 "$(near_end old0)"
    ovs-vsctl add-port br-rstp uplink1 trunks=10,20 -- set Interface uplink1 "$(near_end uplink1)" \
        -- set Port uplink1 other_config:rstp-path-cost=50000
    ovs-vsctl add-port br-rstp host1 tag=20
    ovs-vsctl add-port br-stp old1 -- set Interface old1 "$(near_end old1)" \
        -- set Port old1 other_config:stp-path-cost=200
    ovs-vsctl add-port br-stp server0
    ovs-vsctl add-port br-stp server1 -- set Port server1 other_config:stp-enable=false
    ovs-vsctl add-port br-rstp host2 tag=10 -- set Port host2 other_config:rstp-enable=false
}

# Access and trunk ports, both native modes, priority tags, protected ports,
# mirrors of each kind, a flooded VLAN, fake bridges.
vlan_bridge() {
    ovs-vsctl add-br br-vlans -- set Bridge br-vlans datapath_type=system flood_vlans=50 \
        other_config:hwaddr='"52:54:00:c0:00:03"' other_config:forward-bpdu=true \
        other_config:mac-table-size=4096
    ovs-vsctl add-port br-vlans access10 tag=10
    ovs-vsctl add-port br-vlans trunk0
    ovs-vsctl add-port br-vlans trunk1 trunks=10,20,50
    ovs-vsctl add-port br-vlans native1 vlan_mode=native-tagged tag=10 trunks=10,20
    ovs-vsctl add-port br-vlans native2 vlan_mode=native-untagged tag=20 trunks=10,20
    ovs-vsctl add-port br-vlans prio10 tag=10 other_config:priority-tags=if-nonzero
    ovs-vsctl add-port br-vlans prio20 tag=20 other_config:priority-tags=always
    ovs-vsctl add-port br-vlans span-all
    ovs-vsctl add-port br-vlans guard0 tag=10 protected=true
    ovs-vsctl add-port br-vlans guard1 tag=10 protected=true
    ovs-vsctl add-port br-vlans flood50a tag=50 -- add-port br-vlans flood50b tag=50
    ovs-vsctl add-br br-fake10 br-vlans 10
    ovs-vsctl add-port br-fake10 fakevm0
    ovs-vsctl add-br br-fake20 br-vlans 20
    ovs-vsctl add-port br-vlans access20 tag=20
    ovs-vsctl --id=@out get Port span-all -- --id=@m create Mirror name=everything select_all=true \
        output_port=@out snaplen=128 -- set Bridge br-vlans mirrors=@m >/dev/null
    ovs-vsctl --id=@m create Mirror name=vlan20-remote select_all=true select_vlan=20 output_vlan=900 \
        -- add Bridge br-vlans mirrors @m >/dev/null
    ovs-vsctl --id=@src get Port access10 -- --id=@dst get Port native1 \
        -- --id=@m create Mirror name=one-way select_src_port=@src select_dst_port=@dst output_vlan=901 \
        -- add Bridge br-vlans mirrors @m >/dev/null
}

qinq_bridge() {
    ovs-vsctl add-br br-qinq -- set Bridge br-qinq datapath_type=system protocols=$VERSIONS \
        other_config:hwaddr='"52:54:00:c0:00:04"'
    ovs-vsctl add-port br-qinq provider0 trunks=100,200
    ovs-vsctl add-port br-qinq customer0 vlan_mode=dot1q-tunnel tag=100
    ovs-vsctl add-port br-qinq customer1 vlan_mode=dot1q-tunnel tag=100 cvlans=7,8 \
        other_config:qinq-ethtype=802.1ad
    ovs-vsctl add-port br-qinq customer2 vlan_mode=dot1q-tunnel tag=200 other_config:qinq-ethtype=802.1q \
        other_config:priority-tags=if-nonzero
    ovs-vsctl add-port br-qinq plain100 tag=100
    ovs-vsctl add-port br-qinq provider1 vlan_mode=native-untagged tag=200 trunks=100
}

multicast_bridge() {
    ovs-vsctl add-br br-mcast -- set Bridge br-mcast datapath_type=system protocols=$VERSIONS mcast_snooping_enable=true \
        other_config:hwaddr='"52:54:00:c0:00:05"' \
        other_config:mcast-snooping-disable-flood-unregistered=true \
        other_config:mcast-snooping-aging-time=3600 other_config:mcast-snooping-table-size=4096
    ovs-vsctl add-port br-mcast querier0 tag=10
    ovs-vsctl add-port br-mcast member0 tag=10
    ovs-vsctl add-port br-mcast member1 tag=10
    ovs-vsctl add-port br-mcast member2 tag=20
    ovs-vsctl add-port br-mcast router0 trunks=10,20 other_config:mcast-snooping-flood=true
    ovs-vsctl add-port br-mcast report0 tag=10 other_config:mcast-snooping-flood-reports=true
    ovs-vsctl add-port br-mcast idle0 tag=10
}

# State that the database does not hold (port settings, fragments) and state
# that only the database holds (table limits); patch ports whose names differ
# only at the end.
settings_bridge() {
    local port
    ovs-vsctl add-br br-set -- set Bridge br-set datapath_type=system fail_mode=secure \
        other_config:hwaddr='"52:54:00:c0:00:06"' protocols=OpenFlow10,OpenFlow13,OpenFlow14,OpenFlow15
    for port in normal0 no-rx0 no-fwd0 no-flood0 no-pkt-in0 down0 linkless0 normal1; do
        ovs-vsctl add-port br-set "$port"
    done
    ovs-vsctl add-port br-set patch-br-set-to-provider-vlan-110 \
        -- set Interface patch-br-set-to-provider-vlan-110 type=patch options:peer=patch-provider-vlan-110-to-br-set \
        -- add-port br-vlans patch-provider-vlan-110-to-br-set tag=110 \
        -- set Interface patch-provider-vlan-110-to-br-set type=patch options:peer=patch-br-set-to-provider-vlan-110
    ovs-vsctl add-port br-set patch-br-set-to-provider-vlan-120 \
        -- set Interface patch-br-set-to-provider-vlan-120 type=patch options:peer=patch-provider-vlan-120-to-br-set \
        -- add-port br-vlans patch-provider-vlan-120-to-br-set tag=120 \
        -- set Interface patch-provider-vlan-120-to-br-set type=patch options:peer=patch-br-set-to-provider-vlan-120
    ovs-vsctl --id=@t create Flow_Table name=classify flow_limit=200 overflow_policy=refuse prefixes=ip_dst \
        -- --id=@e create Flow_Table name=learned flow_limit=4 overflow_policy=evict 'groups="NXM_OF_ETH_SRC[]"' \
        -- set Bridge br-set flow_tables:0=@t flow_tables:20=@e >/dev/null
}

settings_flows() {
    add_flows br-set OpenFlow14 <<'FLOWS'
table=0,priority=200,ip,nw_frag=later,actions=drop
table=0,priority=190,ip,nw_frag=first,actions=mod_nw_tos:32,resubmit(,1)
table=0,priority=100,arp,actions=FLOOD
table=0,priority=100,icmp,actions=ALL
table=0,priority=100,icmp6,actions=IN_PORT,LOCAL
table=0,priority=90,tcp,tp_dst=110,actions=output:@patch-br-set-to-provider-vlan-110@
table=0,priority=90,tcp,tp_dst=120,actions=output:@patch-br-set-to-provider-vlan-120@
table=0,priority=90,tcp,tp_dst=1,actions=output:@no-rx0@,output:@no-fwd0@,output:@no-flood0@,output:@down0@,output:@linkless0@,output:@no-pkt-in0@
table=0,priority=80,udp,actions=group:1
table=0,priority=0,actions=resubmit(,1)
table=1,priority=10,ip,nw_dst=10.9.0.0/16,actions=dec_ttl,NORMAL
table=1,priority=0,actions=CONTROLLER:128
table=20,priority=1,dl_src=02:00:00:00:06:01,actions=drop
table=20,priority=1,dl_src=02:00:00:00:06:02,actions=drop
table=20,priority=1,importance=9,dl_src=02:00:00:00:06:03,actions=drop
FLOWS
    add_flows br-mcast OpenFlow13 <<'FLOWS'
table=0,priority=50,udp,nw_dst=239.9.9.9,actions=FLOOD
FLOWS
}

settings_groups() {
    numbered_ports <<'GROUPS' | ovs-ofctl -O OpenFlow15 add-groups br-set -
group_id=1,type=ff,bucket=bucket_id:1,watch_port:@linkless0@,actions=output:@linkless0@,bucket=bucket_id:2,watch_port:@down0@,actions=output:@down0@,bucket=bucket_id:3,watch_port:@normal1@,actions=output:@normal1@
GROUPS
}

# Both trees have converged: one uplink of each is blocked, and all other ports
# forward.
has_settled() {
    ovs-appctl rstp/show br-rstp | grep -qE '^ *uplink1 +Alternate +Discarding' &&
        [[ $(ovs-appctl rstp/show br-rstp | grep -c ' Forwarding') -ge 3 ]] &&
        ovs-appctl stp/show br-stp | grep -qE '^ *old1 +(alternate|blocking) +(blocking|discarding)' &&
        [[ $(ovs-appctl stp/show br-stp | grep -c ' forwarding') -ge 2 ]]
}

# Advances the clocks of both switches by SECONDS, in turns of one second, so
# that each receives the other's BPDUs at the normal rate.
hurry() {
    local n
    for ((n = 0; n < $1; n++)); do
        partner ovs-appctl time/warp 1000 500 >/dev/null
        ovs-appctl time/warp 1000 500 >/dev/null
        sleep 0.05
    done
}

receive() { ovs-appctl netdev-dummy/receive "$1" "$2"; }

# IGMPv2 and MLDv1 queries arrive on querier0; member0, member1 and member2 join
# by IGMPv2, IGMPv3, MLDv1 and MLDv2.
join_groups() {
    receive querier0 01005e0000010200000100fe080046c0002000000000010239180a0100fee0000001940400001164ee9b000000000000000000000000000000000000
    wait_for "the IGMP querier" 10 has_group br-mcast querier
    receive member0 01005e010001020000010001080046c000200000000001022b140a010001ef010001940400001600fafcef0100010000000000000000000000000000
    receive member1 01005e010001020000010002080046c000200000000001022b130a010002ef010001940400001600fafcef0100010000000000000000000000000000
    receive member1 01005e010002020000010002080046c000200000000001022b120a010002ef010002940400001600fafbef0100020000000000000000000000000000
    receive member2 01005e000016020000010003080046c0003000000000010239ee0a010003e0000016940400002200f7f20000000204000000ef01000304000000ef010004
    receive querier0 3333000000010200000100fe86dd6000000000200001fe8000000000000000000000000000feff0200000000000000000000000000013a000502000001008200581a2710000000000000000000000000000000000000
    receive member0 33330001000102000001000186dd6000000000200001fe800000000000000000000000000001ff3500000000000000000000000100013a0005020000010083007fbb00000000ff350000000000000000000000010001
    receive member1 33330000001602000001000286dd6000000000380001fe800000000000000000000000000002ff0200000000000000000000000000163a000502000001008f006c860000000204000000ff35000000000000000000000001000104000000ff350000000000000000000000010002
    wait_for "all members" 10 have_joined
}

have_joined() { [[ $(ovs-appctl mdb/show br-mcast | grep -cE ' (239\.1\.0\.|ff35::1:)') == 8 ]]; }

topo_finish() {
    local arp='arp,dl_dst=ff:ff:ff:ff:ff:ff,arp_op=1' port
    settings_groups
    settings_flows
    for port in no-rx0:no-receive no-fwd0:no-forward no-flood0:no-flood no-pkt-in0:no-packet-in down0:down; do
        ovs-ofctl -O OpenFlow13 mod-port br-set "${port%:*}" "${port#*:}"
    done
    ovs-ofctl -O OpenFlow13 mod-port br-vlans guard1 no-flood
    ovs-appctl netdev-dummy/set-admin-state linkless0 down >/dev/null
    ovs-ofctl -O OpenFlow13 set-frags br-set nx-match
    ovs-ofctl -O OpenFlow13 set-frags br-qinq drop
    join_groups
    hurry 10
    wait_for "the spanning trees to settle" 25 has_settled
    hear br-rstp "in_port=@host0@,$arp,dl_src=02:00:00:00:01:01"
    hear br-rstp "in_port=@uplink0@,dl_vlan=10,$arp,dl_src=02:00:00:00:01:99"
    hear br-stp "in_port=@server0@,$arp,dl_src=02:00:00:00:02:01"
    hear br-stp "in_port=@old0@,$arp,dl_src=02:00:00:00:02:99"
    hear br-vlans "in_port=@access10@,$arp,dl_src=02:00:00:00:03:01"
    hear br-vlans "in_port=@trunk0@,dl_vlan=10,$arp,dl_src=02:00:00:00:03:02"
    hear br-vlans "in_port=@trunk0@,dl_vlan=20,$arp,dl_src=02:00:00:00:03:02"
    hear br-vlans "in_port=@native2@,$arp,dl_src=02:00:00:00:03:03"
    hear br-vlans "in_port=@prio10@,$arp,dl_src=02:00:00:00:03:04"
    hear br-vlans "in_port=@prio20@,$arp,dl_src=02:00:00:00:03:05"
    hear br-vlans "in_port=@guard0@,$arp,dl_src=02:00:00:00:03:06"
    hear br-vlans "in_port=@native1@,dl_vlan=20,$arp,dl_src=02:00:00:00:03:07"
    hear br-vlans "in_port=@fakevm0@,$arp,dl_src=02:00:00:00:03:08"
    add_learned br-vlans guard1 10 02:00:00:00:03:66
    add_learned br-vlans trunk1 20 02:00:00:00:03:77
    hear br-qinq "in_port=@customer0@,dl_vlan=7,$arp,dl_src=02:00:00:00:04:01"
    hear br-qinq "in_port=@customer1@,dl_vlan=8,$arp,dl_src=02:00:00:00:04:02"
    hear br-qinq "in_port=@provider0@,dl_vlan=200,$arp,dl_src=02:00:00:00:04:09"
    hear br-mcast "in_port=@member0@,$arp,dl_src=02:00:00:01:00:01"
    hear br-set "in_port=@normal0@,dl_vlan=5,ip,nw_dst=10.9.0.9,nw_ttl=64,dl_dst=02:00:00:00:06:99,dl_src=02:00:00:00:06:09"
}

topo_packets() {
    local all=dl_dst=ff:ff:ff:ff:ff:ff ip=nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64 s=dl_src=02:00:00:00 d=dl_dst=02:00:00:00
    local port
    cat <<PACKETS
# spanning trees: in and out of blocked ports, BPDUs
br-rstp||in_port=@host0@,arp,$all,$s:01:01,arp_op=1
br-rstp||in_port=@host0@,tcp,$d:01:99,$s:01:01,$ip,tp_src=1,tp_dst=2
br-rstp||in_port=@host1@,arp,$all,$s:01:02,arp_op=1
br-rstp||in_port=@host2@,arp,$all,$s:01:03,arp_op=1
br-rstp||in_port=@uplink0@,dl_vlan=10,tcp,$d:01:01,$s:01:99,$ip,tp_src=1,tp_dst=2
br-rstp||in_port=@uplink1@,dl_vlan=10,tcp,$d:01:01,$s:01:99,$ip,tp_src=1,tp_dst=2
br-rstp||in_port=@uplink1@,dl_vlan=20,arp,$all,$s:01:98,arp_op=1
br-rstp||in_port=@uplink0@,dl_dst=01:80:c2:00:00:00,$s:01:99,dl_type=0x0027
br-rstp||in_port=LOCAL,arp,$all,dl_src=52:54:00:c0:00:01,arp_op=1
br-stp||in_port=@server0@,arp,$all,$s:02:01,arp_op=1
br-stp||in_port=@server0@,tcp,$d:02:99,$s:02:01,$ip,tp_src=1,tp_dst=2
br-stp||in_port=@server1@,arp,$all,$s:02:02,arp_op=1
br-stp||in_port=@old0@,arp,$all,$s:02:99,arp_op=1
br-stp||in_port=@old1@,arp,$all,$s:02:99,arp_op=1
br-stp||in_port=@old1@,tcp,$d:02:01,$s:02:99,$ip,tp_src=1,tp_dst=2
br-stp||in_port=@old1@,dl_dst=01:80:c2:00:00:0e,$s:02:99,dl_type=0x88cc
br-stp||in_port=LOCAL,tcp,$d:02:01,dl_src=52:54:00:c0:00:02,$ip,tp_src=1,tp_dst=2
# VLAN modes, and what the mirrors copy
br-vlans||in_port=@access10@,tcp,$d:03:02,$s:03:01,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@access10@,arp,$all,$s:03:01,arp_op=1
br-vlans||in_port=@access10@,dl_vlan=10,arp,$all,$s:03:01,arp_op=1
br-vlans||in_port=@access10@,dl_vlan=0,dl_vlan_pcp=5,arp,$all,$s:03:01,arp_op=1
br-vlans||in_port=@trunk0@,dl_vlan=10,tcp,$d:03:01,$s:03:02,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@trunk0@,dl_vlan=10,dl_vlan_pcp=3,tcp,$d:03:04,$s:03:02,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@trunk0@,dl_vlan=20,tcp,$d:03:05,$s:03:02,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@trunk0@,dl_vlan=20,arp,$all,$s:03:02,arp_op=1
br-vlans||in_port=@trunk0@,dl_vlan=20,tcp,$d:03:07,$s:03:02,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@trunk0@,arp,$all,$s:03:12,arp_op=1
br-vlans||in_port=@trunk1@,dl_vlan=30,arp,$all,$s:03:13,arp_op=1
br-vlans||in_port=@trunk1@,arp,$all,$s:03:13,arp_op=1
br-vlans||in_port=@trunk1@,dl_vlan=50,tcp,$d:03:01,$s:03:13,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@flood50a@,tcp,$d:03:13,$s:03:50,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@native1@,tcp,$d:03:01,$s:03:14,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@native1@,dl_vlan=10,tcp,$d:03:01,$s:03:14,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@native1@,dl_vlan=20,tcp,$d:03:03,$s:03:07,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@native2@,tcp,$d:03:77,$s:03:03,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@native2@,dl_vlan=10,tcp,$d:03:01,$s:03:15,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@prio20@,tcp,$d:03:03,$s:03:05,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@guard0@,tcp,$d:03:66,$s:03:06,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@guard0@,tcp,$d:03:01,$s:03:06,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@guard0@,arp,$all,$s:03:06,arp_op=1
br-vlans||in_port=@access20@,arp,$all,$s:03:20,arp_op=1
br-vlans||in_port=@fakevm0@,tcp,$d:03:01,$s:03:08,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@br-fake10@,arp,$all,$s:03:0a,arp_op=1
br-vlans||in_port=@br-fake20@,tcp,$d:03:03,$s:03:0b,$ip,tp_src=1,tp_dst=2
br-vlans||in_port=@span-all@,arp,$all,$s:03:0c,arp_op=1
br-vlans||in_port=@trunk0@,dl_vlan=900,arp,$all,$s:03:0d,arp_op=1
br-vlans||in_port=@access10@,dl_dst=01:80:c2:00:00:00,$s:03:01,dl_type=0x0027
br-vlans||in_port=LOCAL,arp,$all,dl_src=52:54:00:c0:00:03,arp_op=1
# QinQ
br-qinq||in_port=@customer0@,dl_vlan=7,tcp,$d:04:02,$s:04:01,$ip,tp_src=1,tp_dst=2
br-qinq||in_port=@customer0@,tcp,$d:04:02,$s:04:01,$ip,tp_src=1,tp_dst=2
br-qinq||in_port=@customer1@,dl_vlan=8,tcp,$d:04:01,$s:04:02,$ip,tp_src=1,tp_dst=2
br-qinq||in_port=@customer1@,dl_vlan=9,tcp,$d:04:01,$s:04:02,$ip,tp_src=1,tp_dst=2
br-qinq||in_port=@customer2@,dl_vlan=7,tcp,$d:04:09,$s:04:03,$ip,tp_src=1,tp_dst=2
br-qinq||in_port=@customer2@,arp,$all,$s:04:03,arp_op=1
br-qinq||in_port=@customer0@,dl_vlan=7,arp,$all,$s:04:01,arp_op=1
br-qinq||in_port=@provider0@,dl_vlan=100,arp,$all,$s:04:08,arp_op=1
br-qinq||in_port=@provider0@,dl_vlan=200,tcp,$d:04:03,$s:04:09,$ip,tp_src=1,tp_dst=2
br-qinq||in_port=@provider0@,dl_vlan=100,dl_vlan_pcp=5,tcp,$d:04:02,$s:04:08,$ip,tp_src=1,tp_dst=2
br-qinq||in_port=@provider1@,arp,$all,$s:04:0a,arp_op=1
br-qinq||in_port=@plain100@,ip,$d:04:02,$s:04:0b,nw_src=1.1.1.1,nw_dst=2.2.2.2,nw_proto=6,nw_frag=later,nw_ttl=64
# multicast: members, routers, unregistered, link-local, reports
br-mcast||in_port=@querier0@,udp,dl_dst=01:00:5e:01:00:01,$s:01:01,nw_src=10.1.0.9,nw_dst=239.1.0.1,nw_ttl=8,udp_src=1,udp_dst=2
br-mcast||in_port=@member1@,udp,dl_dst=01:00:5e:01:00:01,$s:01:02,nw_src=10.1.0.9,nw_dst=239.1.0.1,nw_ttl=8,udp_src=1,udp_dst=2
br-mcast||in_port=@idle0@,udp,dl_dst=01:00:5e:01:00:02,$s:01:03,nw_src=10.1.0.9,nw_dst=239.1.0.2,nw_ttl=8,udp_src=1,udp_dst=2
br-mcast||in_port=@idle0@,udp,dl_dst=01:00:5e:01:00:03,$s:01:03,nw_src=10.1.0.9,nw_dst=239.1.0.3,nw_ttl=8,udp_src=1,udp_dst=2
br-mcast||in_port=@router0@,dl_vlan=20,udp,dl_dst=01:00:5e:01:00:03,$s:01:04,nw_src=10.1.0.9,nw_dst=239.1.0.3,nw_ttl=8,udp_src=1,udp_dst=2
br-mcast||in_port=@router0@,dl_vlan=20,udp,dl_dst=01:00:5e:01:00:01,$s:01:04,nw_src=10.1.0.9,nw_dst=239.1.0.1,nw_ttl=8,udp_src=1,udp_dst=2
br-mcast||in_port=@idle0@,udp,dl_dst=01:00:5e:7f:00:01,$s:01:03,nw_src=10.1.0.9,nw_dst=239.127.0.1,nw_ttl=8,udp_src=1,udp_dst=2
br-mcast||in_port=@idle0@,udp,dl_dst=01:00:5e:00:00:fb,$s:01:03,nw_src=10.1.0.9,nw_dst=224.0.0.251,nw_ttl=1,udp_src=5353,udp_dst=5353
br-mcast||in_port=@idle0@,udp,dl_dst=01:00:5e:09:09:09,$s:01:03,nw_src=10.1.0.9,nw_dst=239.9.9.9,nw_ttl=8,udp_src=1,udp_dst=2
br-mcast||in_port=@member0@,ip,nw_proto=2,dl_dst=01:00:5e:01:00:05,$s:01:01,nw_src=10.1.0.1,nw_dst=239.1.0.5,nw_ttl=1
br-mcast||in_port=@querier0@,ip,nw_proto=2,dl_dst=01:00:5e:00:00:01,$s:01:fe,nw_src=10.1.0.254,nw_dst=224.0.0.1,nw_ttl=1
br-mcast||in_port=@idle0@,udp6,dl_dst=33:33:00:01:00:01,$s:01:03,ipv6_src=fe80::3,ipv6_dst=ff35::1:1,udp_src=1,udp_dst=2,nw_ttl=8
br-mcast||in_port=@idle0@,udp6,dl_dst=33:33:00:01:00:02,$s:01:03,ipv6_src=fe80::3,ipv6_dst=ff35::1:2,udp_src=1,udp_dst=2,nw_ttl=8
br-mcast||in_port=@idle0@,udp6,dl_dst=33:33:00:01:00:09,$s:01:03,ipv6_src=fe80::3,ipv6_dst=ff35::1:9,udp_src=1,udp_dst=2,nw_ttl=8
br-mcast||in_port=@idle0@,udp6,dl_dst=33:33:00:00:00:01,$s:01:03,ipv6_src=fe80::3,ipv6_dst=ff02::1,udp_src=1,udp_dst=2,nw_ttl=1
br-mcast||in_port=@member0@,icmp6,dl_dst=33:33:00:01:00:05,$s:01:01,ipv6_src=fe80::1,ipv6_dst=ff35::1:5,icmpv6_type=131,icmpv6_code=0,nw_ttl=1
br-mcast||in_port=@querier0@,tcp,dl_dst=02:00:00:01:00:01,$s:01:fe,$ip,tp_src=1,tp_dst=2
br-mcast||in_port=@querier0@,arp,$all,$s:01:fe,arp_op=1
# port settings, fragments, long names
PACKETS
    for port in normal0 no-rx0 no-fwd0 no-flood0 no-pkt-in0 down0 linkless0; do
        printf 'br-set||in_port=@%s@,arp,%s,%s:06:10,arp_op=1\n' "$port" "$all" "$s"
    done
    cat <<PACKETS
br-set||in_port=@no-pkt-in0@,dl_type=0x1234,$all,$s:06:10
br-set||in_port=@normal0@,dl_type=0x1234,$all,$s:06:10
br-set||in_port=@normal0@,icmp,$d:06:99,$s:06:10,$ip,icmp_type=8,icmp_code=0
br-set||in_port=@normal0@,icmp6,$d:06:99,$s:06:10,ipv6_src=fd00::1,ipv6_dst=fd00::2,icmpv6_type=128,icmpv6_code=0,nw_ttl=64
br-set||in_port=@normal0@,tcp,$d:06:99,$s:06:10,$ip,tp_src=1,tp_dst=1
br-set||in_port=@normal0@,tcp,$d:06:99,$s:06:10,$ip,tp_src=1,tp_dst=110
br-set||in_port=@normal0@,tcp,$d:06:99,$s:06:10,$ip,tp_src=1,tp_dst=120
br-set||in_port=@normal0@,udp,$d:06:99,$s:06:10,$ip,udp_src=1,udp_dst=120
br-set||in_port=@normal0@,tcp,$d:06:99,$s:06:10,$ip,tp_src=1,tp_dst=80,nw_frag=first
br-set||in_port=@normal0@,ip,$d:06:99,$s:06:10,$ip,nw_proto=6,nw_frag=later
br-set||in_port=@normal0@,ip,$d:06:09,$s:06:10,nw_src=1.1.1.1,nw_dst=10.9.0.9,nw_proto=47,nw_ttl=64
br-set||in_port=@normal0@,ip,$d:06:09,$s:06:10,nw_src=1.1.1.1,nw_dst=10.9.0.9,nw_proto=47,nw_ttl=1
br-vlans||in_port=@patch-provider-vlan-120-to-br-set@,arp,$all,$s:03:33,arp_op=1
PACKETS
}
